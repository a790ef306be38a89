/** What a request with an idempotency key is told after one that was interrupted. See
 * docs/api.md#idempotency-keys.
 */

import assert from "node:assert/strict";
import { Metrics } from "../../src/contract/metrics.ts";
import { event } from "../../src/model/events/event_table.ts";
import { type AnswerAgain, FirstRequest, Idempotency, type KeyedWork } from "../../src/flow/idempotency.ts";
import { KeptAnswers } from "../../src/store/answers/kept_answers.ts";
import type { Timeline, TimelineOptions } from "../../src/store/timeline/timeline.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { Bench, RUN } from "../support/timeline.ts";

const CALLER = {
  principalKey: "api-key:a",
  requestId: "req-0000000000000001",
  isOnLoopback: true,
  holdUntilAnswered: () => {},
  tenantId: null,
  signal: new AbortController().signal,
};
const OTHER = { ...CALLER, requestId: "req-0000000000000002" };

const WORK: KeyedWork = {
  key: "k",
  method: "POST",
  path: "/v1/runs",
  body: "{}",
  runIds: [],
  kinds: ["run_created"],
  rebuild: ({ runId }, requestId) => ({ runId, requestId }),
};

interface Scene extends AsyncDisposable {
  readonly timeline: Timeline;
  begin(work?: Partial<KeyedWork>, caller?: typeof CALLER): Promise<FirstRequest | AnswerAgain>;
}

async function open(bench: Bench, options: Partial<TimelineOptions> = {}): Promise<Scene> {
  const timeline = await bench.open(options);
  const clock = new ManualClock();
  const world = { ...bench.world, sleep: clock.sleep.bind(clock) };
  const { dataDir } = bench;
  const stored = { requireRoom: () => {}, addAnswer: () => {} };
  const answers = KeptAnswers.open({
    dataDir,
    syncs: false,
    view: timeline.view,
    names: timeline.names,
    stored,
    world,
  });
  const idempotency = new Idempotency({ timeline, answers, world, metrics: new Metrics() });
  return {
    timeline,
    begin: (work = {}, caller = OTHER) => idempotency.begin(caller, { ...WORK, ...work }),
    [Symbol.asyncDispose]: async () => {
      await answers[Symbol.asyncDispose]();
      await timeline.close();
    },
  };
}

async function first(scene: Scene, work: Partial<KeyedWork> = {}): Promise<FirstRequest> {
  const begun = await scene.begin(work, CALLER);
  assert.ok(begun instanceof FirstRequest);
  return begun;
}

async function textOf(begun: FirstRequest | AnswerAgain): Promise<string> {
  assert.ok(!(begun instanceof FirstRequest), "it is the first again");
  const bytes = [];
  for await (const piece of begun.body) bytes.push(...piece);
  return new TextDecoder().decode(new Uint8Array(bytes));
}

function create(
  { timeline }: Scene,
  { requestId, principalKey }: Pick<typeof CALLER, "requestId" | "principalKey"> = CALLER,
  runId = RUN,
): void {
  timeline.commit(() => [event("run_created", runId, {
    request_id: requestId,
    mode: "balanced",
    model: null,
    principal_key: principalKey,
    tenant_id: null,
  })]);
}

Deno.test("what may not be on the disk is no answer until a restart has found it there", async () => {
  using bench = new Bench();
  {
    let fails = false;
    const syncData = () => fails ? Promise.reject(new Error("I/O error")) : Promise.resolve();
    await using scene = await open(bench, { sync: "group", syncData });
    const begun = await first(scene);
    fails = true;
    create(scene);
    await assert.rejects(scene.timeline.synced(), { code: "storage_unavailable" });
    begun.interrupt();
    await assert.rejects(scene.begin(), { code: "storage_unavailable" });
  }
  await using scene = await open(bench);
  const answers = [await scene.begin(), await scene.begin()];
  for (const answer of answers) {
    assert.deepEqual(JSON.parse(await textOf(answer)), { runId: RUN, requestId: CALLER.requestId });
  }
});

Deno.test("events of other requests, of other principals, of other kinds and from before or after are not of the work", async () => {
  using bench = new Bench();
  const run = (number: number) => `run-${String(number).padStart(32, "0")}`;
  {
    await using scene = await open(bench);
    create(scene, CALLER, run(1));
    await first(scene);
    create(scene, OTHER, run(2));
    create(scene, { ...CALLER, principalKey: "api-key:b" }, run(3));
    scene.timeline.commit(() => [event("keepalive_refreshed", run(1), { request_id: CALLER.requestId })]);
  }
  await using scene = await open(bench);
  create(scene, CALLER, run(4));
  assert.ok(await scene.begin() instanceof FirstRequest);
});

Deno.test("an event that does not name its request may be of the work, on the run of the request only", async () => {
  using bench = new Bench();
  const [other, feedback] = [`run-${"f".repeat(32)}`, {
    session_id: "",
    rating: 1,
    category: "c",
    feedback: "",
  }];
  const work = { kinds: ["operator_feedback_submitted"], rebuild: undefined };
  const onRun = { ...work, path: `/v1/runs/${RUN}/feedback`, runIds: [RUN] };
  const onOther = { ...work, path: `/v1/runs/${other}/feedback`, runIds: [other] };
  {
    await using scene = await open(bench);
    create(scene);
    create(scene, CALLER, other);
    await first(scene, onRun);
    await first(scene, onOther);
    scene.timeline.commit(() => [event("operator_feedback_submitted", RUN, feedback)]);
  }
  await using scene = await open(bench);
  for (let time = 0; time < 2; time++) {
    await assert.rejects(scene.begin(onRun), { status: 409, message: /may have appended event 3 of run-0/ });
  }
  assert.ok(await scene.begin(onOther) instanceof FirstRequest);
});

Deno.test("two requests that take up an interrupted key at once get one answer", async () => {
  using bench = new Bench();
  {
    await using scene = await open(bench);
    await first(scene);
    create(scene);
  }
  await using scene = await open(bench);
  const both = await Promise.allSettled([scene.begin(), scene.begin()]);
  assert.deepEqual(both.map(({ status }) => status).sort(), ["fulfilled", "rejected"]);
  const rejected = both.find((result) => result.status === "rejected");
  assert.match(String(rejected?.reason), /still running/);
  assert.equal(JSON.parse(await textOf(await scene.begin())).runId, RUN);
});
