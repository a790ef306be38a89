/** What `scripts/build --compile` hands to `deno compile`. Nothing here starts the result: the program that
 * it needs is in no package registry.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { compileService } from "../../scripts/single_file/build.ts";
import { ENTRIES } from "../../src/base/program_paths.ts";
import { TemporaryFolder } from "../support/folders.ts";
import { PROJECT_ROOT } from "../support/service.ts";

async function compiledOn(denort: string, target: string): Promise<void> {
  Deno.env.set("DENORT_BIN", denort);
  try {
    await compileService(target);
  } finally {
    Deno.env.delete("DENORT_BIN");
  }
}

Deno.test("without denort nothing is made, and it is said what is missing and what to name", async () => {
  using folder = new TemporaryFolder();
  await assert.rejects(
    compiledOn("/nonexistent/denort", folder.path),
    new RegExp(
      "Could not find denort at '/nonexistent/denort'[^]*No service-compiled was made. It takes the program denort of " +
        `Deno ${Deno.version.deno.replaceAll(".", "\\.")}, .*name the file in DENORT_BIN.$`,
    ),
  );
  assert.deepEqual([...Deno.readDirSync(folder.path)], []);
});

Deno.test("a file in place of denort gets the code of every process and Worker, the kernels, the filters and the pages", async () => {
  using folder = new TemporaryFolder();
  const base = join(folder.path, "base");
  Deno.copyFileSync("/bin/true", base);
  await compiledOn(base, folder.path);
  const path = join(folder.path, "service-compiled");
  assert.ok(Deno.statSync(path).mode! & 0o100);
  const text = new TextDecoder("latin1").decode(Deno.readFileSync(path));
  const filesOf = (below: string) => [...Deno.readDirSync(join(PROJECT_ROOT, below))].map(({ name }) => name);
  const wanted = [
    ...Object.values(ENTRIES).map((entry) => `${entry.split("/").at(-1)}.mjs`),
    ...["wasm", "seccomp"].flatMap(filesOf).filter((name) => /\.(wasm|bpf|starter)$/.test(name)),
    ...filesOf("dist/pages").filter((name) => name !== "built"),
  ];
  assert.ok(wanted.length > 14, String(wanted));
  assert.deepEqual(wanted.filter((name) => !text.includes(`"${name}"`)), []);
  assert.ok(text.includes("--heap-growing-percent=100"));
});
