/** What a principal may store is bounded, whatever it stores; what it has stays readable. See
 * docs/security/load.md#storage-quota.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { BOUNDARY, filePart, form } from "../support/http/multipart.ts";
import { deleteSession, metric, publish, startLive } from "../support/live/live.ts";
import { ffmpeg, kindsOf, payloads } from "../support/models/reason.ts";
import { CLIPS, KEY_A, KEY_B, MODEL, newRun, startService, type TestService } from "../support/service.ts";
import { offerText } from "../support/live/fake_live_workers.ts";
import { until } from "../support/until.ts";

const FILM_PATH = join(CLIPS, "intel_bottle.mp4");
/** About half a MiB. */
const FILM = Deno.readFileSync(FILM_PATH);
const LARGE_FILM = Deno.readFileSync(join(CLIPS, "own_screenrec.mp4"));
/** The film with other bytes: a last box that nobody reads. */
function filmOf(name: string): Uint8Array<ArrayBuffer> {
  const box = new TextEncoder().encode(`\0\0\0\x10free${name.padEnd(8).slice(0, 8)}`);
  const film = new Uint8Array(FILM.length + box.length);
  film.set(FILM);
  film.set(box, FILM.length);
  return film;
}

const MIB = { SERVICE_STORAGE_QUOTA_BYTES: String(2 ** 20) };

function upload(test: TestService, film: Uint8Array<ArrayBuffer>, name: string, key = KEY_A) {
  return test.send("/v1/upload", {
    method: "POST",
    headers: { "x-api-key": key, "content-type": `multipart/form-data; boundary=${BOUNDARY}` },
    body: form([filePart(film, name)]),
  });
}

function uploads(test: TestService): number {
  return [...Deno.readDirSync(test.uploadRoot)].filter(({ name }) => name !== ".names").length;
}

// deno-lint-ignore no-explicit-any -- an answer of any shape
function assertQuota({ status, json }: { status: number; json: any }): void {
  assert.equal(status, 507, JSON.stringify(json));
  assert.equal(json.error.code, "storage_quota");
}

async function kinds(test: TestService, runId: string): Promise<string[]> {
  return kindsOf((await test.call("GET", `/v1/runs/${runId}/events`)).json.events);
}

Deno.test("an upload that crosses the quota is refused while it is received, and nothing of it is left", async () => {
  await using test = await startService(MIB);
  assertQuota(await upload(test, LARGE_FILM, "large.mp4"));
  assert.equal(uploads(test), 0);
  assert.equal((await upload(test, filmOf("a"), "a.mp4")).status, 200);
  assert.equal((await upload(test, filmOf("b"), "b.mp4")).status, 200);
  const refused = await upload(test, filmOf("c"), "c.mp4");
  assertQuota(refused);
  assert.match(
    refused.json.error.message,
    /^Cannot store more: \d+ of the 1048576 bytes of your quota are used/,
  );
  assert.equal(uploads(test), 2);
  assert.equal((await upload(test, FILM, "c.mp4", KEY_B)).status, 200, "each principal has its own quota");
  assert.equal(await metric(test, "service_storage_quota_refusals_total"), 2);
});

Deno.test("uploads at the same time cannot cross the quota together", async () => {
  await using test = await startService(MIB);
  const answers = await Promise.all(
    ["a", "b", "c", "d", "e"].map((name) => upload(test, filmOf(name), `${name}.mp4`)),
  );
  const stored = answers.filter(({ status }) => status === 200).length;
  assert.ok(stored <= 2, `${stored} were stored`);
  assert.equal(answers.filter(({ status }) => status === 507).length, 5 - stored);
  assert.equal(uploads(test), stored);
  for (const name of ["f", "g"].slice(stored)) {
    assert.equal(
      (await upload(test, filmOf(name), `${name}.mp4`)).status,
      200,
      "what was refused takes no room",
    );
  }
});

Deno.test("a file that is there already takes no more room, under another name either", async () => {
  await using test = await startService(MIB);
  for (let time = 0; time < 4; time++) assert.equal((await upload(test, FILM, "same.mp4")).status, 200);
  assert.equal((await upload(test, FILM, "other.mp4")).status, 200);
  assert.equal((await upload(test, filmOf("more"), "same.mp4")).status, 200, "there is room for another one");
});

Deno.test("a principal at its quota can read, stop and delete, and write nothing else", async () => {
  await using test = await startService({
    ...MIB,
    SERVICE_WEBHOOK_SECRET: "a root secret of at least 32 bytes",
  });
  const runId = await newRun(test);
  const body = { source_uri: FILM_PATH, max_frames: 20 };
  assert.equal((await test.call("POST", `/v1/runs/${runId}/ingest`, body)).status, 200);
  assert.equal((await test.call("POST", `/v1/runs/${runId}/hold`)).status, 200);
  const before = await kinds(test, runId);
  Deno.writeFileSync(join(test.uploadRoot, await uploadedName(test)), new Uint8Array(2 ** 20));
  await test.restart();
  const writes: [path: string, body?: object][] = [
    ["/v1/runs", {}],
    [`/v1/runs/${runId}/ingest`, body],
    [`/v1/runs/${runId}/analyze`, { model: MODEL }],
    [`/v1/runs/${runId}/reason`, { ...body, model: MODEL }],
    [`/v1/runs/${runId}/live`, { source_uri: "rtsps://1.1.1.1/camera" }],
    [`/v1/runs/${runId}/keepalive`],
    [`/v1/runs/${runId}/feedback`, { rating: 5, category: "x" }],
    [`/v1/runs/${runId}/webhooks`, { url: "https://1.1.1.1/hook" }],
  ];
  for (const [path, content] of writes) assertQuota(await test.call("POST", path, content));
  assertQuota(await upload(test, FILM, "a.mp4"));
  const offered = await test.send("/v1/stream/whip", {
    method: "POST",
    headers: { "x-api-key": KEY_A, "content-type": "application/sdp" },
    body: offerText(),
  });
  assert.deepEqual([offered.status, offered.headers.get("content-type")?.split(";")[0]], [507, "text/plain"]);
  assert.deepEqual(await kinds(test, runId), before);
  assert.equal((await test.call("GET", "/v1/runs")).status, 200);
  assert.equal((await test.call("POST", `/v1/runs/${runId}/stop`)).status, 200);
  assert.equal((await test.call("DELETE", `/v1/runs/${runId}/hold`)).status, 200);
  assert.equal((await test.call("DELETE", `/v1/runs/${runId}`)).status, 200);
  assert.equal((await test.call("POST", "/v1/runs", {}, KEY_B)).status, 200);
});

/** The name of an upload of KEY_A. */
async function uploadedName(test: TestService): Promise<string> {
  const { json } = await upload(test, FILM, "stored.mp4");
  return json.file_path.slice(test.uploadRoot.length + 1);
}

Deno.test("a decode whose rows would cross the quota leaves no event", async () => {
  await using test = await startService(MIB);
  const long = join(test.mediaDir, "long.mp4");
  await ffmpeg("-stream_loop", "20", "-i", join(CLIPS, "bbb120.mp4"), "-map", "0:v", "-c", "copy", long);
  const runId = await newRun(test);
  const ingest = (max_frames: number) =>
    test.call("POST", `/v1/runs/${runId}/ingest`, {
      source_uri: long,
      sampling_policy: "fixed",
      fixed_fps: 120,
      max_frames,
    });
  assertQuota(await ingest(50_000));
  assert.deepEqual(await kinds(test, runId), ["run_created"]);
  assert.equal((await ingest(10)).status, 200);
});

Deno.test("a live session ends at the quota with its reason, and no other one does", async () => {
  await using test = await startLive(MIB);
  const { runId, worker } = await publish(test);
  const other = await publish(test, { key: KEY_B });
  for (let picture = 0; picture < 5; picture++) {
    const jpeg = new Uint8Array(300_000).fill(picture);
    jpeg.set([0xff, 0xd8]);
    worker.picture(picture, { jpeg });
    await until(() => worker.acknowledged.pictures > picture || worker.isClosed);
  }
  await until(async () => (await test.call("GET", `/v1/runs/${runId}/state`)).json.state === "failed");
  const { events } = (await test.call("GET", `/v1/runs/${runId}/events`)).json;
  assert.deepEqual(payloads(events, "run_failed").map(({ reason }) => reason), ["storage_quota"]);
  assert.equal(payloads(events, "keyframe_stored").length, 3);
  assert.equal((await deleteSession(test, other, KEY_B)).status, 200);
});

Deno.test("what is stored is counted again at the next start", async () => {
  await using test = await startLive(MIB);
  const { worker, ...session } = await publish(test);
  for (let picture = 0; picture < 3; picture++) {
    worker.picture(picture, { jpeg: new Uint8Array(300_000).fill(picture) });
  }
  await until(() => worker.acknowledged.pictures === 3);
  assert.equal((await deleteSession(test, session)).status, 200);
  const ledger = join(test.dataDir, "stored-blobs");
  const check = async (what: string) => {
    assertQuota(await upload(test, FILM, "a.mp4"));
    assert.equal(
      (await upload(test, FILM.subarray(0, 1000), "a.mp4")).status,
      422,
      `${what}: 1000 bytes have room`,
    );
  };
  await check("before");
  await test.restart();
  assert.match(Deno.readTextFileSync(ledger), /^900000 api-key:[0-9a-f]{64}\n$/);
  await check("from the ledger");
  await test.restart(() => Deno.removeSync(ledger));
  await check("from the events");
  await test.restart(() => {}, { SERVICE_STORAGE_QUOTA_BYTES: "" });
  assert.equal((await upload(test, filmOf("a"), "a.mp4")).status, 200);
  assert.throws(() => Deno.lstatSync(ledger), Deno.errors.NotFound);
});
