import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { quietLog } from "../../../src/base/log.ts";
import { realWorld } from "../../../src/base/world.ts";
import { type BlobKind, type BlobRef, Blobs } from "../../../src/store/media/blobs.ts";
import { TemporaryFolder, withSmallDisk } from "../../support/folders.ts";
import { needing, SMALL_DISK } from "../../support/needs.ts";

const world = realWorld(quietLog());

function filesIn(folder: string): string[] {
  return [...Deno.readDirSync(folder)].flatMap(({ name, isDirectory }) =>
    isDirectory ? filesIn(join(folder, name)).map((inner) => join(name, inner)) : [name]
  ).sort();
}

async function bytesOf(file: Deno.FsFile | null): Promise<Uint8Array | null> {
  return file && await new Response(file.readable).bytes();
}

Deno.test("a blob is stored under the hash of its bytes, in the folder of its kind, readable by its owner only", async () => {
  using folder = new TemporaryFolder();
  const blobs = Blobs.open(folder.path, world);
  const kinds: [kind: BlobKind, place: string, mediaType: string, extension: string][] = [
    ["jpeg", "keyframes/blobs", "image/jpeg", "jpg"],
    ["mp4", "media/blobs", "video/mp4", "mp4"],
    ["wav", "media/blobs", "audio/wav", "wav"],
  ];
  for (const [kind, place, mediaType, extension] of kinds) {
    const bytes = new TextEncoder().encode(`content of a ${kind}`);
    const sha256 = createHash("sha256").update(bytes).digest("hex");
    const blob = await blobs.put(bytes, kind);
    const ref = `${place}/${sha256.slice(0, 2)}/${sha256}.${extension}`;
    assert.deepEqual({ ...blob }, { ref, mediaType, sizeBytes: bytes.length, sha256, created: true });
    assert.deepEqual(Deno.readFileSync(join(folder.path, ref)), bytes);
    assert.equal(Deno.statSync(join(folder.path, ref)).mode! & 0o777, 0o600);
    assert.deepEqual(await bytesOf(await blobs.open(mediaType, sha256)), bytes);
  }
  assert.equal(filesIn(folder.path).length, 3);
});

Deno.test("the same content is stored once, whole, in pieces, and when stored several times at once", async () => {
  using folder = new TemporaryFolder();
  const blobs = Blobs.open(folder.path, world);
  const pieces = Array.from({ length: 50 }, (_, index) => new Uint8Array(1000).fill(index));
  const whole = new Uint8Array(await new Blob(pieces).arrayBuffer());
  const first = await blobs.put(ReadableStream.from(pieces), "mp4");
  assert.equal(first.created, true);
  for (const content of [whole, ReadableStream.from(pieces), ReadableStream.from([whole])]) {
    assert.deepEqual({ ...await blobs.put(content, "mp4") }, { ...first, created: false });
  }
  const others = await Promise.all(Array.from({ length: 20 }, () => blobs.put(whole, "wav")));
  assert.equal(new Set(others.map(({ ref }) => ref)).size, 1);
  assert.deepEqual(filesIn(folder.path).length, 2);
  assert.deepEqual(Deno.readFileSync(join(folder.path, first.ref)), whole);
});

Deno.test("only what was written has a reference", () => {
  const facts = {
    ref: "keyframes/blobs/00/00.jpg",
    mediaType: "image/jpeg",
    sizeBytes: 1,
    sha256: "00",
    created: true,
  };
  // @ts-expect-error -- only `put` returns a value of this type
  const forged: BlobRef = facts;
  assert.equal(forged, facts);
});

Deno.test("an empty blob is a blob", async () => {
  using folder = new TemporaryFolder();
  const blobs = Blobs.open(folder.path, world);
  const { sizeBytes, sha256 } = await blobs.put(new Uint8Array(0), "wav");
  assert.equal(sizeBytes, 0);
  assert.deepEqual(await bytesOf(await blobs.open("audio/wav", sha256)), new Uint8Array(0));
});

Deno.test("a missing blob, an unknown media type and an invalid hash are null", async () => {
  using folder = new TemporaryFolder();
  const blobs = Blobs.open(folder.path, world);
  const { sha256 } = await blobs.put(new Uint8Array(9), "jpeg");
  const asked: [mediaType: string, sha256: string][] = [
    ["image/jpeg", "0".repeat(64)],
    ["video/mp4", sha256],
    ["audio/wav", sha256],
    ["image/png", sha256],
    ["", sha256],
    ["toString", sha256],
    ["image/jpeg", sha256.toUpperCase()],
    ["image/jpeg", sha256.slice(1)],
    ["image/jpeg", `../${sha256.slice(0, 2)}/${sha256}`],
    ["image/jpeg", ""],
  ];
  for (const [mediaType, hash] of asked) {
    assert.equal(await blobs.open(mediaType, hash), null, `${mediaType} ${hash}`);
  }
});

Deno.test("a stream that fails leaves no file, and its error is thrown", async () => {
  using folder = new TemporaryFolder();
  const blobs = Blobs.open(folder.path, world);
  async function* failing() {
    yield new Uint8Array(1000);
    await Promise.resolve();
    throw new Error("the source broke");
  }
  await assert.rejects(blobs.put(failing(), "mp4"), /the source broke/);
  assert.deepEqual(filesIn(folder.path), []);
});

Deno.test("a blob that was shortened on the disk is written again", async () => {
  using folder = new TemporaryFolder();
  const blobs = Blobs.open(folder.path, world);
  const bytes = new Uint8Array(1000).fill(7);
  const { ref } = await blobs.put(bytes, "jpeg");
  Deno.truncateSync(join(folder.path, ref), 10);
  assert.equal((await blobs.put(bytes, "jpeg")).created, true);
  assert.deepEqual(Deno.readFileSync(join(folder.path, ref)), bytes);
});

Deno.test("partial files of a killed process are removed at the next start, blobs stay", async () => {
  using folder = new TemporaryFolder();
  const blob = await Blobs.open(folder.path, world).put(new Uint8Array(9), "jpeg");
  const leftover = join(folder.path, "keyframes/blobs", `.part__${"0".repeat(32)}`);
  Deno.writeTextFileSync(leftover, "half");
  Blobs.open(folder.path, world);
  assert.deepEqual(filesIn(folder.path).map((path) => join(folder.path, path)), [
    join(folder.path, blob.ref),
  ]);
});

Deno.test({
  ...needing(SMALL_DISK, "a full disk refuses the blob, leaves nothing, and takes one when there is room"),
  async fn() {
    await withSmallDisk(async (path) => {
      const blobs = Blobs.open(path, world);
      for (
        const content of [
          new Uint8Array(2 << 20),
          ReadableStream.from(Array(40).fill(new Uint8Array(65_536))),
        ]
      ) {
        await assert.rejects(blobs.put(content, "mp4"), { code: "storage_unavailable", status: 503 });
        assert.deepEqual(filesIn(path), []);
      }
      assert.equal((await blobs.put(new Uint8Array(500_000), "mp4")).created, true);
    });
  },
});
