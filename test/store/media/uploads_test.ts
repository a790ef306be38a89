import assert from "node:assert/strict";
import { join } from "node:path";
import { quietLog } from "../../../src/base/log.ts";
import { realWorld } from "../../../src/base/world.ts";
import { Uploads } from "../../../src/store/media/uploads.ts";
import { TemporaryFolder, withSmallDisk } from "../../support/folders.ts";
import { needing, SMALL_DISK } from "../../support/needs.ts";

const world = realWorld(quietLog());

/** Names in a folder, but the records of names. */
function names(folder: string): string[] {
  return [...Deno.readDirSync(folder)].map(({ name }) => name).filter((name) => name !== ".names").sort();
}

const named = (name: string) => ({ name, label: name });

Deno.test("an upload is hidden until it is published, and then complete", async () => {
  using folder = new TemporaryFolder();
  const uploads = Uploads.open(folder.path, world);
  using upload = await uploads.create();
  for (const text of ["one ", "", "two"]) await upload.write(new TextEncoder().encode(text));
  assert.deepEqual(names(folder.path).map((name) => name.replace(/[0-9a-f]{32}$/, "*")), [".part__*"]);
  assert.equal(Deno.readTextFileSync(upload.path), "one two");
  assert.equal(Deno.statSync(upload.path).mode! & 0o777, 0o600);
  assert.equal(await upload.publish(named("a.mp4")), join(folder.path, "a.mp4"));
  upload[Symbol.dispose]();
  assert.deepEqual(names(folder.path), ["a.mp4"]);
  assert.equal(Deno.readTextFileSync(join(folder.path, "a.mp4")), "one two");
});

Deno.test("an upload that is not published is removed, and an older file of its name stays", async () => {
  using folder = new TemporaryFolder();
  const uploads = Uploads.open(folder.path, world);
  Deno.writeTextFileSync(join(folder.path, "a.mp4"), "first");
  {
    using upload = await uploads.create();
    await upload.write(new Uint8Array(10));
  }
  assert.deepEqual(names(folder.path), ["a.mp4"]);
  assert.equal(Deno.readTextFileSync(join(folder.path, "a.mp4")), "first");
});

Deno.test("names of uploads are there after a restart, without those that are gone and a line that was cut", async () => {
  using folder = new TemporaryFolder();
  const publish = async (uploads: Uploads, name: string, label: string, text: string) => {
    using upload = await uploads.create();
    await upload.write(new TextEncoder().encode(text));
    return await upload.publish({ name, label });
  };
  const uploads = Uploads.open(folder.path, world);
  const kept = await publish(uploads, "public__a.mp4", "ä (1).mp4", "one");
  const gone = await publish(uploads, "public__b.mp4", "b?.mp4", "two");
  Deno.removeSync(gone);
  Deno.writeTextFileSync(join(folder.path, ".names"), '{"name":"public__c.mp4","lab', { append: true });
  const again = Uploads.open(folder.path, world);
  assert.equal(again.labelOf(kept), "ä (1).mp4");
  assert.equal(again.labelOf(join(folder.path, "public__old.mp4")), "old.mp4");
  assert.equal(again.labelOf("/elsewhere/public__a.mp4"), null);
  assert.equal(Deno.readTextFileSync(join(folder.path, ".names")).trimEnd().split("\n").length, 1);
  assert.equal(await publish(again, "public__a.mp4", "ä (1).mp4", "one"), kept);
  assert.notEqual(await publish(again, "public__a.mp4", "ä (1).mp4", "three"), kept);
});

Deno.test("publishing replaces a link and not the target of the link", async () => {
  using folder = new TemporaryFolder();
  const uploads = Uploads.open(folder.path, world);
  Deno.writeTextFileSync(join(folder.path, "target"), "untouched");
  Deno.symlinkSync("target", join(folder.path, "a.mp4"));
  using upload = await uploads.create();
  await upload.write(new TextEncoder().encode("new"));
  await upload.publish(named("a.mp4"));
  assert.ok(Deno.lstatSync(join(folder.path, "a.mp4")).isFile);
  assert.equal(Deno.readTextFileSync(join(folder.path, "target")), "untouched");
});

Deno.test("opening the root removes the uploads of a killed process, and none that is being written", async () => {
  using folder = new TemporaryFolder();
  const left = `.part__${"1".repeat(32)}`;
  for (const name of [left, "a.mp4", ".hidden", "part__x"]) {
    Deno.writeTextFileSync(join(folder.path, name), "x");
  }
  Deno.mkdirSync(join(folder.path, ".part__folder"));
  using upload = await Uploads.open(folder.path, world).create();
  Uploads.open(folder.path, world);
  await upload.write(new Uint8Array(3));
  await upload.publish(named("b.mp4"));
  assert.deepEqual(names(folder.path), [".hidden", ".part__folder", "a.mp4", "b.mp4", "part__x"]);
});

Deno.test("a root that was removed is created again", async () => {
  using folder = new TemporaryFolder();
  const root = join(folder.path, "uploads");
  Deno.mkdirSync(root);
  const uploads = Uploads.open(root, world);
  Deno.removeSync(root);
  using upload = await uploads.create();
  await upload.publish(named("a.mp4"));
  assert.deepEqual(names(root), ["a.mp4"]);
  assert.equal(Deno.statSync(root).mode! & 0o777, 0o700);
});

Deno.test("an error of the disk is 503 and leaves no file", async () => {
  using folder = new TemporaryFolder();
  const uploads = Uploads.open(folder.path, world);
  Deno.mkdirSync(join(folder.path, "taken.mp4"));
  {
    using upload = await uploads.create();
    await assert.rejects(upload.publish(named("taken.mp4")), { code: "storage_unavailable", status: 503 });
    await assert.rejects(upload.publish(named(`${"x".repeat(300)}.mp4`)), { code: "storage_unavailable" });
  }
  assert.deepEqual(names(folder.path), ["taken.mp4"]);
});

Deno.test({
  ...needing(SMALL_DISK, "a full disk refuses the upload, leaves nothing, and takes one when there is room"),
  async fn() {
    await withSmallDisk(async (path) => {
      const uploads = Uploads.open(path, world);
      {
        using upload = await uploads.create();
        await assert.rejects(async () => {
          for (let piece = 0; piece < 100; piece++) await upload.write(new Uint8Array(65_536));
        }, { code: "storage_unavailable", status: 503 });
      }
      assert.deepEqual(names(path), []);
      using upload = await uploads.create();
      await upload.write(new Uint8Array(900_000));
      await upload.publish(named("a.mp4"));
      assert.deepEqual(names(path), ["a.mp4"]);
    });
  },
});
