/** What one principal stores too much costs another nothing: uploads, runs and holds of two keys. See
 * docs/retention.md#shares.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { LIMITS } from "../../src/contract/limits.ts";
import { BOUNDARY, filePart, form } from "../support/http/multipart.ts";
import { CLIPS, KEY_A, KEY_B, newRun, startService, type TestService } from "../support/service.ts";
import { until } from "../support/until.ts";

const FILM = Deno.readFileSync(join(CLIPS, "intel_bottle.mp4"));
const MIB = 2 ** 20;
/** A pass comes as soon as its time has passed for the service. */
const QUICK = { timerMs: (ms: number) => ms === LIMITS.retention.passMs ? 100 : ms };

/** The film with other bytes: a last box that nobody reads. */
function filmOf(name: string): Uint8Array<ArrayBuffer> {
  const film = new Uint8Array(FILM.length + 16);
  film.set(FILM);
  film.set(new TextEncoder().encode(`\0\0\0\x10free${name.padEnd(8).slice(0, 8)}`), FILM.length);
  return film;
}

async function upload(test: TestService, name: string, key: string): Promise<string> {
  const { status, json } = await test.send("/v1/upload", {
    method: "POST",
    headers: { "x-api-key": key, "content-type": `multipart/form-data; boundary=${BOUNDARY}` },
    body: form([filePart(filmOf(name), name)]),
  });
  assert.equal(status, 200);
  return json.file_path;
}

function feedback(test: TestService, runId: string, bytes: number, key = KEY_A) {
  const body = { rating: 1, category: "c", feedback: "x".repeat(bytes) };
  return test.call("POST", `/v1/runs/${runId}/feedback`, body, key);
}

/** A run that has ended, with feedback of so many bytes. */
async function endedRun(test: TestService, bytes: number, key = KEY_A): Promise<string> {
  const runId = await newRun(test, key);
  if (bytes > 0) assert.equal((await feedback(test, runId, bytes, key)).status, 200);
  assert.equal((await test.call("POST", `/v1/runs/${runId}/stop`, undefined, key)).status, 200);
  return runId;
}

async function passes(test: TestService): Promise<void> {
  const before = (await test.call("GET", "/v1/system/retention")).json.last_pass_at_ms;
  test.pass(LIMITS.retention.passMs);
  await until(async () => (await test.call("GET", "/v1/system/retention")).json.last_pass_at_ms !== before);
}

/** The caller's runs that still have their events, the oldest first. */
async function runsOf(test: TestService, key: string): Promise<string[]> {
  return (await test.call("GET", "/v1/runs", undefined, key)).json.map(({ run_id }: { run_id: string }) =>
    run_id
  );
}

Deno.test("whoever stores most loses its oldest runs and uploads; one that is below its share keeps all, however old", async () => {
  await using test = await startService({
    SERVICE_RETENTION_RUN_BYTES: String(MIB),
    SERVICE_RETENTION_UPLOAD_BYTES: String(2 * MIB),
  }, QUICK);
  const film = await upload(test, "bob.mp4", KEY_B);
  const bobs = await endedRun(test, 60_000, KEY_B);
  const alices: string[] = [];
  for (let number = 0; number < 20; number++) alices.push(await endedRun(test, 60_000));
  const films: string[] = [];
  for (let number = 0; number < 6; number++) films.push(await upload(test, `a${number}.mp4`, KEY_A));

  const { json: look } = await test.call("GET", "/v1/system/retention");
  const going = look.goes.runs.map((
    { run_id, reason }: { run_id: string; reason: string },
  ) => [run_id, reason]);
  assert.deepEqual(going, alices.slice(0, going.length).map((runId) => [runId, "bytes"]));
  assert.ok(going.length > 0);
  assert.equal((await test.call("GET", "/v1/system/retention", undefined, KEY_B)).json.goes.count, 0);
  await passes(test);
  assert.deepEqual(await runsOf(test, KEY_A), alices.slice(going.length));
  assert.deepEqual(await runsOf(test, KEY_B), [bobs]);
  const { json: { events } } = await test.call("GET", `/v1/runs/${bobs}/events`, undefined, KEY_B);
  assert.equal(events[0].kind, "run_created");
  const stored = [...Deno.readDirSync(test.uploadRoot)].map(({ name }) => join(test.uploadRoot, name));
  assert.deepEqual([film, ...films].map((path) => stored.includes(path)), [
    true,
    ...films.map((_, number) => number >= films.length - 3),
  ]);
});

Deno.test("holds have a bound for each principal, also for what is written to a run that is on hold", async () => {
  const boundBytes = MIB * LIMITS.retention.heldPart;
  await using test = await startService({ SERVICE_RETENTION_RUN_BYTES: String(MIB) }, QUICK);
  const hold = (runId: string, key = KEY_A) => test.call("POST", `/v1/runs/${runId}/hold`, undefined, key);
  const [first, second, third] = [
    await endedRun(test, 60_000),
    await endedRun(test, 60_000),
    await newRun(test),
  ];
  assert.equal((await hold(third)).status, 200);
  let written = await feedback(test, third, 60_000);
  let count = 0;
  for (; written.status === 200; count++) written = await feedback(test, third, 60_000);
  assert.deepEqual([written.status, written.json.error.code, count], [507, "storage_quota", 8]);
  assert.match(
    written.json.error.message,
    new RegExp(`^Cannot write more to a run on hold: your runs on hold have \\d+ of the ${boundBytes} bytes`),
  );
  const refused = await hold(first);
  assert.deepEqual([refused.status, refused.json.error.code], [409, "conflict"]);
  assert.equal(refused.json.error.details[0].field, "run_id");
  assert.equal((await hold(third)).status, 200, "a hold that is there already changes nothing");
  assert.equal((await feedback(test, await newRun(test), 60_000)).status, 200, "other runs are written to");
  assert.equal(
    (await hold(await endedRun(test, 60_000, KEY_B), KEY_B)).status,
    200,
    "each principal has its own bound",
  );

  await test.restart();
  assert.equal((await hold(first)).status, 409, "a start counts them again");
  assert.equal((await test.call("POST", `/v1/runs/${third}/stop`)).status, 200, "it may end");
  assert.equal((await test.call("DELETE", `/v1/runs/${third}/hold`)).status, 200);
  for (const runId of [first, second]) assert.equal((await hold(runId)).status, 200);
});

Deno.test("a principal keeps as many runs that have ended as the setting says: what it deleted goes first, then the oldest", async () => {
  await using test = await startService({ SERVICE_RETENTION_ENDED_RUNS: "3" }, QUICK);
  const bobs = await endedRun(test, 0, KEY_B);
  const active = await newRun(test);
  const runs: string[] = [];
  for (let number = 0; number < 6; number++) runs.push(await endedRun(test, 0));
  await test.call("POST", `/v1/runs/${runs[0]}/hold`);
  await test.call("DELETE", `/v1/runs/${runs[5]}`);
  const { json: { goes, stays } } = await test.call("GET", "/v1/system/retention");
  assert.deepEqual(
    goes.runs.map(({ run_id, reason }: { run_id: string; reason: string }) => [run_id, reason]),
    [runs[1], runs[2], runs[5]].map((runId) => [runId, "count"]),
  );
  assert.equal(stays.count, 4);
  await passes(test);
  assert.deepEqual(await runsOf(test, KEY_A), [active, runs[0], runs[3], runs[4]]);
  assert.deepEqual(await runsOf(test, KEY_B), [bobs]);
  const { json: { events: [told] } } = await test.call("GET", `/v1/runs/${runs[1]}/events`);
  assert.deepEqual([told.kind, told.payload.reason], ["events_removed", "count"]);
  const { text } = await test.call("GET", "/v1/metrics");
  assert.match(text, /^service_retention_removed_total\{what="runs"\} 3$/m);
});
