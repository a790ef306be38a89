/** The records of removed runs leave the log: what is left, how a start finds it, and what a crash at each
 * step leaves.
 */

import assert from "node:assert/strict";
import { EVENTS_REMOVED, type NewEvent, summaryOf } from "../../../src/model/runs/run.ts";
import { checkDirectory } from "../../../src/store/checks/directory_check.ts";
import type { Timeline } from "../../../src/store/timeline/timeline.ts";
import { yieldToEventLoop } from "../../../src/base/wait.ts";
import { all, Bench, created, event, randomFrom, range, seqs } from "../../support/timeline.ts";

const [A, B, C] = [1, 2, 3].map((number) => `run-${String(number).padStart(32, "0")}`) as [
  string,
  string,
  string,
];
const SMALL = { segmentBytes: 3_000 };

function removal(timeline: Timeline, runId: string): NewEvent {
  const run = timeline.view.run(runId)!;
  return event(EVENTS_REMOVED, {
    reason: "age",
    events: run.eventCount,
    bytes: run.logBytes,
    through_seq: run.lastSeq,
    run: summaryOf(run),
  }, runId);
}

/** Writes three runs whose events are mixed, in commits of several; A and C have ended. */
async function mixed(bench: Bench): Promise<void> {
  await using timeline = await bench.open(SMALL);
  const random = randomFrom(7);
  timeline.commit(() => [created(A), created(B), created(C, "api-key:b")]);
  for (let number = 0; number < 150; number++) {
    bench.nowMs += 1_000;
    timeline.commit(() =>
      range(0, random(3)).map(() =>
        event("marker_emitted", { number, text: "x".repeat(random(80)) }, [A, B, C][random(3)]!)
      )
    );
  }
  timeline.commit(() => [event("run_completed", {}, A), event("run_completed", {}, C)]);
}

/** All that a reader can see, positions and files left out. */
function contentOf(timeline: Timeline): unknown {
  const runs = [A, B, C].map((runId) => ({ ...timeline.view.run(runId)! }));
  return {
    runs,
    lastSeq: timeline.view.lastSeq,
    listed: ["api-key:a", "api-key:b"].map((key) => [...timeline.view.runsOf(key)].map(({ runId }) => runId)),
    logBytes: ["api-key:a", "api-key:b"].map((key) => timeline.view.logBytes(key)),
    events: runs.map(({ runId }) => all(timeline.read(runId))),
    markers: seqs(timeline.readAll({ kinds: new Set(["marker_emitted"]) })),
    one: range(1, timeline.view.lastSeq).map((seq) => timeline.readOne(seq)?.payload),
  };
}

Deno.test("a removed run keeps one event, others keep all, before and after the records go, from the snapshot and the log", async () => {
  using bench = new Bench();
  await mixed(bench);
  let content: unknown;
  {
    await using timeline = await bench.open(SMALL);
    const before = all(timeline.read(B));
    const state = timeline.view.run(A)!.lastActivityMs;
    bench.nowMs += 1e9;
    timeline.commit(() => [removal(timeline, A)]);
    const run = timeline.view.run(A)!;
    assert.deepEqual(all(timeline.read(A)).map(({ kind }) => kind), [EVENTS_REMOVED]);
    assert.equal(run.lastActivityMs, state);
    assert.equal(run.eventCount, 1);
    assert.equal(run.state, "completed");
    content = contentOf(timeline);
    assert.equal(Deno.readTextFileSync(`${bench.dataDir}/format`), "1\n");

    const bytes = timeline.stats.bytes;
    const removed = await timeline.removeRecords();
    assert.ok(removed.events > 50 && removed.failed === 0, JSON.stringify(removed));
    assert.ok(timeline.stats.bytes < bytes * 0.9);
    assert.deepEqual(contentOf(timeline), content);
    assert.deepEqual(all(timeline.read(B)), before);
    assert.equal(Deno.readTextFileSync(`${bench.dataDir}/format`), "2\n");
    const again = await timeline.removeRecords();
    assert.deepEqual(again, { events: 0, bytes: 0, failed: 0 });
    // The log goes on, and numbers do too.
    const [next] = timeline.commit(() => [event("marker_emitted", {}, B)]);
    assert.equal(next!.seq, timeline.view.lastSeq);
    content = contentOf(timeline);
  }
  for (const how of ["snapshot", "log"]) {
    if (how === "log") bench.dropSnapshot();
    const { findings } = await checkDirectory({ dataDir: bench.dataDir, uploadRoot: bench.dataDir });
    assert.ok(findings.isSound, JSON.stringify(findings));
    await using timeline = await bench.open(SMALL);
    assert.deepEqual(contentOf(timeline), content, how);
    assert.deepEqual([bench.damages, bench.lines], [[], []], how);
    const full = bench.segments().slice(0, -1).map((name) => Deno.readTextFileSync(bench.path(name))).join(
      "",
    );
    assert.equal(full.includes(A), false);
  }
});

Deno.test("whatever a crash during a removal leaves is read as the removal left it, and readers see nothing of it", async () => {
  using bench = new Bench();
  await mixed(bench);
  await using timeline = await bench.open(SMALL);
  timeline.commit(() => [removal(timeline, C)]);
  const content = contentOf(timeline);
  let isDone = false;
  const removing = timeline.removeRecords().finally(() => isDone = true);
  const copies: Bench[] = [];
  while (!isDone) {
    copies.push(bench.crashCopy()); // in one turn, as a kill would leave it
    if (copies.length % 8 === 0) assert.deepEqual(contentOf(timeline), content);
    await yieldToEventLoop();
  }
  const step = Math.ceil(copies.length / 12);
  assert.ok(copies.length > 5, `${copies.length}`);
  for (const [number, crashed] of copies.entries()) {
    using copy = crashed;
    if (number % step !== 0 && number < copies.length - 1) continue;
    await using after = await copy.open(SMALL);
    assert.deepEqual(contentOf(after), content, `copy ${number}`);
    assert.deepEqual(copy.damages, []);
    assert.equal((await after.removeRecords()).failed, 0);
    assert.deepEqual(contentOf(after), content, `copy ${number}, removed`);
    assert.equal([...Deno.readDirSync(copy.directory)].some(({ name }) => name.endsWith(".rewrite")), false);
  }
  assert.ok((await removing).events > 50);
  assert.deepEqual(contentOf(timeline), content);
});

Deno.test("a damaged segment keeps everything, and a run that is read while it is removed is not cut short in silence", async () => {
  using bench = new Bench();
  await mixed(bench);
  const [, second] = bench.segments();
  bench.edit((bytes) => bytes.with(bytes.length >> 1, 0), second);
  bench.dropSnapshot();
  await using timeline = await bench.open(SMALL);
  const reading = timeline.readAhead(C, { limit: 300 })[Symbol.asyncIterator]();
  const sizeBytes = Deno.statSync(bench.path(second!)).size;
  timeline.commit(() => [removal(timeline, C)]);
  const { failed } = await timeline.removeRecords();
  assert.equal(failed, 1);
  assert.equal(Deno.statSync(bench.path(second!)).size, sizeBytes);
  assert.deepEqual(bench.lines.filter((line) => line.includes("cannot remove")), [
    "warn cannot remove events from a segment",
  ]);
  await assert.doesNotReject(reading.next()); // begun before, first read after: what is left
  const twice = timeline.read(B)[Symbol.iterator]();
  assert.equal(twice.next().done, false);
});
