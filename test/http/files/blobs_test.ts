import assert from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { quietLog } from "../../../src/base/log.ts";
import { realWorld } from "../../../src/base/world.ts";
import type { NewEvent } from "../../../src/model/runs/run.ts";
import { type BlobKind, type BlobRef, Blobs } from "../../../src/store/media/blobs.ts";
import { openFiles, RawConnection, rawRequest } from "../../support/http/raw_http.ts";
import { KEY_A, KEY_B, newRun, REACHES_IN, startService, type TestService } from "../../support/service.ts";
import { until } from "../../support/until.ts";
import { make } from "../../support/media.ts";

const ABSENT = "f".repeat(64);

function put(test: TestService, content: string, kind: BlobKind): Promise<BlobRef> {
  const blobs = Blobs.open(test.dataDir, realWorld(quietLog()));
  return blobs.put(new TextEncoder().encode(content), kind);
}

function commit(test: TestService, runId: string, kind: string, payload: unknown): void {
  test.service.timeline.commit(() => [{ kind, runId, payload } as NewEvent]);
}

function image({ ref, sha256, sizeBytes, mediaType }: BlobRef) {
  return { image_ref: ref, image_sha256: sha256, image_bytes: sizeBytes, image_media_type: mediaType };
}

function media({ ref, sha256, sizeBytes, mediaType }: BlobRef) {
  return { media_ref: ref, media_sha256: sha256, media_bytes: sizeBytes, media_type: mediaType };
}

async function get(
  test: TestService,
  path: string,
  { key = KEY_A, method = "GET", headers = {} }: {
    key?: string;
    method?: string;
    headers?: Record<string, string>;
  } = {},
) {
  const response = await fetch(`${test.url}/v1/runs/${path}`, {
    method,
    headers: { "x-api-key": key, ...headers },
  });
  return { status: response.status, headers: response.headers, text: await response.text() };
}

Deno.test("what retention has removed is 410 with a reason, until it is stored again for a later event", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  const [picture, clip] = [await put(test, "picture", "jpeg"), await put(test, "clip", "mp4")];
  const name = () => {
    commit(test, runId, "keyframe_stored", image(picture));
    commit(test, runId, "semantic_chunk_inferred", { evidence: media(clip) });
  };
  name();
  const seq = test.service.timeline.view.lastSeq;
  const removed = { media: "picture", reason: "age", through_seq: seq, blobs: 1, bytes: 7 };
  commit(test, runId, "media_removed", removed);
  for (const path of [picture.sha256, `${picture.sha256.toUpperCase()}?width=64`]) {
    const { status, text } = await get(test, `${runId}/keyframes/${path}`);
    assert.equal(status, 410);
    const { error } = JSON.parse(text);
    assert.equal(error.code, "media_removed");
    assert.match(error.message, new RegExp(`each picture that events of the run up to ${seq} name`));
  }
  assert.equal((await get(test, `${runId}/media/${clip.sha256}`)).text, "clip");
  assert.equal((await get(test, `${runId}/keyframes/${ABSENT}`)).status, 404);
  commit(test, runId, "media_removed", { ...removed, media: "clip", through_seq: seq - 1 });
  assert.equal((await get(test, `${runId}/media/${clip.sha256}`)).status, 200);
  commit(test, runId, "media_removed", { ...removed, media: "clip" });
  assert.equal((await get(test, `${runId}/media/${clip.sha256}`)).status, 410);
  name();
  assert.equal((await get(test, `${runId}/keyframes/${picture.sha256}`)).text, "picture");
  assert.equal((await get(test, `${runId}/media/${clip.sha256}`)).text, "clip");
});

Deno.test("what the run's timeline names is served, by its own route, and nothing else is", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  const generation = { provenance: { pipeline_generation: 3 } };
  const jpeg = (name: string) => put(test, `jpeg ${name}`, "jpeg");
  const cases: [
    kind: string,
    payload: (blob: BlobRef) => object,
    blob: BlobRef,
    route: "keyframes" | "media" | null,
  ][] = [
    ["keyframe_stored", (blob) => image(blob), await jpeg("1"), "keyframes"],
    ["restricted_zone_activity_entered", (blob) => ({ evidence: image(blob) }), await jpeg("2"), "keyframes"],
    ["trigger.dock", (blob) => ({ ...generation, evidence: image(blob) }), await jpeg("3"), "keyframes"],
    [
      "semantic_chunk_inferred",
      (blob) => ({ evidence: media(blob) }),
      await put(test, "clip", "mp4"),
      "media",
    ],
    [
      "semantic_chunk_inferred",
      (blob) => ({ evidence: media(blob) }),
      await put(test, "heard", "wav"),
      "media",
    ],
    [
      "semantic_chunk_inferred",
      (blob) => ({ feedback_audio: media(blob) }),
      await put(test, "said", "wav"),
      "media",
    ],
    ["multimodal_moment", (blob) => ({ evidence: media(blob) }), await put(test, "moment", "mp4"), "media"],
    ["trigger.dock", (blob) => ({ evidence: image(blob) }), await jpeg("no generation"), null],
    ["trigger.dock", (blob) => ({ ...generation, ...image(blob) }), await jpeg("not the evidence"), null],
    ["restricted_zone_activity_entered", (blob) => image(blob), await jpeg("not the evidence either"), null],
    ["keyframe_stored", (blob) => ({ evidence: image(blob) }), await jpeg("misplaced"), null],
    [
      "keyframe_stored",
      (blob) => ({ ...image(blob), image_sha256: [blob.sha256] }),
      await jpeg("a list"),
      null,
    ],
    ["keyframe_stored", (blob) => ({ image_sha256: blob.sha256 }), await jpeg("no type"), null],
    ["keyframe_stored", (blob) => ({ description: blob.sha256 }), await jpeg("mentioned"), null],
    ["keyframe_stored", (blob) => media(blob), await put(test, "clip of a keyframe", "mp4"), null],
    ["vlm", (blob) => image(blob), await jpeg("another kind"), null],
    [
      "semantic_chunk_generated",
      (blob) => ({ evidence: media(blob) }),
      await put(test, "no grant", "mp4"),
      null,
    ],
    ["trigger.", (blob) => ({ ...generation, evidence: image(blob) }), await jpeg("no name"), null],
    [
      "semantic_chunk_inferred",
      (blob) => ({ evidence: { ...media(blob), media_type: "text/html" } }),
      await put(test, "page", "mp4"),
      null,
    ],
  ];
  for (const [kind, payload, blob, route] of cases) {
    commit(test, runId, kind, payload(blob));
    for (const asked of ["keyframes", "media"] as const) {
      const answer = await get(test, `${runId}/${asked}/${blob.sha256}`);
      assert.equal(answer.status, asked === route ? 200 : 404, `${asked} ${kind} ${blob.ref}`);
      if (asked !== route) continue;
      assert.deepEqual(
        ["content-type", "content-length", "etag", "cache-control", "accept-ranges", "x-content-type-options"]
          .map((header) => answer.headers.get(header)),
        [
          blob.mediaType,
          String(blob.sizeBytes),
          `"${blob.sha256}"`,
          "private, max-age=31536000, immutable",
          "bytes",
          "nosniff",
        ],
      );
      assert.equal(createHash("sha256").update(answer.text).digest("hex"), blob.sha256);
    }
  }
  await until("every blob is closed", () => openFiles(`${test.dataDir}/keyframes`) === 0);
});

Deno.test("a hash of another run grants nothing, and nobody else's run grants anything", async () => {
  await using test = await startService({}, REACHES_IN);
  const [mine, other, theirs, deleted] = [
    await newRun(test),
    await newRun(test),
    await newRun(test, KEY_B),
    await newRun(test),
  ];
  const blob = await put(test, "picture", "jpeg");
  for (const runId of [mine, theirs, deleted]) commit(test, runId, "keyframe_stored", image(blob));
  assert.equal((await test.call("DELETE", `/v1/runs/${deleted}`)).status, 200);
  const asked: [runId: string, key: string, status: number][] = [
    [mine, KEY_A, 200],
    [other, KEY_A, 404],
    [theirs, KEY_A, 404],
    [deleted, KEY_A, 404],
    [mine, KEY_B, 404],
    [theirs, KEY_B, 200],
    [`run-${"0".repeat(32)}`, KEY_A, 404],
    ["run-1", KEY_A, 422],
  ];
  for (const [runId, key, status] of asked) {
    const answer = await get(test, `${runId}/keyframes/${blob.sha256}`, { key });
    assert.equal(answer.status, status, `${runId} ${key}`);
  }
});

Deno.test("a hash is 64 hexadecimal digits in any case", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  const blob = await put(test, "picture", "jpeg");
  commit(test, runId, "keyframe_stored", image(blob));
  const { sha256 } = blob;
  const hashes: [hash: string, status: number][] = [
    [sha256, 200],
    [sha256.toUpperCase(), 200],
    [ABSENT, 404],
    ["0".repeat(64), 404],
    [sha256.slice(1), 422],
    [`${sha256}0`, 422],
    [`${sha256.slice(1)}g`, 422],
    [`${sha256}.jpg`, 422],
    [`%20${sha256.slice(1)}`, 422],
    [`..%2f${sha256.slice(4)}`, 422],
    [`${sha256}%00`, 422],
    [`${sha256}%0a`, 422],
    ["x", 422],
    [`0x${sha256.slice(2)}`, 422],
    [`${sha256.slice(0, 63)}%C2%AA`, 422],
    [`${sha256}/`, 404],
    ["", 404],
  ];
  for (const [hash, status] of hashes) {
    for (const route of ["keyframes", "media"]) {
      const answer = await rawRequest(test.url, {
        path: `/v1/runs/${runId}/${route}/${hash}`,
        headers: { "x-api-key": KEY_A },
      });
      assert.equal(answer.status, route === "media" && status === 200 ? 404 : status, `${route} ${hash}`);
      if (status === 422) {
        const { code, details } = JSON.parse(answer.text).error;
        assert.deepEqual([code, details[0].field], ["validation_error", "sha256"]);
      }
    }
  }
});

Deno.test("a blob whose file is gone is 404, and is there again when it is stored again", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  const blob = await put(test, "picture", "jpeg");
  commit(test, runId, "keyframe_stored", image(blob));
  const status = async () => (await get(test, `${runId}/keyframes/${blob.sha256}`)).status;
  assert.equal(await status(), 200);
  Deno.removeSync(join(test.dataDir, blob.ref));
  assert.equal(await status(), 404);
  assert.equal((await put(test, "picture", "jpeg")).created, true);
  assert.equal(await status(), 200);
});

Deno.test("blobs know ranges, conditions and HEAD", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  const blob = await put(test, "0123456789", "mp4");
  commit(test, runId, "multimodal_moment", { evidence: media(blob) });
  const tag = `"${blob.sha256}"`;
  const requests: [headers: Record<string, string>, status: number, text: string][] = [
    [{}, 200, "0123456789"],
    [{ range: "bytes=2-4" }, 206, "234"],
    [{ range: "bytes=-3" }, 206, "789"],
    [{ range: "bytes=8-" }, 206, "89"],
    [{ range: "bytes=0-0,2-3" }, 200, "0123456789"],
    [{ "if-none-match": tag }, 304, ""],
    [{ "if-none-match": "*" }, 304, ""],
    [{ "if-none-match": '"other"' }, 200, "0123456789"],
    [{ "if-modified-since": new Date().toUTCString() }, 200, "0123456789"],
    [{ range: "bytes=2-4", "if-range": tag }, 206, "234"],
    [{ range: "bytes=2-4", "if-range": '"other"' }, 200, "0123456789"],
    [{ range: "bytes=2-4", "if-range": new Date().toUTCString() }, 200, "0123456789"],
    [{ "accept-encoding": "gzip, br" }, 200, "0123456789"],
  ];
  for (const [headers, status, text] of requests) {
    const sent = JSON.stringify(headers);
    const answer = await get(test, `${runId}/media/${blob.sha256}`, { headers });
    assert.deepEqual([answer.status, answer.text], [status, text], sent);
    assert.equal(answer.headers.get("etag"), tag, sent);
    assert.equal(answer.headers.get("cache-control"), "private, max-age=31536000, immutable", sent);
    assert.equal(answer.headers.get("last-modified"), null);
  }
  const past = await get(test, `${runId}/media/${blob.sha256}`, { headers: { range: "bytes=10-" } });
  assert.deepEqual([past.status, past.headers.get("content-range")], [416, "bytes */10"]);
  const head = await get(test, `${runId}/media/${blob.sha256}`, { method: "HEAD" });
  assert.deepEqual([head.status, head.text, head.headers.get("content-length")], [200, "", "10"]);
  await until("every blob is closed", () => openFiles(`${test.dataDir}/media`) === 0);
});

Deno.test("among very many keyframes each is found, and events that come later are found too", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  const first = await put(test, "first", "jpeg");
  const last = await put(test, "last", "jpeg");
  const hashOf = (number: number) => createHash("sha256").update(`keyframe ${number}`).digest("hex");
  const keyframe = (number: number) => ({
    kind: "keyframe_stored",
    runId,
    payload: { frame_index: number, image_sha256: hashOf(number), image_media_type: "image/jpeg" },
  } as unknown as NewEvent);
  commit(test, runId, "keyframe_stored", image(first));
  for (let start = 0; start < 10_000; start += 1000) {
    test.service.timeline.commit(() => Array.from({ length: 1000 }, (_, index) => keyframe(start + index)));
  }
  const status = async (sha256: string) => (await get(test, `${runId}/keyframes/${sha256}`)).status;
  assert.equal(await status(first.sha256), 200);
  assert.equal(await status(last.sha256), 404);
  assert.equal(await status(hashOf(5000)), 404, "named, and not stored");
  commit(test, runId, "keyframe_stored", image(last));
  assert.equal(await status(last.sha256), 200);
  assert.equal(await status(first.sha256), 200);
  const statuses = await Promise.all([first, last, first, last].map(({ sha256 }) => status(sha256)));
  assert.deepEqual(statuses, [200, 200, 200, 200]);
  await test.restart();
  assert.equal(await status(last.sha256), 200);
});

Deno.test("an event that mentions a hash without granting it does not hide one that grants it", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  const blob = await put(test, "picture", "jpeg");
  const status = async () => (await get(test, `${runId}/keyframes/${blob.sha256}`)).status;
  commit(test, runId, "trigger.dock", { evidence: image(blob) });
  assert.equal(await status(), 404);
  assert.equal(await status(), 404);
  commit(test, runId, "keyframe_stored", image(blob));
  assert.equal(await status(), 200);
  assert.equal(await status(), 200);
});

Deno.test("a caller that goes away in the middle of a blob closes it", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  const blobs = Blobs.open(test.dataDir, realWorld(quietLog()));
  const blob = await blobs.put(ReadableStream.from(Array(128).fill(new Uint8Array(1 << 20))), "mp4");
  commit(test, runId, "multimodal_moment", { evidence: media(blob) });
  const connection = await RawConnection.open(test.url);
  await connection.send(
    `GET /v1/runs/${runId}/media/${blob.sha256} HTTP/1.1\r\nhost: x\r\nx-api-key: ${KEY_A}\r\n\r\n`,
  );
  await connection.receive();
  assert.ok(openFiles(blob.sha256) > 0);
  connection[Symbol.dispose]();
  await until("the blob is closed", () => openFiles(blob.sha256) === 0);
});

Deno.test("a stored picture is given in a smaller size, made once, under the same rules as the picture", async () => {
  await using test = await startService({}, REACHES_IN);
  const runId = await newRun(test);
  const file = join(test.dataDir, "picture.jpg");
  make(file, "-f", "lavfi", "-i", "testsrc2=s=640x360", "-frames:v", "1", "-update", "1");
  const blobs = Blobs.open(test.dataDir, realWorld(quietLog()));
  const stored = await blobs.put(Deno.readFileSync(file), "jpeg");
  commit(test, runId, "keyframe_stored", image(stored));
  const path = `${runId}/keyframes/${stored.sha256}`;
  const picture = async (width: number | string, init: RequestInit = {}, key = KEY_A) => {
    const headers = { "x-api-key": key, ...init.headers };
    const response = await fetch(`${test.url}/v1/runs/${path}?width=${width}`, { ...init, headers });
    return { status: response.status, headers: response.headers, bytes: await response.bytes() };
  };
  const small = await picture(160);
  assert.equal(small.status, 200);
  assert.deepEqual(sizeOfJpeg(small.bytes), { width: 160, height: 90 });
  assert.ok(small.bytes.length < stored.sizeBytes / 4, `${small.bytes.length} of ${stored.sizeBytes} bytes`);
  assert.equal(small.headers.get("content-type"), "image/jpeg");
  assert.equal(small.headers.get("cache-control"), "private, max-age=31536000, immutable");
  assert.equal(small.headers.get("vary"), "x-api-key, authorization");
  assert.equal((await get(test, path)).headers.get("vary"), "x-api-key, authorization");
  const etag = small.headers.get("etag")!;
  assert.equal(etag, `"${stored.sha256}-160"`);
  assert.equal((await picture(160, { headers: { "if-none-match": etag } })).status, 304);
  assert.equal((await picture(160, { headers: { "if-match": '"another"' } })).status, 412);
  const [head, ...others] = await Promise.all([picture(160, { method: "HEAD" }), picture(160), picture(160)]);
  assert.equal(head!.status, 200);
  for (const { bytes } of others) assert.deepEqual(bytes, small.bytes);
  assert.deepEqual(sizeOfJpeg((await picture(1280)).bytes), { width: 640, height: 360 });
  assert.deepEqual(sizeOfJpeg((await picture(33)).bytes), { width: 33, height: 18 });

  assert.equal((await picture(31)).status, 422);
  assert.equal((await picture(1281)).status, 422);
  assert.equal((await picture("wide")).status, 400);
  assert.equal((await picture(160, {}, KEY_B)).status, 404);
  const broken = await put(test, "no picture", "jpeg");
  commit(test, runId, "keyframe_stored", image(broken));
  const refused = await get(test, `${runId}/keyframes/${broken.sha256}?width=160`);
  assert.deepEqual([refused.status, JSON.parse(refused.text).error.code], [500, "internal_error"]);
});

/** The size of a JPEG by its start of frame: two bytes each behind its length and its precision. */
function sizeOfJpeg(bytes: Uint8Array): { width: number; height: number } {
  const view = new DataView(bytes.buffer, bytes.byteOffset);
  let at = 2;
  while (![0xffc0, 0xffc1, 0xffc2].includes(view.getUint16(at))) at += 2 + view.getUint16(at + 2);
  return { height: view.getUint16(at + 5), width: view.getUint16(at + 7) };
}
