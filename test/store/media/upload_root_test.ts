import assert from "node:assert/strict";
import { join } from "node:path";
import { adoptFormerUploads } from "../../../src/store/media/upload_root.ts";
import { TemporaryFolder } from "../../support/folders.ts";

const isRoot = Deno.uid() === 0;
/** A user that is not the one of the tests. */
const STRANGER = 12_345;

function names(folder: string): string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name).sort();
}

Deno.test({
  name: "uploads in a folder of another user are left alone",
  ignore: !isRoot,
  fn() {
    using folder = new TemporaryFolder();
    const [path, own] = [join(folder.path, "theirs"), join(folder.path, "own")];
    for (const each of [path, own]) Deno.mkdirSync(each, { mode: 0o700 });
    Deno.writeTextFileSync(join(path, "public__planted.mp4"), "x");
    Deno.chownSync(path, STRANGER, STRANGER);
    assert.equal(adoptFormerUploads(path, own), 0);
    assert.deepEqual(names(own), []);
  },
});

Deno.test("uploads of the former place are moved once, and only those that are ours", () => {
  using folder = new TemporaryFolder();
  const [former, root] = [join(folder.path, "former"), join(folder.path, "uploads")];
  Deno.mkdirSync(former);
  Deno.mkdirSync(root, { mode: 0o700 });
  Deno.writeTextFileSync(join(former, "public__film.mp4"), "film", { mode: 0o644 });
  Deno.writeTextFileSync(join(former, ".part__0123"), "half");
  Deno.writeTextFileSync(join(folder.path, "secret"), "secret");
  Deno.symlinkSync(join(folder.path, "secret"), join(former, "public__link.mp4"));
  Deno.linkSync(join(folder.path, "secret"), join(former, "public__hard.mp4"));
  Deno.writeTextFileSync(join(former, "public__theirs.mp4"), "x");
  if (isRoot) Deno.chownSync(join(former, "public__theirs.mp4"), STRANGER, STRANGER);
  else Deno.removeSync(join(former, "public__theirs.mp4"));
  assert.equal(adoptFormerUploads(former, root), 1);
  assert.deepEqual(names(root), ["public__film.mp4"]);
  assert.equal(Deno.readTextFileSync(join(root, "public__film.mp4")), "film");
  assert.equal(Deno.statSync(join(root, "public__film.mp4")).mode! & 0o777, 0o600);

  Deno.writeTextFileSync(join(former, "public__later.mp4"), "later");
  assert.equal(adoptFormerUploads(former, root), 0, "the upload root is in use");
  const link = join(folder.path, "link");
  Deno.symlinkSync(former, link);
  const empty = join(folder.path, "empty");
  Deno.mkdirSync(empty);
  assert.equal(adoptFormerUploads(link, empty), 0, "a link is not followed");
  assert.equal(adoptFormerUploads(former, former), 0, "the same folder");
});
