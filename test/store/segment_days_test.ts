/** The names of recorded segments: what is remembered of days, and of a source whose folder is a link. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { Recordings } from "../../src/store/recordings/recordings.ts";
import { SegmentDays } from "../../src/store/recordings/segment_days.ts";
import { recordedName, type RecordedSegment } from "../../src/model/sources/recorded_segment.ts";
import { isThere } from "../../src/process/environment.ts";
import { world } from "../support/data_directory.ts";
import { TempFolder } from "../support/media.ts";

/** A disk of its own on most machines. */
const SHARED_MEMORY = "/dev/shm";
const START_MS = Date.parse("2026-11-24T10:15:00Z");

const SEGMENT: RecordedSegment = {
  ...{ startMs: START_MS, endMs: START_MS + 10_000, startTicks: 0, endTicks: 900_000 },
  ...{ runId: "run-751c79832c20087d332e351728791aeb", sizeBytes: 4, codec: "avc1.42e01f", sound: "none" },
  ...{ formats: { video: "9f86d081", sound: null }, hours: 1 },
};

Deno.test("nothing is remembered of days that a source does not have", async () => {
  using folder = new TempFolder();
  const days = new SegmentDays(folder.path);
  Deno.mkdirSync(join(folder.path, "dock", "20261124"), { recursive: true });
  Deno.writeTextFileSync(join(folder.path, "dock", "20261124", recordedName(SEGMENT)), "ftyp");
  for (let number = 1; number <= 28; number++) {
    const day = `209902${String(number).padStart(2, "0")}`;
    assert.deepEqual(await days.read("dock", day), { names: [], bytes: 0 });
  }
  assert.equal(days.remembered, 0);
  assert.deepEqual((await days.read("dock", "20261124")).names, [recordedName(SEGMENT)]);
  assert.equal(days.remembered, 1);
});

Deno.test("a source whose folder is a link to another disk is recorded, listed and removed from, and the link stays", async () => {
  using folder = new TempFolder();
  const far = Deno.makeTempDirSync({ dir: isThere(SHARED_MEMORY) ? SHARED_MEMORY : folder.path });
  using _far = { [Symbol.dispose]: () => Deno.removeSync(far, { recursive: true }) };
  Deno.mkdirSync(join(folder.path, "recordings"));
  const link = join(folder.path, "recordings", "dock");
  Deno.symlinkSync(far, link);
  Deno.symlinkSync(join(folder.path, "nowhere"), join(folder.path, "recordings", "gate"));
  const recordings = Recordings.open(folder.path, world);
  const stored = await recordings.write("dock", SEGMENT, new TextEncoder().encode("ftyp"));
  assert.deepEqual(recordings.sources(), ["dock"]);
  assert.equal(await recordings.bytesOf("dock"), 4);
  const isFar = Deno.statSync(far).dev !== Deno.statSync(folder.path).dev;
  assert.deepEqual(recordings.sourcesOnDisk(), isFar ? [] : ["dock"], "it gives no room back here");
  assert.ok(await recordings.remove("dock", stored));
  await recordings.removeEmptyFolders("dock");
  assert.deepEqual([...Deno.readDirSync(far)], [], "its days go");
  assert.ok(Deno.lstatSync(link).isSymlink);
});

Deno.test("a segment that reaches over midnight is in the range of both days, and of two of one millisecond each has a time of its own", async () => {
  using folder = new TempFolder();
  const recordings = Recordings.open(folder.path, world);
  const midnight = Date.parse("2026-11-25T00:00:00Z");
  const bytes = new TextEncoder().encode("ftyp");
  const write = (startMs: number, lengthMs: number) =>
    recordings.write("dock", { ...SEGMENT, startMs, endMs: startMs + lengthMs }, bytes);
  await write(midnight - 5_000, 10_000);
  await write(midnight + 5_000, 10_000);
  const starts = async (fromMs: number, toMs: number) =>
    (await Array.fromAsync(recordings.segments("dock", { fromMs, toMs }))).map(({ startMs }) =>
      startMs - midnight
    );
  assert.deepEqual(await starts(midnight + 1_000, midnight + 9_000), [-5_000, 5_000]);
  assert.deepEqual(await starts(midnight - 9_000, midnight), [-5_000]);
  assert.deepEqual(await starts(midnight + 5_000, midnight + 5_001), [5_000]);
  const short = await write(midnight - 1, 1);
  const moved = await write(midnight - 1, 1);
  assert.deepEqual([short.endMs - midnight, moved.startMs - midnight, moved.endMs - midnight], [0, 0, 1]);
  assert.equal((await recordings.find("dock", "20261125T000000000Z"))?.endMs, midnight + 1);
});
