import assert from "node:assert/strict";
import { LIMITS } from "../../../src/contract/limits.ts";
import type { RunView } from "../../../src/model/runs/run.ts";
import type { EventQuery, StoredEvent } from "../../../src/store/timeline/event_reader.ts";
import { RecentEvents } from "../../../src/store/timeline/recent_events.ts";
import { all, Bench, created, event, prepared, randomFrom, RUN } from "../../support/timeline.ts";

const RUNS = Array.from({ length: 5 }, (_, number) => `run-${String(number).padStart(32, "0")}`);
const LONG = "x".repeat(LIMITS.timeline.recentPayloadCharactersMax);

/** The run before the event with `seq`, as `add` looks at it. */
function before(runId: string, events: readonly StoredEvent[]): RunView {
  return { runId, eventCount: events.length, lastSeq: events.at(-1)?.seq ?? 0 } as RunView;
}

function asked({ fromSeq = 1, toSeq = Infinity, kinds, limit = Infinity }: EventQuery) {
  const isWanted = typeof kinds === "function" ? kinds : (kind: string) => kinds?.has(kind) ?? true;
  return (events: readonly StoredEvent[]) =>
    events.filter(({ seq, kind }) => seq >= fromSeq && seq <= toSeq && isWanted(kind)).slice(0, limit);
}

Deno.test("what is read from memory is exactly what was written, within the bytes, whatever is dropped and forgotten", () => {
  const random = randomFrom(11);
  const bytesMax = 40_000;
  const recent = new RecentEvents(bytesMax);
  const written = new Map(RUNS.map((runId) => [runId, [] as StoredEvent[]]));
  let fromMemory = 0;
  for (let seq = 1; seq <= 6_000; seq++) {
    // For a while one run alone is written, then any of them.
    const runId = RUNS[Math.floor(seq / 1000) % 2 === 0 ? 0 : random(RUNS.length)]!;
    const events = written.get(runId)!;
    const kind = ["vlm", "context_observation"][random(2)]!;
    const stored = { seq, runId, streamId: "stream-0", ptsMs: seq, kind, payload: "p".repeat(random(200)) };
    // An event that is not kept takes those before it along.
    if (random(50) === 0) recent.forget(runId);
    else recent.add(before(runId, events), stored);
    events.push(stored);
    assert.ok(recent.bytes <= bytesMax, `${recent.bytes} bytes`);

    const readId = RUNS[random(RUNS.length)]!;
    const last = written.get(readId)!.at(-1)?.seq ?? 0;
    const query: EventQuery = {
      ...(random(4) > 0 && { fromSeq: Math.max(0, last - random(120)) }),
      ...(random(4) === 0 && { toSeq: last - random(10) }),
      ...(random(4) === 0 && { kinds: new Set(["vlm"]) }),
      ...(random(4) === 0 && { kinds: (one: string) => one.startsWith("c") }),
      ...(random(4) === 0 && { limit: random(20) }),
    };
    const read = recent.read(readId, query);
    if (read === undefined) continue;
    fromMemory++;
    assert.deepEqual(read, asked(query)(written.get(readId)!));
  }
  assert.ok(fromMemory > 1_000, `${fromMemory} readings were answered from memory`);
  for (const runId of RUNS) recent.forget(runId);
  assert.equal(recent.bytes, 0);
});

Deno.test("of a run that is written on its own, at least half of what a run may keep can be read", () => {
  const { recentEventsMax } = LIMITS.timeline;
  const recent = new RecentEvents();
  const events: StoredEvent[] = [];
  for (let seq = 1; seq <= 3 * recentEventsMax; seq++) {
    const stored = { seq, runId: RUN, streamId: "stream-0", ptsMs: 0, kind: "vlm", payload: "{}" };
    recent.add(before(RUN, events), stored);
    events.push(stored);
    const fromSeq = Math.max(1, seq - recentEventsMax / 2 + 1);
    assert.equal(recent.read(RUN, { fromSeq })?.length, seq - fromSeq + 1);
  }
  assert.equal(recent.read(RUN, {}), undefined);
  assert.deepEqual(recent.read(RUN, { fromSeq: 10_000 }), []);
});

Deno.test("events are the same from memory and, after a restart, from the log", async () => {
  using bench = new Bench();
  const awkward = [
    created(),
    event("vlm", { text: "größer \u{1f980} \ud800", exact: 12.50 }),
    { ...event("context_observation"), streamId: "front\tdoor\ud800" },
    event("odd\ud800kind"),
    event("vlm", { text: LONG }), // not kept
    event("vlm", { text: "after it" }),
    event("frames_decoded", prepared('{"rows":[1,2]}')), // not kept
    event("keepalive_refreshed", { number: 1 }),
    event("vlm", { number: 2 }),
  ];
  const readings = async (timeline: Awaited<ReturnType<Bench["open"]>>) => {
    const from = (fromSeq: number) => all(timeline.read(RUN, { fromSeq }));
    const pieces = await Array.fromAsync(timeline.readInPieces(RUN, { fromSeq: 8 }));
    return [
      ...awkward.map((_, at) => from(at)),
      from(100),
      pieces.flat(),
      timeline.readFirst(RUN, { fromSeq: 8, kinds: new Set(["vlm"]) }),
      timeline.readFirst(RUN, { fromSeq: 100 }),
    ];
  };
  const kept = await (async () => {
    await using timeline = await bench.open();
    for (const each of awkward) timeline.commit(() => [each]);
    return await readings(timeline);
  })();
  await using reopened = await bench.open();
  assert.deepEqual(await readings(reopened), kept);
  // The first event after the restart has none before it in memory.
  reopened.commit(() => [event("vlm", { number: 3 })]);
  assert.equal(all(reopened.read(RUN)).length, awkward.length + 1);
  assert.equal(all(reopened.read(RUN, { fromSeq: awkward.length + 1 })).length, 1);
});

Deno.test("a run that was deleted is read from the log, its end included", async () => {
  using bench = new Bench();
  await using timeline = await bench.open();
  timeline.commit(() => [created(), event("vlm")]);
  timeline.commit(() => [event("run_deleted")]);
  assert.deepEqual(all(timeline.read(RUN)).map(({ kind }) => kind), ["run_created", "vlm", "run_deleted"]);
  assert.deepEqual(all(timeline.read(RUN, { fromSeq: 3 })).map(({ kind }) => kind), ["run_deleted"]);
  assert.throws(() => timeline.commit(() => [event("vlm")]));
});

Deno.test("a commit that is refused leaves nothing to read in memory", async () => {
  using bench = new Bench();
  await using timeline = await bench.open();
  timeline.commit(() => [created()]);
  assert.throws(() => timeline.commit(() => [event("vlm"), event("vlm", () => "no JSON")]));
  assert.equal(all(timeline.read(RUN)).length, 1);
  assert.equal(all(timeline.read(RUN, { fromSeq: 2 })).length, 0);
});
