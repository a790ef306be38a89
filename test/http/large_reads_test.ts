/** Reads of long decodes, and long answers: permits until the answer has gone. See
 * docs/security/load.md#large-reads.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { LIMITS } from "../../src/contract/limits.ts";
import type { NewEvent } from "../../src/model/runs/run.ts";
import { RawConnection } from "../support/http/raw_http.ts";
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
import { until } from "../support/until.ts";

/** Frames of the run. Its analysis has some 20 MB, more than all buffers of a connection hold. */
const FRAMES = 20_000;

/** How many permits one of several principals gets. */
function shareOf(permits: number): number {
  return permits * 3 / 4;
}

/** A run whose latest decodes have so many frames: those of a clip, again and again. */
async function longRun(test: TestService, key: string, decodes = 1): Promise<string> {
  const runId = await newRun(test, key);
  const source = { source_uri: join(CLIPS, "bbb120.mp4"), max_frames: 48 };
  assert.equal((await test.call("POST", `/v1/runs/${runId}/ingest`, source, key)).status, 200);
  const { timeline } = test.service;
  const stored = timeline.readOne(timeline.view.run(runId)!.latestFramesDecodedSeq)!;
  const { signals, ...head } = JSON.parse(stored.payload);
  const rows = Array.from({ length: FRAMES }, (_, frame) => ({
    ...signals[frame % signals.length],
    ...{ frame_index: frame, pts_ms: frame * 10 },
  }));
  const payload = { ...head, decoded_frames: FRAMES, signals: rows };
  for (let decode = 0; decode < decodes; decode++) {
    timeline.commit((): NewEvent[] => [{ kind: "frames_decoded", runId, payload }]);
  }
  return runId;
}

function open(timers: Readonly<Record<number, number>> = {}): Promise<TestService> {
  return startService({}, { timerMs: (ms) => timers[ms] ?? ms });
}

/** The waits for a permit end soon. */
const SHORT_WAITS = { [LIMITS.read.waitMs]: 1_000 };

/** Asks, and takes nothing of the answer but its first bytes. */
async function askOnly(test: TestService, method: string, path: string, key: string, body = "") {
  const connection = await RawConnection.open(test.url);
  await connection.send(
    `${method} ${path} HTTP/1.1\r\nhost: a\r\nx-api-key: ${key}\r\ncontent-type: application/json\r\n` +
      `content-length: ${body.length}\r\n\r\n${body}`,
  );
  await connection.receive(12); // the answer has begun
  return connection;
}

const ANALYSIS = JSON.stringify({ model: MODEL });

/** The refusal of a request that is asked until it is refused. */
async function refusalOf(ask: () => Promise<Answer>): Promise<Answer> {
  let answer: Answer | undefined;
  await until("it is refused", async () => (answer = await ask()).status === 503);
  return answer!;
}

function analyze(test: TestService, runId: string, key = KEY_A) {
  return test.call("POST", `/v1/runs/${runId}/analyze`, { model: MODEL, include_frame_metadata: false }, key);
}

Deno.test("analyses that their client does not read hold permits, and another principal has one left", async () => {
  await using test = await open(SHORT_WAITS);
  const [own, foreign] = [await longRun(test, KEY_A), await longRun(test, KEY_B)];
  using unread = new DisposableStack();
  for (let held = 0; held < shareOf(LIMITS.read.decodesMax); held++) {
    unread.use(await askOnly(test, "POST", `/v1/runs/${own}/analyze`, KEY_A, ANALYSIS));
  }
  const refused = await refusalOf(() => analyze(test, own));
  assert.equal(refused.json.error.code, "provider_saturated");
  assert.match(refused.json.error.message, /more than 4 reads of long decodes at once within 30000 ms/);
  assert.ok(Number(refused.headers.get("retry-after")) >= 1);
  assert.equal((await test.call("GET", `/v1/runs/${own}/signals`)).status, 503);
  assert.equal((await analyze(test, foreign, KEY_B)).status, 200);

  unread.dispose();
  await until(async () => (await analyze(test, own)).status === 200);
});

Deno.test("a permit comes back when the answer was read, was a HEAD's, or was a refusal", async () => {
  await using test = await open(SHORT_WAITS);
  const runId = await longRun(test, KEY_A);
  for (let read = 0; read <= shareOf(LIMITS.read.decodesMax); read++) {
    const answer = await test.call("POST", `/v1/runs/${runId}/analyze`, { model: MODEL });
    assert.deepEqual([answer.status, answer.json.metadata.length], [200, FRAMES]);
  }
  const second = await longRun(test, KEY_A);
  for (let read = 0; read <= shareOf(LIMITS.read.decodesMax); read++) {
    const head = await test.send(`/v1/runs/${read % 2 ? runId : second}/signals`, {
      method: "HEAD",
      headers: { "x-api-key": KEY_A },
    });
    assert.equal(head.status, 200);
  }
  assert.equal((await analyze(test, runId)).status, 200);
});

Deno.test("an answer of which nothing is taken is given up, and its permit comes back", async () => {
  await using test = await open({ ...SHORT_WAITS, [LIMITS.answer.stalledMs]: 3_000 });
  const runId = await longRun(test, KEY_A);
  using unread = new DisposableStack();
  for (let held = 0; held < shareOf(LIMITS.read.decodesMax); held++) {
    unread.use(await askOnly(test, "POST", `/v1/runs/${runId}/analyze`, KEY_A, ANALYSIS));
  }
  await until(async () => (await analyze(test, runId)).status === 503);
  await until(async () => (await analyze(test, runId)).status === 200);
});

Deno.test("callers who hang up before they are answered leave no permit behind", async () => {
  await using test = await open({ ...SHORT_WAITS, [LIMITS.answer.stalledMs]: 600_000 });
  const runId = await longRun(test, KEY_A);
  for (let gone = 0; gone <= shareOf(LIMITS.read.decodesMax); gone++) {
    using connection = await RawConnection.open(test.url);
    await connection.send(
      `GET /v1/runs/${runId}/signals?points=4096 HTTP/1.1\r\nhost: a\r\nx-api-key: ${KEY_A}\r\n\r\n`,
    );
  }
  for (let read = 0; read <= shareOf(LIMITS.read.decodesMax); read++) {
    await until(async () => (await analyze(test, runId)).status === 200);
  }
});

Deno.test("signals of a decode that was just read need no permit", async () => {
  await using test = await open(SHORT_WAITS);
  const runId = await longRun(test, KEY_A);
  assert.equal((await test.call("GET", `/v1/runs/${runId}/signals`)).status, 200);
  using unread = new DisposableStack();
  for (let held = 0; held < shareOf(LIMITS.read.decodesMax); held++) {
    unread.use(await askOnly(test, "POST", `/v1/runs/${runId}/analyze`, KEY_A, ANALYSIS));
  }
  await until(async () => (await analyze(test, runId)).status === 503);
  assert.equal((await test.call("GET", `/v1/runs/${runId}/signals?points=2`)).status, 200);
});

Deno.test("long lists that their client does not read hold permits, and short ones need none", async () => {
  await using test = await open(SHORT_WAITS);
  const [own, short] = [await longRun(test, KEY_A, 3), await newRun(test)];
  using unread = new DisposableStack();
  for (let held = 0; held < shareOf(LIMITS.read.answersMax); held++) {
    unread.use(await askOnly(test, "GET", `/v1/runs/${own}/events`, KEY_A));
  }
  const refused = await refusalOf(() => test.call("GET", `/v1/runs/${own}/events`));
  assert.match(refused.json.error.message, /more than 16 long answers at once/);
  assert.equal((await test.call("GET", `/v1/runs/${short}/events`)).status, 200);
  const foreign = await longRun(test, KEY_B);
  assert.equal((await test.call("GET", `/v1/runs/${foreign}/events`, undefined, KEY_B)).status, 200);
});
