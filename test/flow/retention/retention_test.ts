/** Passes of retention under a clock that the test moves: runs by age and size, holds, blobs, uploads, a disk
 * that is full.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { Metrics } from "../../../src/contract/metrics.ts";
import { AgeClock } from "../../../src/flow/retention/age_clock.ts";
import { Retention, type RetentionRules } from "../../../src/flow/retention/retention.ts";
import { RecordingRemoval } from "../../../src/flow/retention/recording_removal.ts";
import { RunStanding } from "../../../src/flow/retention/run_standing.ts";
import type { NamedSource } from "../../../src/model/sources/source_file.ts";
import { type BlobKind, Blobs } from "../../../src/store/media/blobs.ts";
import { filesBelow } from "../../../src/store/files/folder.ts";
import { writeBundle } from "../../../src/store/bundle/run_bundle.ts";
import { yieldToEventLoop } from "../../../src/base/wait.ts";
import { Recordings } from "../../../src/store/recordings/recordings.ts";
import { checkDirectory } from "../../../src/store/checks/directory_check.ts";
import type { Timeline } from "../../../src/store/timeline/timeline.ts";
import { BlobSweep } from "../../../src/store/media/blob_sweep.ts";
import { StoredBytes } from "../../../src/store/space/stored_bytes.ts";
import { all, Bench, created, event } from "../../support/timeline.ts";

const HOUR_MS = 3_600_000;
const SMALL = { segmentBytes: 4_000 };
const OFF: RetentionRules = {
  runHours: undefined,
  runBytes: undefined,
  endedRuns: undefined,
  pictureHours: undefined,
  pictureBytes: undefined,
  clipHours: undefined,
  clipBytes: undefined,
  soundHours: undefined,
  soundBytes: undefined,
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
  readonly recordings: Recordings;
}

function place(
  bench: Bench,
  timeline: Timeline,
  rules: Partial<RetentionRules>,
  { named = [], room, ages }: {
    named?: readonly Partial<NamedSource>[];
    room?: () => number;
    ages?: AgeClock;
  } = {},
): Place {
  const { dataDir, world } = bench;
  const uploadRoot = join(dataDir, "uploads");
  Deno.mkdirSync(uploadRoot, { recursive: true });
  const clock = ages ?? world;
  const standing = new RunStanding({
    work: { isUnderWay: () => false },
    webhooks: { isBehind: () => false },
    mirror: null,
    named: { all: named as readonly NamedSource[] },
    streamTtlMs: HOUR_MS,
    runHours: rules.runHours,
    world: clock,
  });
  const recordings = Recordings.open(dataDir, world);
  const metrics = new Metrics();
  const sources = { all: named as readonly NamedSource[] };
  const retention = new Retention({
    ...{
      timeline,
      rules: { ...OFF, ...rules },
      standing,
      dataDir,
      uploadRoot,
      world,
      ...(ages && { ages }),
      metrics,
      recordings: new RecordingRemoval({ recordings, named: sources, metrics, world: clock, log: world.log }),
    },
    room: () => Promise.resolve(room === undefined ? null : { free_bytes: room() }),
    stored: {
      recountBlobs: () => Promise.resolve(),
      blobBytesOfRuns: (signal) =>
        StoredBytes.open({
          ...{ dataDir, uploadRoot, timeline, world, metrics },
          quotaBytes: undefined,
        }).blobBytesOfRuns(signal),
    },
    sweep: (onRemoval) => new BlobSweep({ dataDir, timeline, world: clock, log: world.log, onRemoval }),
  });
  return { timeline, retention, blobs: Blobs.open(dataDir, world), uploadRoot, recordings };
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
  kind: BlobKind = "jpeg",
): Promise<string> {
  const { ref, sha256, mediaType } = await blobs.put(new TextEncoder().encode(text), kind);
  const path = join(bench.dataDir, ref);
  setTime(path, bench.nowMs);
  const payload = kind === "mp4"
    ? { sha256 }
    : { image_ref: ref, image_sha256: sha256, image_media_type: mediaType };
  timeline.commit(() => [event(kind === "mp4" ? "clip_stored" : "keyframe_stored", payload, id(number))]);
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

/** The media that were removed of each run that has lost any: how many, why, and up to which event. */
function mediaRemoved(timeline: Timeline): unknown[] {
  return all(timeline.readAll({ kinds: new Set(["media_removed"]) })).map(({ runId, payload }) => {
    const { media, reason, blobs } = JSON.parse(payload);
    return [Number(runId.slice(-4)), media, reason, blobs];
  });
}

async function checked(bench: Bench): Promise<string[]> {
  const { findings } = await checkDirectory({ dataDir: bench.dataDir, uploadRoot: bench.dataDir });
  return [...findings.damage, ...findings.notes].filter(({ kind }) => kind !== "strange_file")
    .map(({ kind, path }) => `${kind} ${path}`);
}

Deno.test("media go by their own age and size while their events stay; what is on hold, shared or still young stays", async () => {
  using bench = new Bench();
  const named = [{ name: "gate", retentionHours: null, mediaHours: { clip: 2 } }];
  const rules = { pictureHours: 4, clipHours: 48, clipBytes: 2 ** 20 };
  const text = (letter: string) => letter.repeat(600_000);
  let paths: string[];
  {
    await using timeline = await bench.open(SMALL);
    const at = place(bench, timeline, rules, { named });
    await using _ = at.retention;
    timeline.commit(() => [1, 2, 3].map((number) => created(id(number))));
    timeline.commit(() => [
      event("live_source_opened", { source_uri: "source:gate" }, id(1)),
      event("hold_placed", {}, id(3)),
    ]);
    paths = [
      await stored(at, bench, 1, "picture"),
      await stored(at, bench, 1, "shared"),
      await stored(at, bench, 3, "shared"),
      await stored(at, bench, 1, "clip of the gate", "mp4"),
      await stored(at, bench, 2, text("a"), "mp4"),
    ];
    bench.nowMs += 3 * HOUR_MS;
    paths.push(await stored(at, bench, 2, text("b"), "mp4"), await stored(at, bench, 1, "later"));
    bench.nowMs += 2 * HOUR_MS;
    const look = await at.retention.look(
      { principalKey: "api-key:a" } as Parameters<Retention["look"]>[0],
    );
    assert.deepEqual(
      look.media.runs.map(({ run_id, media, reason, blobs, bytes }) => [
        Number(run_id.slice(-4)),
        ...[media, reason, blobs, bytes],
      ]),
      [[1, "picture", "age", 2, 13], [1, "clip", "age", 1, 16], [2, "clip", "bytes", 1, 600_000]],
    );
    assert.deepEqual(paths.map(exists), paths.map(() => true));
    await at.retention.pass();
    await at.retention.pass(); // tells nothing twice
  }
  const left = ["shared", "shared", "b", "later"];
  assert.deepEqual(paths.map(exists), [false, true, true, false, false, true, true], left.join());
  const told = [[1, "picture", "age", 2], [1, "clip", "age", 1], [2, "clip", "bytes", 1]];
  for (const from of ["snapshot", "log"]) {
    if (from === "log") bench.dropSnapshot();
    await using timeline = await bench.open(SMALL);
    const at = place(bench, timeline, rules, { named });
    await using _ = at.retention;
    await at.retention.pass();
    assert.deepEqual(mediaRemoved(timeline), told, from);
    assert.equal(
      kindsOf(timeline, 1),
      "run_created live_source_opened keyframe_stored keyframe_stored clip_stored keyframe_stored media_removed media_removed",
    );
  }
  assert.deepEqual(await checked(bench), []);

  const target = Deno.makeTempDirSync();
  const manifest = writeBundle({ dataDir: bench.dataDir, runId: id(1), target, world: bench.world });
  Deno.removeSync(target, { recursive: true });
  assert.deepEqual(manifest.missing, []);
  assert.deepEqual(manifest.removed.map(({ media_type }) => media_type), [
    "image/jpeg",
    "image/jpeg",
    "video/mp4",
  ]);
  assert.equal(manifest.files.filter(({ path }) => path.startsWith("pictures/")).length, 1);

  // When the hold ends, the shared picture goes with its last run; stored again for a new event, it is there
  // again.
  await using timeline = await bench.open(SMALL);
  const at = place(bench, timeline, rules, { named });
  await using _ = at.retention;
  timeline.commit(() => [event("hold_released", {}, id(3))]);
  await at.retention.pass();
  assert.equal(exists(paths[1]!), false);
  await stored(at, bench, 1, "shared");
  await at.retention.pass();
  assert.equal(exists(paths[1]!), true);
  assert.deepEqual(await checked(bench), []);
});

Deno.test("whatever a crash during the removal of media leaves has each blob that is still named, and goes on", async () => {
  using bench = new Bench();
  await using timeline = await bench.open(SMALL);
  const at = place(bench, timeline, { clipHours: 4 });
  await using _ = at.retention;
  timeline.commit(() => [created(id(1)), created(id(2))]);
  for (const number of [1, 2, 1]) await stored(at, bench, number, `clip ${Math.random()}`, "mp4");
  await stored(at, bench, 2, "picture");
  bench.nowMs += 5 * HOUR_MS;
  const young = await stored(at, bench, 2, "young", "mp4");
  const copies: Bench[] = [];
  let isDone = false;
  const passing = at.retention.pass().finally(() => isDone = true);
  while (!isDone) {
    copies.push(wholeCopy(bench));
    await yieldToEventLoop();
  }
  await passing;
  const step = Math.ceil(copies.length / 12);
  for (const [number, crashed] of copies.entries()) {
    using copy = crashed;
    if (number % step !== 0 && number < copies.length - 1) continue;
    const findings = (await checked(copy)).filter((text) =>
      !/^(unreferenced_blob|leftover_file) /.test(text)
    );
    assert.deepEqual(findings, [], `copy ${number}`);
    copy.nowMs = bench.nowMs;
    await using after = await copy.open(SMALL);
    const again = place(copy, after, { clipHours: 4 });
    await using _ = again.retention;
    await again.retention.pass();
    assert.deepEqual(mediaRemoved(after), mediaRemoved(timeline), `copy ${number}`);
    assert.deepEqual(blobsIn(copy), blobsIn(bench), `copy ${number}`);
  }
  assert.equal(blobsIn(bench).length, 2);
  assert.ok(exists(young));
});

/** Copies all of the data directory, as a kill at this moment would leave it. */
function wholeCopy(bench: Bench): Bench {
  const copy = new Bench();
  const copyFolder = (folder: string) => {
    Deno.mkdirSync(join(copy.dataDir, folder), { recursive: true });
    for (const { name, isDirectory } of Deno.readDirSync(join(bench.dataDir, folder))) {
      const path = join(folder, name);
      if (isDirectory) copyFolder(path);
      else if (name !== "lock") copyFile(join(bench.dataDir, path), join(copy.dataDir, path));
    }
  };
  copyFolder("");
  return copy;
}

/**
 * Copies a file with its time, as the age of a blob counts; not one that another thread has removed
 * meanwhile.
 */
function copyFile(from: string, to: string): void {
  try {
    const { mtime } = Deno.statSync(from);
    Deno.copyFileSync(from, to);
    Deno.utimeSync(to, mtime!, mtime!);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}

function blobsIn({ dataDir }: Bench): string[] {
  return [...filesBelow(dataDir, "keyframes"), ...filesBelow(dataDir, "media")];
}

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

Deno.test("segments of recordings go by age and size, and before any run where the disk has too little room", async () => {
  using bench = new Bench();
  await using timeline = await bench.open(SMALL);
  const watch = (hours: number, bytes: number | null) => ({
    attach: {},
    rolloverMs: 1,
    webhooks: [],
    armed: null,
    recording: { hours, bytes },
  });
  const named = [{ name: "dock", watch: watch(24, null) }, { name: "gate", watch: watch(100, 250) }];
  let free = Infinity;
  const at = place(bench, timeline, { freeBytes: 1_000 }, { named, room: () => free });
  await using _ = at.retention;
  timeline.commit(() => [created(id(1)), event("run_completed", {}, id(1))]);
  const startMs = bench.nowMs - 50 * HOUR_MS;
  const record = async (source: string, hour: number) => {
    const [from, ticks] = [startMs + hour * HOUR_MS, hour * HOUR_MS * 90];
    await at.recordings.write(source, {
      ...{ startMs: from, endMs: from + 10_000, startTicks: ticks, endTicks: ticks + 900_000 },
      ...{ runId: id(1), sizeBytes: 100, codec: "avc1.42e01f", sound: "none", hours: 48 },
      formats: { video: "00000000", sound: null },
    }, new Uint8Array(100));
  };
  // `old` is in the file of sources no more: what was said when its segments were stored holds.
  for (const source of ["dock", "gate", "old"]) {
    for (let hour = 0; hour < 50; hour += 10) await record(source, hour);
  }
  const left = async (source: string) => {
    const segments = await Array.fromAsync(at.recordings.segments(source, { fromMs: 0, toMs: Infinity }));
    return segments.map((segment) => Math.round((segment.startMs - startMs) / HOUR_MS));
  };
  await at.retention.pass();
  assert.deepEqual([await left("dock"), await left("gate"), await left("old")], [[30, 40], [30, 40], [
    10,
    20,
    30,
    40,
  ]]);
  const days = [...Deno.readDirSync(join(bench.dataDir, "recordings", "dock"))].length;
  assert.ok(days <= 2, `${days} folders of days`);

  free = 750;
  const lookAgain = at.recordings.remove.bind(at.recordings);
  at.recordings.remove = async (source, segment) => {
    free += segment.sizeBytes;
    return await lookAgain(source, segment);
  };
  await at.retention.pass();
  assert.deepEqual([await left("dock"), await left("gate"), await left("old")], [[40], [30, 40], [30, 40]]);
  assert.equal(timeline.view.run(id(1))!.removedSeq, 0);
  // A service that starts anew finds the newest one on the disk.
  const newest = startMs + 40 * HOUR_MS + 10_000;
  const again = Recordings.open(bench.dataDir, bench.world);
  assert.deepEqual([await at.recordings.newestEndMs("dock"), await again.newestEndMs("dock")], [
    newest,
    newest,
  ]);
  free = -9_000;
  await at.retention.pass();
  assert.deepEqual([await left("dock"), await left("gate"), await left("old")], [[], [], []]);
  assert.equal(await at.recordings.newestEndMs("dock"), null);
  assert.ok(timeline.view.run(id(1))!.removedSeq > 0);
});

Deno.test("media by size are taken from whoever has most, and nobody below its share loses any", async () => {
  using bench = new Bench();
  await using timeline = await bench.open(SMALL);
  const at = place(bench, timeline, { clipBytes: 2 ** 20 });
  await using _ = at.retention;
  timeline.commit(
    () => [created(id(1), "api-key:b"), created(id(2)), created(id(3)), event("hold_placed", {}, id(3))],
  );
  const clip = (number: number, letter: string) => stored(at, bench, number, letter.repeat(300_000), "mp4");
  const theirs = await clip(1, "b");
  const paths = [await clip(3, "held"[0]!)];
  for (const letter of "stuv") paths.push(await clip(2, letter));
  // Bytes that another has named first are counted for that one.
  await clip(2, "b");
  bench.nowMs += 2 * HOUR_MS;
  const look = async (principalKey: string) =>
    (await at.retention.look({ principalKey } as Parameters<Retention["look"]>[0])).media.count;
  assert.deepEqual([await look("api-key:a"), await look("api-key:b")], [3, 0]);
  await at.retention.pass();
  assert.ok(exists(theirs));
  assert.deepEqual(paths.map(exists), [true, false, false, false, true]);
  await at.retention.pass();
  assert.deepEqual(mediaRemoved(timeline), [[2, "clip", "bytes", 3]]);
});

Deno.test("with too little room whoever stores most in runs, with their blobs, loses its oldest; the others keep what is theirs", async () => {
  using bench = new Bench();
  await using timeline = await bench.open(SMALL);
  const paths: string[] = [];
  const size = 100_000;
  const room = () => 2_000_000 - size * paths.filter(exists).length;
  const at = place(bench, timeline, { freeBytes: 1_450_000 }, { room });
  await using _ = at.retention;
  for (let number = 0; number < 9; number++) {
    const isBobs = number < 2;
    timeline.commit(() => [created(id(number), isBobs ? "api-key:b" : "api-key:a")]);
    paths.push(await stored(at, bench, number, String(number).repeat(size)));
    // What Alice has not ended counts for her, and cannot go.
    if (number !== 8) timeline.commit(() => [event("run_completed", {}, id(number))]);
    bench.nowMs += HOUR_MS / 10;
  }
  bench.nowMs += 2 * HOUR_MS;
  timeline.commit(() => [event("keepalive_refreshed", {}, id(8))]);
  await at.retention.pass();
  assert.deepEqual(paths.map(exists), [true, true, false, false, false, false, true, true, true]);
  const goes = [2, 3, 4, 5].map((number) => JSON.parse(all(timeline.read(id(number)))[0]!.payload).reason);
  assert.deepEqual(new Set(goes), new Set(["free_space"]));
});

Deno.test("with too little room recordings go from the principals whose sources have most", async () => {
  using bench = new Bench();
  await using timeline = await bench.open(SMALL);
  const [alice, bob] = ["a".repeat(64), "b".repeat(64)];
  const named = [
    { name: "bobs", principals: [bob] },
    { name: "dock", principals: [alice] },
    { name: "gate", principals: [alice] },
  ];
  let free = 800;
  const at = place(bench, timeline, { freeBytes: 1_000 }, { named, room: () => free });
  await using _ = at.retention;
  const record = async (source: string, minute: number) => {
    const [from, ticks] = [bench.nowMs + minute * 60_000, minute * 60_000 * 90];
    await at.recordings.write(source, {
      ...{ startMs: from, endMs: from + 10_000, startTicks: ticks, endTicks: ticks + 900_000 },
      ...{ runId: id(1), sizeBytes: 100, codec: "avc1.42e01f", sound: "none", hours: 48 },
      formats: { video: "00000000", sound: null },
    }, new Uint8Array(100));
  };
  for (const minute of [0, 1]) await record("bobs", minute);
  for (const minute of [10, 13]) await record("dock", minute);
  for (const minute of [11, 12]) await record("gate", minute);
  const remove = at.recordings.remove.bind(at.recordings);
  at.recordings.remove = async (source, segment) => {
    free += segment.sizeBytes;
    return await remove(source, segment);
  };
  await at.retention.pass();
  const left = async (source: string) =>
    (await Array.fromAsync(at.recordings.segments(source, { fromMs: 0, toMs: Infinity })))
      .map(({ startMs }) => (startMs - bench.nowMs) / 60_000);
  assert.deepEqual([await left("bobs"), await left("dock"), await left("gate")], [[0, 1], [13], [12]]);
});

Deno.test("a clock that jumps a year ahead deletes nothing by age; what time really passes still counts", async () => {
  using bench = new Bench();
  let monotonicMs = 0;
  const clock = new AgeClock({ now: () => bench.nowMs, monotonicMs: () => monotonicMs });
  const passes = (ms: number) => {
    bench.nowMs += ms;
    monotonicMs += ms;
  };
  await using timeline = await bench.open(SMALL);
  const at = place(bench, timeline, { runHours: 10, uploadHours: 10, pictureHours: 10 }, { ages: clock });
  await using retention = at.retention;
  timeline.commit(() => [created(id(1))]);
  const picture = await stored(at, bench, 1, "of the run");
  timeline.commit(() => [event("run_completed", {}, id(1))]);
  const upload = join(at.uploadRoot, "film.mp4");
  Deno.writeTextFileSync(upload, "film");
  setTime(upload, bench.nowMs);
  const isThere = () => [timeline.view.run(id(1))!.removedSeq === 0, exists(picture), exists(upload)];

  bench.nowMs += 365 * 24 * HOUR_MS;
  for (let hour = 0; hour < 9; hour++) {
    await retention.pass();
    assert.deepEqual(isThere(), [true, true, true], `hour ${hour}`);
    passes(HOUR_MS);
  }
  assert.ok(bench.lines.some((line) => line.includes("the clock of this machine has run ahead")));
  passes(2 * HOUR_MS); // eleven hours really
  await retention.pass();
  assert.deepEqual(isThere(), [false, false, false]);
});

Deno.test("a run that was written while the clock was a year ahead goes like any other once the clock is right", async () => {
  using bench = new Bench();
  await using timeline = await bench.open(SMALL);
  const { retention } = place(bench, timeline, { runHours: 10 });
  await using _ = retention;
  const yearMs = 365 * 24 * HOUR_MS;
  bench.nowMs += yearMs;
  timeline.commit(() => [created(id(1)), event("run_completed", {}, id(1)), created(id(2))]);
  bench.nowMs -= yearMs;
  const left = () => [1, 2].filter((number) => timeline.view.run(id(number))!.removedSeq === 0);
  await retention.pass();
  bench.nowMs += 9 * HOUR_MS;
  await retention.pass();
  assert.deepEqual(left(), [1, 2]);
  bench.nowMs += 2 * HOUR_MS;
  await retention.pass();
  assert.deepEqual(left(), []);
});
