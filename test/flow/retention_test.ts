/** Passes of retention under a clock that the test moves: runs by age and size, holds, blobs, uploads, a disk that is full. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { Metrics } from "../../src/base/metrics.ts";
import { Retention, type RetentionRules } from "../../src/flow/retention/retention.ts";
import { RunStanding } from "../../src/flow/retention/run_standing.ts";
import type { NamedSource } from "../../src/model/sources/source_file.ts";
import { Blobs } from "../../src/store/blobs.ts";
import { checkDirectory } from "../../src/store/checks/directory_check.ts";
import type { Timeline } from "../../src/store/log/timeline.ts";
import { BlobSweep } from "../../src/store/removal/blob_sweep.ts";
import { all, Bench, created, event } from "../support/timeline.ts";

const HOUR_MS = 3_600_000;
const SMALL = { segmentBytes: 4_000 };
const OFF: RetentionRules = {
  runHours: undefined,
  runBytes: undefined,
  uploadHours: undefined,
  uploadBytes: undefined,
  freeBytes: undefined,
};
const id = (number: number) => `run-${String(number).padStart(32, "0")}`;

interface Place {
  readonly timeline: Timeline;
  readonly retention: Retention;
  readonly blobs: Blobs;
  readonly uploadRoot: string;
}

function place(
  bench: Bench,
  timeline: Timeline,
  rules: Partial<RetentionRules>,
  { named = [], room }: { named?: readonly Partial<NamedSource>[]; room?: () => number } = {},
): Place {
  const { dataDir, world } = bench;
  const uploadRoot = join(dataDir, "uploads");
  Deno.mkdirSync(uploadRoot, { recursive: true });
  const standing = new RunStanding({
    work: { isUnderWay: () => false },
    webhooks: { isBehind: () => false },
    mirror: null,
    named: { all: named as readonly NamedSource[] },
    streamTtlMs: HOUR_MS,
    runHours: rules.runHours,
    world,
  });
  const retention = new Retention({
    ...{
      timeline,
      rules: { ...OFF, ...rules },
      standing,
      dataDir,
      uploadRoot,
      world,
      metrics: new Metrics(),
    },
    room: () => Promise.resolve(room === undefined ? null : { free_bytes: room() }),
    stored: { recountBlobs: () => Promise.resolve() },
    sweep: (onRemoval) => new BlobSweep({ dataDir, timeline, world, log: world.log, onRemoval }),
  });
  return { timeline, retention, blobs: Blobs.open(dataDir, world), uploadRoot };
}

/** What is left of each run: its kinds. */
function kindsOf(timeline: Timeline, number: number): string {
  return all(timeline.read(id(number))).map(({ kind }) => kind).join(" ");
}

function setTime(path: string, ms: number): void {
  Deno.utimeSync(path, new Date(ms), new Date(ms));
}

function exists(path: string): boolean {
  try {
    return Deno.lstatSync(path).isFile;
  } catch {
    return false;
  }
}

/** The blob of a text, as old as the clock says, named by an event of the run. */
async function stored(
  { timeline, blobs }: Place,
  bench: Bench,
  number: number,
  text: string,
): Promise<string> {
  const { ref, sha256, mediaType } = await blobs.put(new TextEncoder().encode(text), "jpeg");
  const path = join(bench.dataDir, ref);
  setTime(path, bench.nowMs);
  const payload = { image_ref: ref, image_sha256: sha256, image_media_type: mediaType };
  timeline.commit(() => [event("keyframe_stored", payload, id(number))]);
  return path;
}

Deno.test("a week of a camera with a run a day: two days stay, four of everything else, and what is on hold stays whole", async () => {
  using bench = new Bench();
  const named = [{ name: "gate", retentionHours: 48 }];
  for (let day = 0; day < 8; day++) {
    await using timeline = await bench.open(SMALL); // a restart each day
    const { retention } = place(bench, timeline, { runHours: 96 }, { named });
    await using _ = retention;
    const [camera, other] = [id(10 + day), id(20 + day)];
    timeline.commit(
      () => [created(camera), event("live_source_opened", { source_uri: "source:gate" }, camera)],
    );
    timeline.commit(() => [created(other)]);
    for (let hour = 0; hour < 24; hour++) {
      bench.nowMs += HOUR_MS;
      timeline.commit(
        () => [event("marker_emitted", { hour }, camera), event("marker_emitted", { hour }, other)],
      );
      if (hour % 8 === 7) await retention.pass();
    }
    timeline.commit(() => [event("run_completed", {}, camera), event("run_completed", {}, other)]);
    if (day === 1) timeline.commit(() => [event("hold_placed", {}, camera)]);
  }
  await using timeline = await bench.open(SMALL);
  const { retention } = place(bench, timeline, { runHours: 96 }, { named });
  await using _ = retention;
  bench.nowMs += 1;
  const look = await retention.look({ principalKey: "api-key:a" } as Parameters<Retention["look"]>[0]);
  assert.deepEqual(look.goes.runs.map(({ run_id, reason }) => [run_id, reason]), [[id(23), "age"], [
    id(15),
    "age",
  ]]);
  assert.deepEqual(look.stays.runs.filter(({ reason }) => reason === "on_hold").map(({ run_id }) => run_id), [
    id(11),
  ]);
  await retention.pass();
  const isWhole = (number: number) => timeline.view.run(id(number))!.removedSeq === 0;
  assert.deepEqual([10, 11, 12, 13, 14, 15, 16, 17].filter(isWhole), [11, 16, 17]);
  assert.deepEqual([20, 21, 22, 23, 24, 25, 26, 27].filter(isWhole), [24, 25, 26, 27]);
  assert.equal(timeline.view.run(id(11))!.eventCount, 28);
  assert.equal(kindsOf(timeline, 10), "events_removed");
  assert.deepEqual(bench.lines, []);
  bench.dropSnapshot();
  const { findings } = await checkDirectory({ dataDir: bench.dataDir, uploadRoot: bench.dataDir });
  assert.ok(findings.isSound);
});

Deno.test("a blob goes when no event that is left names it and it is old; one that is stored again is young", async () => {
  using bench = new Bench();
  await using timeline = await bench.open(SMALL);
  const at = place(bench, timeline, { runHours: 1 });
  await using _ = at.retention;
  timeline.commit(() => [created(id(1)), created(id(2)), event("hold_placed", {}, id(2))]);
  const [own, shared] = [await stored(at, bench, 1, "own"), await stored(at, bench, 1, "shared")];
  await stored(at, bench, 2, "shared");
  const orphan = async (text: string, atMs: number) => {
    const { ref } = await at.blobs.put(new TextEncoder().encode(text), "wav");
    setTime(join(bench.dataDir, ref), atMs);
    return join(bench.dataDir, ref);
  };
  const [old, again] = [await orphan("old", bench.nowMs), await orphan("again", bench.nowMs)];
  timeline.commit(() => [event("run_completed", {}, id(1))]);
  bench.nowMs += 2 * HOUR_MS;
  const young = await orphan("young", bench.nowMs);
  await at.blobs.put(new TextEncoder().encode("again"), "wav");
  await at.retention.pass();
  const left = [own, shared, old, again, young].map(exists);
  assert.deepEqual(left, [false, true, false, true, true]);
  assert.equal(kindsOf(timeline, 1), "events_removed");
});

Deno.test("no blob goes while the log is damaged", async () => {
  using bench = new Bench();
  let paths: string[];
  {
    await using timeline = await bench.open(SMALL);
    const at = place(bench, timeline, {});
    await using _ = at.retention;
    timeline.commit(() => [created(id(1)), event("run_completed", {}, id(1)), created(id(2))]);
    paths = [await stored(at, bench, 2, "one"), await stored(at, bench, 2, "two")];
  }
  bench.edit((bytes) => bytes.with(bytes.length - 60, 0));
  bench.dropSnapshot();
  bench.nowMs += 3 * HOUR_MS;
  await using timeline = await bench.open(SMALL);
  const at = place(bench, timeline, { runHours: 1 });
  await using _ = at.retention;
  await at.retention.pass();
  assert.deepEqual(paths.map(exists), [true, true]);
  assert.equal(bench.lines.filter((line) => line.includes("blobs that no event names stay")).length, 1);
});

Deno.test("uploads go by age and by size, and not those of runs that need them", async () => {
  using bench = new Bench();
  await using timeline = await bench.open(SMALL);
  const at = place(bench, timeline, { uploadHours: 24, uploadBytes: 2 ** 20 });
  await using _ = at.retention;
  const upload = (name: string, ageHours: number, bytes = 10) => {
    Deno.writeFileSync(join(at.uploadRoot, name), new Uint8Array(bytes));
    setTime(join(at.uploadRoot, name), bench.nowMs - ageHours * HOUR_MS);
  };
  upload("old.mp4", 25);
  upload("held.mp4", 25);
  upload("first.mp4", 3, 600_000);
  upload("second.mp4", 2, 600_000);
  upload(".part__1", 99);
  timeline.commit(() => [
    created(id(1)),
    event("ingest_received", { source_uri: join(at.uploadRoot, "held.mp4") }, id(1)),
    event("hold_placed", {}, id(1)),
  ]);
  await at.retention.pass();
  const left = [...Deno.readDirSync(at.uploadRoot)].map(({ name }) => name).sort();
  assert.deepEqual(left, [".part__1", "held.mp4", "second.mp4"]);
});

Deno.test("with too little room the oldest runs go, with their blobs, until there is enough; held ones stay, and so does the rest", async () => {
  using bench = new Bench();
  await using timeline = await bench.open(SMALL);
  const paths: string[] = [];
  const room = () => 1_000_000 - 100_000 * paths.filter(exists).length;
  const at = place(bench, timeline, { freeBytes: 450_000 }, { room });
  await using _ = at.retention;
  for (let number = 0; number < 8; number++) {
    timeline.commit(() => [created(id(number))]);
    paths.push(await stored(at, bench, number, `picture ${number}`));
    timeline.commit(() => [event(number === 2 ? "hold_placed" : "run_completed", {}, id(number))]);
    bench.nowMs += HOUR_MS;
  }
  bench.nowMs += 2 * HOUR_MS;
  assert.equal(room(), 200_000);
  await at.retention.pass();
  assert.equal(room(), 500_000);
  assert.deepEqual(paths.map(exists), [false, false, true, false, true, true, true, true]);
  const { reason } = JSON.parse(all(timeline.read(id(0)))[0]!.payload);
  assert.equal(reason, "free_space");
});
