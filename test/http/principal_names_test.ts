/** Who reads what the service writes cannot try keys against it, and every key keeps its runs. See
 * docs/security.md#names-of-principals.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { openLog } from "../../src/base/log.ts";
import { Metrics } from "../../src/contract/metrics.ts";
import { keyScope, textDigest } from "../../src/model/idempotency_key.ts";
import { EVENTS_REMOVED, summaryOf } from "../../src/model/runs/run.ts";
import { makeBackup } from "../../src/store/backup/backup.ts";
import { FolderStorage } from "../../src/store/backup/folder_storage.ts";
import { restoreBackup } from "../../src/store/backup/restore.ts";
import { Blobs } from "../../src/store/media/blobs.ts";
import { writeBundle } from "../../src/store/bundle/run_bundle.ts";
import { checkDirectory } from "../../src/store/checks/directory_check.ts";
import { repairDirectory } from "../../src/store/checks/repair.ts";
import { filesBelow } from "../../src/store/files/folder.ts";
import { KeptAnswers } from "../../src/store/answers/kept_answers.ts";
import { Timeline } from "../../src/store/timeline/timeline.ts";
import { SearchIndex } from "../../src/store/search/search_index.ts";
import { StoredBytes } from "../../src/store/space/stored_bytes.ts";
import { world } from "../support/data_directory.ts";
import { BOUNDARY, filePart, form, joined } from "../support/http/multipart.ts";
import { deleteSession, publish, startLive } from "../support/live/live.ts";
import { TempFolder } from "../support/media.ts";
import { eventsOf, payloads } from "../support/models/reason.ts";
import { configuredName, sha256, writtenName } from "../support/principals.ts";
import {
  type Answer,
  CLIPS,
  KEY_A,
  KEY_B,
  MODEL,
  newRun,
  startService,
  type TestService,
} from "../support/service.ts";
import { created, event, RUN } from "../support/timeline.ts";

const FILM = Deno.readFileSync(join(CLIPS, "intel_bottle.mp4"));
const QUOTA = { SERVICE_STORAGE_QUOTA_BYTES: String(2 ** 30) };

/** A film whose last box, which nobody reads, has the name in it: no two have the same bytes. */
function upload(test: TestService, name: string, key = KEY_A): Promise<Answer> {
  return test.send("/v1/upload", {
    method: "POST",
    headers: { "x-api-key": key, "content-type": `multipart/form-data; boundary=${BOUNDARY}` },
    body: form([filePart(joined([FILM, `\0\0\0\x18free${name.padEnd(16)}`]), name)]),
  });
}

/** Creates a run with an idempotency key. */
function createOnce(test: TestService, idempotencyKey: string): Promise<Answer> {
  return test.send("/v1/runs", {
    method: "POST",
    headers: { "x-api-key": KEY_A, "content-type": "application/json", "idempotency-key": idempotencyKey },
    body: "{}",
  });
}

/**
 * All that can be computed of a key without the secret: its hash, as text and as bytes, and the prefix of
 * uploads that earlier versions made of it.
 */
function tracesOf(key: string): readonly (readonly [what: string, bytes: Uint8Array])[] {
  const hash = sha256(key);
  const texts = [["the key", key], ["its hash", hash], ["the hash of its name", sha256(configuredName(key))]];
  return [
    ...texts.map(([what, text]) => [what!, new TextEncoder().encode(text)] as const),
    ["its hash in bytes", Uint8Array.fromHex(hash)],
  ];
}

function assertNoTrace(where: string, content: string | Uint8Array): void {
  const bytes = typeof content === "string" ? new TextEncoder().encode(content) : content;
  for (const key of [KEY_A, KEY_B]) {
    for (const [what, trace] of tracesOf(key)) {
      assert.equal(indexOf(bytes, trace), -1, `${what} of ${key} is in ${where}`);
    }
  }
}

function indexOf(bytes: Uint8Array, part: Uint8Array): number {
  for (let at = bytes.indexOf(part[0]!); at >= 0; at = bytes.indexOf(part[0]!, at + 1)) {
    if (part.every((byte, offset) => bytes[at + offset] === byte)) return at;
  }
  return -1;
}

/** Returns the number of files. */
function assertNoTraceBelow(folder: string): number {
  const files = [...filesBelow(folder, "")];
  for (const path of files) {
    assertNoTrace("a file name", path);
    assertNoTrace(path, Deno.readFileSync(join(folder, path)));
  }
  return files.length;
}

Deno.test("after a day's work no file, bundle, metric or log line has what a key can be tried against", async () => {
  using folder = new TempFolder();
  let lines = "";
  const into = { writeSync: (bytes: Uint8Array) => (lines += new TextDecoder().decode(bytes)).length };
  const log = openLog("trace", { stdout: into, stderr: into });
  const sourcesFile = `[[sources]]\nname = "dock"\nuri = "${CLIPS}/intel_bottle.mp4"\n` +
    `principals = ["${sha256(KEY_A)}"]\n`;
  await using test = await startLive(QUOTA, { log, sourcesFile });
  const { timeline } = test.service;
  const runs: string[] = [];
  for (const key of [KEY_A, KEY_B]) {
    const runId = await newRun(test, key);
    const { json: { file_path: source_uri } } = await upload(test, "film.mp4", key);
    const call = async (method: string, path: string, body?: unknown) => {
      const { status, text } = await test.call(method, path, body, key);
      assert.equal(status, 200, `${path} ${text}`);
    };
    await call("POST", `/v1/runs/${runId}/ingest`, { source_uri, max_frames: 5 });
    await call("POST", `/v1/runs/${runId}/analyze`, { model: MODEL });
    await call("POST", `/v1/runs/${runId}/feedback`, { rating: 5, category: "good" });
    timeline.commit(() => [{ kind: "vlm", runId, payload: { description: "a bottle", pts_ms: 1 } }]);
    await call("POST", "/v1/search", { query: "bottle" });
    runs.push(runId);
  }
  assert.equal((await createOnce(test, "k-1")).status, 200);
  await Blobs.open(test.dataDir, world).put(new TextEncoder().encode("a picture"), "jpeg");
  const session = await publish(test);
  await deleteSession(test, session);
  const { json: { run_id: old } } = await test.call("POST", "/v1/runs", {});
  timeline.commit((view) => [{
    kind: EVENTS_REMOVED,
    runId: old,
    payload: {
      reason: "age",
      events: 1,
      bytes: 1,
      through_seq: view.lastSeq,
      run: summaryOf(view.run(old)!),
    },
  }]);
  for (const runId of runs) {
    writeBundle({ dataDir: test.dataDir, runId, target: join(folder.path, runId), world });
  }
  const metrics = (await test.call("GET", "/v1/metrics")).text;
  assert.ok(metrics.length > 1000);
  assertNoTrace("/v1/metrics", metrics);
  const { json: { events } } = await test.call("GET", `/v1/runs/${runs[0]}/events`);
  assert.equal(events[0].payload.principal_key, writtenName(test.dataDir, KEY_A));
  // The snapshot, the search index and the ledger are written by then; the start reads them.
  await test.restart();
  assert.equal((await test.call("POST", "/v1/search", { query: "bottle" })).json.total_hits, 1);
  for (const name of ["timeline/snapshot", "search-index", "stored-blobs"]) {
    const text = new TextDecoder().decode(Deno.readFileSync(join(test.dataDir, name)));
    const isNamed = [KEY_A, KEY_B].some((key) => text.includes(writtenName(test.dataDir, key)));
    assert.ok(isNamed || name === "stored-blobs", `${name} names no principal`);
  }
  assert.ok(assertNoTraceBelow(test.dataDir) > 8);
  assert.equal(assertNoTraceBelow(test.uploadRoot), 3); // two films, and the names that they had
  assert.ok(assertNoTraceBelow(folder.path) > 8);
  assert.match(lines, /"message":"listening on|listening on/);
  assertNoTrace("the log", lines);
});

/**
 * What a version left that wrote the hash of the key: a run with a description, a kept answer, the ledger, an
 * upload.
 */
async function leaveEarlierData(dataDir: string, uploadRoot: string): Promise<{ readonly filename: string }> {
  const principalKey = configuredName(KEY_A);
  const timeline = await Timeline.open({ dataDir, world, sync: "none" });
  const searchIndex = SearchIndex.open({ timeline, dataDir, world });
  const metrics = new Metrics();
  const stored = StoredBytes.open({ dataDir, uploadRoot, timeline, quotaBytes: 2 ** 30, world, metrics });
  timeline.commit(() => [created(RUN, principalKey), event("vlm", { description: "a bottle", pts_ms: 1 })]);
  await Blobs.open(dataDir, world, stored).put(new TextEncoder().encode("a picture"), "jpeg", principalKey);
  const { view, names } = timeline;
  const answers = KeptAnswers.open({ dataDir, syncs: false, view, names, stored, world });
  const key = await answers.begin({
    scope: keyScope(principalKey, "POST", "/v1/runs", "k-1"),
    principalKey,
    runIds: [],
    bodySha256: textDigest("{}"),
    requestId: "req-0000000000000001",
    begunMs: Date.now(),
    fromSeq: 1,
  });
  const answered = { request_id: "req-0000000000000001", run_id: RUN, status: "pending", mode: "balanced" };
  const answer = new TextEncoder().encode(JSON.stringify({ ...answered, model: null }));
  for await (const _ of await answers.keep(key, 200, pieces(answer)));
  await answers[Symbol.asyncDispose]();
  await searchIndex.caughtUp();
  await searchIndex[Symbol.asyncDispose]();
  stored[Symbol.dispose]();
  await timeline.close();
  const filename = `${sha256(principalKey)}__film.mp4`;
  Deno.writeFileSync(join(uploadRoot, filename), FILM);
  return { filename };
}

async function* pieces(bytes: Uint8Array<ArrayBuffer>) {
  yield await Promise.resolve(bytes);
}

/** Checks that the holder of KEY_A has it all, and the holder of KEY_B nothing of it. */
async function assertOwned(test: TestService, filename: string): Promise<void> {
  const status = async (path: string, key: string) => {
    const response = await fetch(`${test.url}${path}`, { headers: { "x-api-key": key } });
    await response.bytes();
    return response.status;
  };
  for (const path of [`/v1/runs/${RUN}`, `/v1/runs/${RUN}/events`, `/v1/files/${filename}`]) {
    assert.deepEqual([await status(path, KEY_A), await status(path, KEY_B)], [200, 404], path);
  }
  for (const [key, hits] of [[KEY_A, 1], [KEY_B, 0]] as const) {
    const found = await test.call("POST", "/v1/search", { query: "bottle", run_id: hits ? RUN : null }, key);
    assert.equal(found.json.total_hits, hits);
  }
}

Deno.test("what earlier versions wrote stays with its key: after an upgrade, without a snapshot, and after the key was away", async () => {
  await using test = await startService(QUOTA);
  const leave = { filename: "" };
  await test.restart(async () => {
    for (const place of [test.dataDir, test.uploadRoot]) {
      for (const { name } of Deno.readDirSync(place)) Deno.removeSync(join(place, name), { recursive: true });
    }
    Object.assign(leave, await leaveEarlierData(test.dataDir, test.uploadRoot));
    assert.equal(Deno.readTextFileSync(join(test.dataDir, "format")), "1\n");
  });
  await assertOwned(test, leave.filename);
  const ledger = Deno.readTextFileSync(join(test.dataDir, "stored-blobs"));
  assert.equal(ledger, `9 ${writtenName(test.dataDir, KEY_A)}\n`);
  const again = await createOnce(test, "k-1");
  assert.deepEqual([again.json.run_id, again.headers.get("idempotency-replayed")], [RUN, "true"]);
  const ingested = await test.call("POST", `/v1/runs/${RUN}/ingest`, {
    source_uri: join(test.uploadRoot, leave.filename),
    max_frames: 2,
  });
  assert.equal(ingested.status, 200, ingested.text);

  // The key is away: what is made again then, is made with the names as they are written.
  const made = ["timeline/snapshot", "search-index", "stored-blobs"];
  await test.restart(() => made.forEach((name) => Deno.removeSync(join(test.dataDir, name))), {
    SERVICE_API_KEYS: KEY_B,
  });
  assert.equal((await test.call("GET", `/v1/runs/${RUN}`, undefined, KEY_B)).status, 404);
  await newRun(test, KEY_B);
  await test.restart(() => {}, { SERVICE_API_KEYS: `${KEY_A},${KEY_B}` });
  await assertOwned(test, leave.filename);
  await test.restart(() => Deno.removeSync(join(test.dataDir, "timeline", "snapshot")));
  await assertOwned(test, leave.filename);

  // All that it has counts for one principal: no third film of half a MiB.
  await test.restart(() => {}, { SERVICE_STORAGE_QUOTA_BYTES: String(2 ** 20) });
  const statusOf = async (name: string, key = KEY_A) => (await upload(test, name, key)).status;
  assert.deepEqual([await statusOf("second.mp4"), await statusOf("third.mp4")], [200, 507]);
  assert.equal(await statusOf("third.mp4", KEY_B), 200);
  const deleted = await test.call("DELETE", `/v1/files/${leave.filename}`);
  assert.equal(deleted.status, 200, deleted.text);
  assert.equal(await statusOf("third.mp4"), 200);
});

Deno.test("a run stays with its key while the key is away, and in a restored backup", async () => {
  using folder = new TempFolder();
  await using test = await startService();
  const runId = await newRun(test);
  const { json: { file_path } } = await upload(test, "film.mp4");
  const status = async (key = KEY_A) => (await test.call("GET", `/v1/runs/${runId}`, undefined, key)).status;
  const secret = Deno.readTextFileSync(join(test.dataDir, "principal-secret"));
  assert.equal(Deno.statSync(join(test.dataDir, "principal-secret")).mode! & 0o777, 0o600);
  await test.restart(() => {}, { SERVICE_API_KEYS: KEY_B });
  assert.equal(await status(KEY_B), 404);
  await test.restart(() => {}, { SERVICE_API_KEYS: `${KEY_B},${KEY_A}` });
  assert.equal(await status(), 200);

  const places = { dataDir: test.dataDir, uploadRoot: test.uploadRoot };
  const storage = new FolderStorage(folder.path, world);
  await makeBackup(places, storage, world);
  await test.restart(async () => {
    for (const place of [test.dataDir, test.uploadRoot]) {
      for (const { name } of Deno.readDirSync(place)) Deno.removeSync(join(place, name), { recursive: true });
    }
    await restoreBackup({ storage, places, id: undefined, world });
  });
  assert.equal(Deno.readTextFileSync(join(test.dataDir, "principal-secret")), secret);
  assert.deepEqual([await status(), await status(KEY_B)], [200, 404]);
  const ingested = await test.call("POST", `/v1/runs/${runId}/ingest`, {
    source_uri: file_path,
    max_frames: 2,
  });
  assert.equal(ingested.status, 200, ingested.text);
  assert.equal(payloads(await eventsOf(test, runId), "run_created").length, 1);
});

Deno.test("a start is refused without the secret that names were written with, and says what is wrong; nothing is made in its place", async () => {
  using folder = new TempFolder();
  const dataDir = join(folder.path, "data");
  const file = join(dataDir, "principal-secret");
  const open = (apiKeys?: readonly string[]) => Timeline.open({ dataDir, world, sync: "none", apiKeys });
  const places = { dataDir, uploadRoot: join(dataDir, "uploads") };
  await (await open()).close();
  assert.throws(() => Deno.statSync(file), Deno.errors.NotFound, "without a key there is no secret");
  await (await open([KEY_A])).close();
  const whole = Deno.readTextFileSync(file);
  const check = async (expected: RegExp) => {
    for (const keys of [[KEY_A], []]) {
      await assert.rejects(open(keys), (error: Error) => {
        assert.match(error.message, expected);
        assert.ok(!error.message.includes(whole.slice(0, 8)), "a part of the secret");
        return true;
      });
    }
    const { findings } = await checkDirectory(places);
    assert.deepEqual(findings.damage.map(({ kind, path }) => [kind, path]), [
      ["unreadable_file", "principal-secret"],
    ]);
    assert.match(findings.damage[0]!.text, expected);
  };
  Deno.removeSync(file);
  await check(/^Cannot open the data directory: .*principal-secret is missing, .* put a copy of it there/);
  assert.throws(() => Deno.statSync(file), Deno.errors.NotFound);
  const digit = whole[5] === "0" ? "1" : "0";
  for (const text of ["", whole.slice(0, 40), whole.slice(0, 5) + digit + whole.slice(6), `${whole}\n`]) {
    Deno.writeTextFileSync(file, text, { mode: 0o600 });
    await check(/principal-secret is damaged, .* put a copy of it there/);
    assert.equal(Deno.readTextFileSync(file), text);
  }
  Deno.writeTextFileSync(file, whole);
  Deno.chmodSync(file, 0o640);
  await check(/principal-secret must be closed to other users/);
  Deno.chmodSync(file, 0o600);
  for (const [isThere, format] of [[true, "3\n"], [false, "2\n"]] as const) {
    Deno.writeTextFileSync(join(dataDir, "format"), "?");
    if (!isThere) Deno.removeSync(file);
    await repairDirectory(places, world);
    assert.equal(
      Deno.readTextFileSync(join(dataDir, "format")),
      format,
      "a repair does not ask for what never was",
    );
  }
  Deno.writeTextFileSync(file, whole, { mode: 0o600 });
  const timeline = await open([KEY_A]);
  assert.equal(timeline.names.ofKey(KEY_A), writtenName(dataDir, KEY_A));
  await timeline.close();
});
