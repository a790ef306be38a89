import assert from "node:assert/strict";
import type { NewEvent } from "../../../src/model/runs/run.ts";
import { isTerminal, statusOf } from "../../../src/model/runs/run.ts";
import type { Timeline } from "../../../src/store/timeline/timeline.ts";
import type { StoredEvent } from "../../../src/store/timeline/event_reader.ts";
import { all, Bench, created, event, randomFrom, range } from "../../support/timeline.ts";

/*
 * Random commits, restarts, crashes (a copy of the folder with its last write torn at random) and lost
 * snapshots. After each of them everything that can be read is compared with a plain array of events.
 */
const KINDS = [
  "vlm",
  "marker_emitted",
  "ingest_received",
  "frames_decoded",
  "run_completed",
  "keepalive_refreshed",
];
const TTL_MS = 60_000;
const RUNS = range(1, 12).map((number) => `run-${number.toString(16).padStart(32, "0")}`);
const PRINCIPALS = ["public", "api-key:a", "api-key:b"];

interface Model {
  events: StoredEvent[];
  /** How many events each commit had, in order. */
  commits: number[];
}

for (const seed of [1, 2, 3, 4, 5, 6]) {
  Deno.test(`whatever happens, the timeline knows what an array of the events knows (seed ${seed})`, async () => {
    const random = randomFrom(seed * 7919);
    const pick = <T>(items: readonly T[]) => items[random(items.length)]!;
    let bench = new Bench();
    const options = { segmentBytes: pick([700, 5000, 50_000]) };
    let timeline = await bench.open(options);
    const model: Model = { events: [], commits: [] };
    try {
      for (let step = 0; step < 250; step++) {
        const what = random(100);
        bench.nowMs += random(2) ? random(5000) : 0;
        if (what < 85) commitRandom(timeline, model, bench.nowMs, random);
        else if (what < 92) {
          await timeline.close();
          if (random(3) === 0) bench.dropSnapshot();
          timeline = await bench.open(options);
          assert.deepEqual(bench.damages, []);
        } else if (what < 97) {
          const copy = bench.crashCopy();
          copy.nowMs = bench.nowMs;
          await timeline.close();
          bench[Symbol.dispose]();
          bench = copy;
          if (random(2)) tearLastCommit(bench, model, random);
          timeline = await bench.open(options);
          assert.deepEqual(bench.damages, []);
        } else compare(timeline, model, bench.nowMs, random);
      }
      compare(timeline, model, bench.nowMs, random);
    } finally {
      await timeline.close();
      bench[Symbol.dispose]();
    }
  });
}

function commitRandom(
  timeline: Timeline,
  model: Model,
  nowMs: number,
  random: (below: number) => number,
): void {
  const deleted = new Set(
    model.events.filter((stored) => stored.kind === "run_deleted").map((stored) => stored.runId),
  );
  const events: NewEvent[] = [];
  for (let count = 1 + random(random(4) === 0 ? 40 : 3); count > 0; count--) {
    const runId = RUNS[random(RUNS.length)]!;
    if (deleted.has(runId)) continue;
    const what = random(60);
    if (what === 0) {
      events.push(event("run_deleted", {}, runId));
      deleted.add(runId);
    } else if (what < 5) events.push(created(runId, PRINCIPALS[random(3)]!));
    else {
      const payload = { n: random(1000), source_uri: `/clip/${random(9)}`, text: "é\t\n".repeat(random(20)) };
      events.push(event(KINDS[random(KINDS.length)]!, payload, runId));
    }
  }
  const committed = timeline.commit(() => events);
  assert.equal(committed.length, events.length);
  if (events.length === 0) return;
  model.commits.push(events.length);
  events.forEach(({ kind, runId, payload }, at) => {
    const seq = model.events.length + 1;
    assert.equal(committed[at]!.seq, seq);
    model.events.push({
      seq,
      runId,
      streamId: "stream-0",
      ptsMs: nowMs,
      kind,
      payload: JSON.stringify(payload),
    });
  });
}

/** Cuts the last segment inside the last commit, so that nothing of this commit may be read. */
function tearLastCommit(bench: Bench, model: Model, random: (below: number) => number): void {
  const name = bench.segments().at(-1);
  if (name === undefined) return;
  const bytes = Deno.readFileSync(bench.path(name));
  const starts = range(0, bytes.length - 1).filter((at) => at === 0 || bytes[at - 1] === 0x0a);
  const count = model.commits.at(-1)!;
  // An empty segment, or one whose last commit was torn before.
  if (starts.length < count || bytes.length === 0) return;
  const from = starts[starts.length - count]!;
  const to = from + random(bytes.length - 1 - from);
  Deno.truncateSync(bench.path(name), to);
  // A snapshot written at closing covers the whole log; after such a crash there is only an older one, or
  // none.
  if ([...Deno.readDirSync(bench.directory)].some((entry) => entry.name === "snapshot")) bench.dropSnapshot();
  model.commits.pop();
  model.events.length -= count;
}

function compare(timeline: Timeline, model: Model, nowMs: number, random: (below: number) => number): void {
  assert.equal(timeline.view.lastSeq, model.events.length);
  assert.equal(timeline.stats.events, model.events.length);
  assert.deepEqual(all(timeline.readAll({})), model.events);
  for (const runId of RUNS) {
    const own = model.events.filter((stored) => stored.runId === runId);
    assert.deepEqual(all(timeline.read(runId)), own);
    const fromSeq = random(model.events.length + 2);
    const kind = KINDS[random(KINDS.length)]!;
    assert.deepEqual(
      all(timeline.read(runId, { fromSeq, kinds: new Set([kind]), limit: 5 })),
      own.filter((stored) => stored.seq >= fromSeq && stored.kind === kind).slice(0, 5),
    );
    assert.deepEqual(describe(timeline, runId), expectedRun(own));
  }
  for (const principal of PRINCIPALS) {
    const runs = [...timeline.view.runsOf(principal)];
    const expected = RUNS.map((runId) => expectedRun(model.events.filter((stored) => stored.runId === runId)))
      .filter((run) => run !== undefined && run.principalKey === principal && !run.deleted);
    assert.deepEqual(runs.map((run) => run.runId).sort(), expected.map((run) => run!.runId).sort());
    assert.deepEqual(
      runs.map((run) => run.createdMs),
      runs.map((run) => run.createdMs).sort((a, b) => a - b),
    );
    const active = runs.filter((run) => !isTerminal(statusOf(run, nowMs, TTL_MS))).length;
    assert.equal(timeline.view.activeCount(principal, nowMs, TTL_MS), active);
  }
}

function describe(timeline: Timeline, runId: string) {
  const run = timeline.view.run(runId);
  if (run === undefined) return undefined;
  const {
    principalKey,
    state,
    sourceUri,
    createdMs,
    lastActivityMs,
    deleted,
    eventCount,
    latestFramesDecodedSeq,
  } = run;
  return {
    runId,
    principalKey,
    state,
    sourceUri,
    createdMs,
    lastActivityMs,
    deleted,
    eventCount,
    latestFramesDecodedSeq,
  };
}

/** The state of a run, computed from its events in a simple way. */
function expectedRun(own: StoredEvent[]): ReturnType<typeof describe> {
  const creation = own.find((stored) => stored.kind === "run_created");
  if (creation === undefined) return undefined;
  const ingest = own.find((stored) => stored.kind === "ingest_received");
  const last = own.findLast((stored) =>
    ["run_created", "ingest_received", "keepalive_refreshed", "run_completed"].includes(stored.kind)
  )!;
  return {
    runId: creation.runId,
    principalKey: JSON.parse(creation.payload).principal_key,
    state: last.kind === "run_created"
      ? "pending"
      : last.kind === "run_completed"
      ? "completed"
      : "processing",
    sourceUri: ingest === undefined ? "" : JSON.parse(ingest.payload).source_uri,
    createdMs: creation.ptsMs,
    lastActivityMs: Math.max(...own.map((stored) => stored.ptsMs)),
    deleted: own.some((stored) => stored.kind === "run_deleted"),
    eventCount: own.length,
    latestFramesDecodedSeq: own.findLast((stored) => stored.kind === "frames_decoded")?.seq ?? 0,
  };
}
