/** Each event that announces an explanation gets exactly one, whatever comes first. */

import assert from "node:assert/strict";
import { Metrics } from "../../../../src/contract/metrics.ts";
import { NEVER_ABORTED } from "../../../../src/base/wait.ts";
import { Enricher } from "../../../../src/flow/live/describing/enricher.ts";
import { failRunsLeftOpen } from "../../../../src/flow/live/restart.ts";
import { LIMITS } from "../../../../src/contract/limits.ts";
import type { NewEvent } from "../../../../src/model/runs/run.ts";
import { ManualClock } from "../../../support/manual_clock.ts";
import { all, Bench, event, silentWorld } from "../../../support/timeline.ts";

const RUN = `run-${"1".repeat(32)}`;

function zone(frameIndex: number, announced: object = { enrichment_deadline_ms: 5_000 }): NewEvent {
  const assertion = { policy_id: "dock" };
  const payload = { session_id: "s", frame_index: frameIndex, pts_ms: 40, confidence: 0.7, assertion };
  return event("restricted_zone_activity_entered", { ...payload, ...announced }, RUN);
}

function start(options: { hasModel?: boolean } = {}) {
  const clock = new ManualClock();
  const written: { cause: unknown; says: unknown }[] = [];
  const test = { clock, written, isFull: false, attempts: 0 };
  const enricher = new Enricher({
    plan: { on: ["zone"], deadlineMs: 5_000 },
    hasModel: () => options.hasModel ?? true,
    append: (events) => {
      test.attempts++;
      if (test.isFull) return false;
      for (const { runId, payload } of events) {
        assert.equal(runId, RUN);
        const { cause_seq, description, reason } = payload as Record<string, unknown>;
        written.push({ cause: cause_seq, says: description ?? reason });
      }
      return true;
    },
    metrics: new Metrics(),
    world: { ...silentWorld(() => 0), sleep: (ms, signal) => clock.sleep(ms, signal) },
  });
  return {
    ...test,
    enricher,
    setFull: (isFull: boolean) => void (test.isFull = isFull),
    tries: () => test.attempts,
  };
}

Deno.test("the first of description, drop, deadline and end explains an event, and nothing does it again", async () => {
  const { enricher, written, clock } = start();
  assert.deepEqual(enricher.announced("zone"), { enrichment_deadline_ms: 5_000 });
  assert.deepEqual(enricher.announced("trigger"), {});
  enricher.note(zone(0, {}), 9);
  for (const seq of [10, 11, 12, 13]) enricher.note(zone(seq), seq);
  enricher.settle(10, { description: "A van." });
  enricher.settle(10, { description: "Another van." });
  enricher.settle(11, { reason: "overloaded" });
  await clock.advance(4_999);
  enricher.note(zone(14), 14);
  await clock.advance(1);
  enricher.settle(12, { description: "Too late." });
  await enricher.finish(NEVER_ABORTED);
  enricher.settle(14, { description: "Too late." });
  assert.deepEqual(written, [
    { cause: 10, says: "A van." },
    { cause: 11, says: "overloaded" },
    { cause: 12, says: "deadline" },
    { cause: 13, says: "deadline" },
    { cause: 14, says: "session_ended" },
  ]);
  assert.equal(clock.sleeping, 0);
});

Deno.test("without a model, and beyond the bound, an event is explained at once", async () => {
  const none = start({ hasModel: false });
  none.enricher.note(zone(1), 1);
  assert.deepEqual(none.written, [{ cause: 1, says: "no_model" }]);
  const { enricher, written } = start();
  const most = LIMITS.live.enrichmentsOpen;
  for (let seq = 1; seq <= most + 1; seq++) enricher.note(zone(seq), seq);
  assert.deepEqual(written, [{ cause: most + 1, says: "overloaded" }]);
  await enricher.finish(NEVER_ABORTED);
  assert.equal(written.length, most + 1);
  assert.equal(none.clock.sleeping, 0);
});

Deno.test("an explanation that the disk refuses is written when it takes it, and given up after the end of the session", async () => {
  const { enricher, written, clock, setFull, tries } = start();
  setFull(true);
  enricher.note(zone(1), 1);
  enricher.settle(1, { description: "A van." });
  await clock.advance(1_000);
  assert.deepEqual([written.length, tries()], [0, 2]);
  setFull(false);
  await clock.advance(1_000);
  assert.deepEqual(written, [{ cause: 1, says: "A van." }]);
  setFull(true);
  enricher.note(zone(2), 2);
  const ended = enricher.finish(NEVER_ABORTED);
  await clock.advance(20_000);
  await ended;
  assert.deepEqual([written.length, clock.sleeping], [1, 0]);
});

Deno.test("after a crash each open event is explained once at the next start, also of the run before a roll-over", async () => {
  using bench = new Bench();
  const NEXT = RUN.replaceAll("1", "2");
  await using timeline = await bench.open();
  const created = (runId: string, predecessor_run_id: string | null) =>
    event(
      "run_created",
      { principal_key: "public", session_id: "s", source: "live", predecessor_run_id },
      runId,
    );
  const seqs = timeline.commit(() => [
    created(RUN, null),
    zone(1),
    zone(2),
    event("event_enriched", { cause_seq: 2, description: "A van." }, RUN),
    zone(3, {}),
    event(
      "run_completed",
      { source: "live", session_id: "s", reason: "rolled_over", successor_run_id: NEXT },
      RUN,
    ),
    created(NEXT, RUN),
    { ...zone(9), runId: NEXT },
  ]).map(({ seq }) => seq);
  failRunsLeftOpen(timeline, bench.world, new Metrics());
  failRunsLeftOpen(timeline, bench.world, new Metrics());
  const added = all(timeline.readAll({ fromSeq: seqs.at(-1)! + 1 })).map(({ kind, runId, payload }) => {
    const { cause_seq, reason, zone } = JSON.parse(payload);
    return { kind, runId, cause_seq, reason, zone };
  });
  const explained = { kind: "event_enriched", reason: "service_restarted", zone: "dock" };
  assert.deepEqual(added, [
    { ...explained, runId: RUN, cause_seq: 3 },
    { ...explained, runId: NEXT, cause_seq: 8 },
    { kind: "run_failed", runId: NEXT, cause_seq: undefined, reason: "service_restarted", zone: undefined },
  ]);
});

Deno.test("the next start reads of an open run only what came within the longest deadlines before its end", async () => {
  using bench = new Bench();
  await using timeline = await bench.open();
  timeline.commit(() => [
    event("run_created", { principal_key: "public", session_id: "s", source: "live" }, RUN),
    event("live_source_opened", { session_id: "s", source_uri: "source:gate" }, RUN),
  ]);
  const longMs = LIMITS.live.enrichDeadlineMs.maximum;
  for (let number = 1; number <= 400; number++) {
    bench.nowMs += longMs / 10;
    const [cause] = timeline.commit(() => [zone(number)]);
    const isExplained = number < 398 && number > 1; // the first was not, long ago
    if (isExplained) timeline.commit(() => [event("event_enriched", { cause_seq: cause!.seq }, RUN)]);
  }
  let given = 0;
  const counting = Object.create(timeline, {
    view: { get: () => timeline.view },
    commit: { value: timeline.commit.bind(timeline) },
    read: {
      value: (...query: Parameters<typeof timeline.read>) => {
        const batches = [...timeline.read(...query)];
        given += batches.flat().length;
        return batches;
      },
    },
  });
  const before = timeline.view.lastSeq;
  failRunsLeftOpen(counting, bench.world, new Metrics());
  const added = all(timeline.readAll({ fromSeq: before + 1 })).map(({ kind }) => kind);
  assert.deepEqual(added, ["event_enriched", "event_enriched", "event_enriched", "run_failed"]);
  assert.ok(given < 80, `${given} events were read`);
});
