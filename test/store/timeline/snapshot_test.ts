import assert from "node:assert/strict";
import { yieldToEventLoop } from "../../../src/base/wait.ts";
import type { Timeline } from "../../../src/store/timeline/timeline.ts";
import { all, Bench, created, event, fill, range, RUN, seqs } from "../../support/timeline.ts";

/** Everything that can be read from the timeline. */
function contentOf(timeline: Timeline): unknown {
  const runs = [...timeline.view.runsOf("api-key:a")];
  return {
    lastSeq: timeline.view.lastSeq,
    stats: timeline.stats,
    runs: runs.map((run) => ({ ...run })),
    events: runs.map((run) => all(timeline.read(run.runId))),
    markers: all(timeline.readAll({ kinds: new Set(["marker_emitted"]) })).map((stored) => stored.seq),
    deep: seqs(timeline.read(RUN, { fromSeq: 700, limit: 3 })),
  };
}

const usedSnapshot = (bench: Bench) => !bench.lines.some((line) => line.includes("reading the whole log"));

async function fillMany(bench: Bench): Promise<void> {
  await using timeline = await bench.open({ segmentBytes: 20_000 });
  for (const run of range(1, 3)) timeline.commit(() => [created(`${RUN.slice(0, -1)}${run}`)]);
  for (let number = 1; number <= 1500; number++) {
    const runId = `${RUN.slice(0, -1)}${1 + number % 3 % 2}`;
    bench.nowMs += 10;
    const kinds = ["marker_emitted", "ingest_received", "frames_decoded", "vlm"];
    timeline.commit(() => [event(kinds[number % 4]!, { source_uri: `/clip/${number}` }, runId)]);
  }
  timeline.commit(() => [event("hold_placed", {}, `${RUN.slice(0, -1)}2`)]);
  timeline.commit(() => [event("run_deleted", {}, `${RUN.slice(0, -1)}3`)]);
}

Deno.test("a start from the snapshot gives exactly the same as a start from the log", async () => {
  using bench = new Bench();
  await fillMany(bench);
  const known: unknown[] = [];
  for (const how of ["snapshot", "log", "snapshot and a tail", "log again"]) {
    if (how === "log again") bench.dropSnapshot();
    await using timeline = await bench.open({ segmentBytes: 20_000 });
    known.push(contentOf(timeline));
    assert.equal(usedSnapshot(bench), true, how);
    if (how === "snapshot") bench.dropSnapshot();
    if (how === "log") {
      // As after a crash: an older snapshot with a longer log.
      timeline.commit(() => [event("marker_emitted"), event("keepalive_refreshed")]);
      using copy = bench.crashCopy();
      const whole = contentOf(timeline);
      await timeline.close();
      await using after = await copy.open({ segmentBytes: 20_000 });
      assert.deepEqual(contentOf(after), whole);
    }
  }
  assert.deepEqual(known[0], known[1]);
  assert.deepEqual(known[2], known[3]);
});

Deno.test("a snapshot that is damaged in any byte is ignored, and the log is read", async () => {
  using bench = new Bench();
  await fill(bench, 20);
  const whole = Deno.readFileSync(bench.path("snapshot"));
  let expected: unknown;
  {
    await using timeline = await bench.open();
    expected = contentOf(timeline);
    assert.equal(usedSnapshot(bench), true);
  }
  const versions: [string, Uint8Array][] = [
    ["empty", new Uint8Array()],
    ["garbage", new Uint8Array(5000).fill(65)],
    ["cut short", whole.subarray(0, -1)],
    ["cut in half", whole.subarray(0, whole.length / 2)],
    ["another format", whole.slice().fill(9, 8, 9)],
    ["too long a head", whole.slice().fill(255, 12, 16)],
  ];
  for (let at = 0; at < whole.length; at += 13) {
    const bytes = whole.slice();
    bytes[at]! ^= 1 << at % 8;
    versions.push([`bit in byte ${at}`, bytes]);
  }
  for (const [what, bytes] of versions) {
    Deno.writeFileSync(bench.path("snapshot"), bytes);
    await using timeline = await bench.open();
    assert.equal(usedSnapshot(bench), false, what);
    assert.deepEqual(contentOf(timeline), expected, what);
    assert.deepEqual(bench.damages, [], what);
  }
});

Deno.test("a snapshot with more events than the log is ignored, and lost sequence numbers are not used again", async () => {
  using bench = new Bench();
  await fill(bench, 20, { segmentBytes: 1000 });
  Deno.removeSync(bench.path(bench.segments().at(-1)!));
  const kept = Number(bench.segments().length);
  await using timeline = await bench.open();
  assert.equal(usedSnapshot(bench), false);
  const left = seqs(timeline.read(RUN));
  assert.deepEqual(left, range(1, left.length));
  assert.ok(left.length < 20 && kept > 1);
  assert.equal(timeline.stats.damagedRecords, 20 - left.length);
  assert.equal(timeline.commit(() => [event("vlm")])[0]!.seq, 21);
});

Deno.test("a snapshot of another log with the same file names is ignored", async () => {
  using mine = new Bench();
  using other = new Bench();
  await fill(mine, 20);
  await fill(other, 30);
  Deno.copyFileSync(mine.path("snapshot"), other.path("snapshot"));
  other.edit((bytes) => bytes.slice(100));
  await using timeline = await other.open();
  assert.equal(usedSnapshot(other), false);
  assert.deepEqual(seqs(timeline.read(RUN)), range(2, 30));
});

Deno.test("a full segment causes a snapshot while runs change and begin, and a crash after it loses nothing", async () => {
  using bench = new Bench();
  // Long payloads, so that the log is much larger than its snapshot, whose runs are written in several turns.
  const text = "x".repeat(8000);
  const runs = range(1, 600).map((number) => `run-${String(number).padStart(32, "0")}`);
  const timeline = await bench.open({ segmentBytes: 50_000 });
  timeline.commit(() => runs.map((runId) => created(runId)));
  for (let number = 1001; !hasSnapshot(bench); number++) {
    timeline.commit(() => [
      event("vlm", { text }, runs[0]),
      event("ingest_received", { source_uri: `/clip/${number}` }, runs.at(-1)),
      created(`run-${String(number).padStart(32, "0")}`),
    ]);
    await yieldToEventLoop();
  }
  timeline.commit(() => [event("keepalive_refreshed")]);
  using copy = bench.crashCopy();
  await using after = await copy.open();
  assert.equal(usedSnapshot(copy), true);
  assert.deepEqual(contentOf(after), contentOf(timeline));
  await timeline.close();
});

function hasSnapshot(bench: Bench): boolean {
  return [...Deno.readDirSync(bench.directory)].some((entry) => entry.name === "snapshot");
}
