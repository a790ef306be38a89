import assert from "node:assert/strict";
import { join } from "node:path";
import { openLog } from "../../../src/base/log.ts";
import { socketName } from "../../../src/media/broker/job_paths.ts";
import { claimDataDir, claimFolder, claimTempFolder } from "../../../src/store/files/own_folder.ts";
import { emptyTempFolder } from "../../../src/store/files/temp_folder.ts";
import { TemporaryFolder } from "../../support/folders.ts";

const isRoot = Deno.uid() === 0;
/** A user that is not the one of the tests. */
const STRANGER = 12_345;
const SETTING = "SERVICE_UPLOAD_ROOT";

Deno.test("a missing upload root is made for its owner alone, and is taken again", () => {
  using folder = new TemporaryFolder();
  const path = join(folder.path, "deep", "uploads");
  assert.equal(claimFolder(path, SETTING), path);
  assert.equal(Deno.statSync(path).mode! & 0o777, 0o700);
  assert.equal(claimFolder(path, SETTING), path);
});

Deno.test("a link, a file and a folder that is open to others are refused with the way out", () => {
  using folder = new TemporaryFolder();
  const target = join(folder.path, "target");
  Deno.mkdirSync(target, { mode: 0o700 });
  const link = join(folder.path, "link");
  Deno.symlinkSync(target, link);
  assert.throws(() => claimFolder(link, SETTING), /not a link; remove the link, or set SERVICE_UPLOAD_ROOT/);
  const dangling = join(folder.path, "dangling");
  Deno.symlinkSync(join(folder.path, "nothing"), dangling);
  assert.throws(() => claimFolder(dangling, SETTING), /not a link/);
  const file = join(folder.path, "file");
  Deno.writeTextFileSync(file, "x");
  assert.throws(() => claimFolder(file, SETTING), /a folder; move the file away/);
  for (const mode of [0o750, 0o705, 0o720, 0o777, 0o701]) {
    Deno.chmodSync(target, mode);
    assert.throws(() => claimFolder(target, SETTING), /its mode is 07\d\d; run chmod 700/, mode.toString(8));
  }
});

Deno.test({
  name: "a folder of another user is refused",
  ignore: !isRoot,
  fn() {
    using folder = new TemporaryFolder();
    const path = join(folder.path, "theirs");
    Deno.mkdirSync(path, { mode: 0o700 });
    Deno.chownSync(path, STRANGER, STRANGER);
    assert.throws(
      () => claimFolder(path, SETTING),
      /not of user 12345; run chown 0 on it, or set SERVICE_UPLOAD_ROOT/,
    );
    assert.throws(() => claimDataDir(path), /not of user 12345; run chown 0 on it, or set SERVICE_DATA_DIR/);
  },
});

Deno.test("a data directory may be a link and open to a group, but not to everybody's writing", () => {
  using folder = new TemporaryFolder();
  const path = join(folder.path, "data");
  assert.equal(claimDataDir(path), path);
  assert.equal(Deno.statSync(path).mode! & 0o777, 0o700);
  const link = join(folder.path, "link");
  Deno.symlinkSync(path, link);
  for (const mode of [0o700, 0o755, 0o2775]) {
    Deno.chmodSync(path, mode);
    assert.equal(claimDataDir(link), path);
  }
  for (const mode of [0o777, 0o702]) {
    Deno.chmodSync(path, mode);
    assert.throws(() => claimDataDir(link), /its mode is 07\d\d; run chmod 700/, mode.toString(8));
  }
  // As /tmp, which has to stay open.
  Deno.chmodSync(path, 0o1777);
  assert.throws(() => claimDataDir(link), /its mode is 1777; set SERVICE_DATA_DIR to another folder$/);
});

Deno.test("the temporary folder is no link, and is closed to others", () => {
  using folder = new TemporaryFolder();
  const [path, elsewhere] = [join(folder.path, "tmp"), join(folder.path, "elsewhere")];
  Deno.mkdirSync(elsewhere);
  Deno.symlinkSync(elsewhere, path);
  assert.throws(() => claimTempFolder(folder.path), /a folder and not a link; remove the link/);
  Deno.removeSync(path);
  Deno.mkdirSync(path, { mode: 0o755 });
  assert.equal(claimTempFolder(folder.path), path);
  assert.equal(Deno.statSync(path).mode! & 0o777, 0o700);
});

Deno.test("of the temporary folder goes what the service made, and all else stays and is said", () => {
  using folder = new TemporaryFolder();
  const hex = (length: number) => "0123456789abcdef".repeat(2).slice(0, length);
  const made = [`media-${hex(24)}.fifo`, `clip-${hex(24)}.mp4`, `trial-${hex(24)}.mp4`, `.part__${hex(32)}`]
    .concat(socketName(new Uint8Array(8)));
  const foreign = ["letter.txt", "clip-1.mp4", `my-clip-${hex(24)}.mp4`];
  for (const name of [...made, ...foreign]) Deno.writeTextFileSync(join(folder.path, name), "x");
  const inner = `clip-${hex(24)}.d`;
  Deno.mkdirSync(join(folder.path, inner));
  let logged = "";
  const stream = {
    writeSync(bytes: Uint8Array) {
      logged += new TextDecoder().decode(bytes);
      return bytes.length;
    },
  };
  emptyTempFolder(folder.path, openLog("warn", { stdout: stream, stderr: stream }));
  assert.deepEqual(
    [...Deno.readDirSync(folder.path)].map(({ name }) => name).sort(),
    [inner, ...foreign].sort(),
  );
  assert.match(logged, /did not make: they stay.*4/);
});
