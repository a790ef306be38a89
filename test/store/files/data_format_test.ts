import assert from "node:assert/strict";
import { join } from "node:path";
import { DATA_FORMAT } from "../../../src/store/files/data_format.ts";
import { Bench, created } from "../../support/timeline.ts";

Deno.test("a new data directory gets the format version, and one without it too", async () => {
  using bench = new Bench();
  const file = join(bench.dataDir, "format");
  for (const _ of ["new", "without it"]) {
    await using timeline = await bench.open();
    assert.equal(Deno.readTextFileSync(file), "1\n");
    timeline.commit(() => [created()]);
    Deno.removeSync(file);
  }
});

Deno.test("a data directory of a newer format is refused and left as it is, and opens again with its own", async () => {
  using bench = new Bench();
  const file = join(bench.dataDir, "format");
  {
    await using timeline = await bench.open();
    timeline.commit(() => [created()]);
  }
  bench.edit((bytes) => Uint8Array.of(...bytes, 0, 0)); // an end that an opening would cut
  const before = Deno.readFileSync(bench.path(bench.segments()[0]!));
  const check = async (text: string, expected: RegExp) => {
    Deno.writeTextFileSync(file, text);
    await assert.rejects(bench.open(), expected);
    assert.equal(Deno.readTextFileSync(file), text);
    assert.deepEqual(Deno.readFileSync(bench.path(bench.segments()[0]!)), before);
  };
  await check(
    `${DATA_FORMAT + 1}\n`,
    /^Error: Cannot open the data directory: .* has format 4, and this version of the service reads up to 3; start the version/,
  );
  await check("1000000", /has format 1000000/);
  await check("", /must hold its format version, a number, got ""/);
  await check("0\n", /must hold its format version/);
  await check("1.5\n", /must hold its format version/);
  await check("two\n", /must hold its format version, a number, got "two\\n"/);
  await check("9".repeat(1000), /must hold its format version/);
  Deno.writeTextFileSync(file, "1");
  await using timeline = await bench.open();
  assert.equal(timeline.view.lastSeq, 1);
});
