/** Detectors as they would be without the sources that they judge: copies with other constants, and who
 * judges what.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { constantsIn, scaled } from "../../lab/constants.ts";
import { groupOf } from "../../lab/edits/files/origins.ts";
import { ChosenConstants } from "../../lab/folds/chosen_constants.ts";
import { rangesApart } from "../../lab/folds/cross_validated.ts";
import { DetectionCopy, type DetectorConstant } from "../../lab/folds/detection_copy.ts";
import { VideoFolds } from "../../lab/folds/fold_sets.ts";
import type { FoldedVideo } from "../../lab/folds/range_tally.ts";
import { recordAll } from "../../lab/folds/recording.ts";
import { measureAll } from "../../lab/scores/measure.ts";
import type { FrameRange, Truth } from "../../lab/scores/truth.ts";
import { TemporaryFolder } from "../support/folders.ts";
import { make } from "../support/media.ts";

/** A clip of each of three folds. */
const CLIPS = [0, 1, 2].map((fold) =>
  Array.from({ length: 100 }, (_, n) => `clip ${n}`).find((name) => groupOf(name, 3) === fold)!
);

Deno.test("the named numbers of a source are found, those of the layout left out, and whole ones stay whole", () => {
  const source = [
    "const MOVED_MAX = 0.5;",
    "export const LEAST: i32 = -1_000;",
    "const CELL_MOVES = 0.1 * CELL_SAMPLES;",
    "const RING_ROWS = 4096;",
    "  const INSIDE = 3;",
  ].join("\n");
  const found = constantsIn(source);
  assert.deepEqual(found.map(({ name, value }) => [name, value]), [
    ...[["MOVED_MAX", 0.5], ["LEAST", -1000], ["CELL_MOVES", 0.1]],
  ]);
  for (const { at, text } of found) assert.equal(source.slice(at, at + text.length), text);
  assert.equal(scaled({ value: 2, text: "2" }, 0.9), 1);
  assert.equal(scaled({ value: 10, text: "10" }, 1.25), 13);
  assert.equal(scaled({ value: 2, text: "2.0" }, 1.25), 2.5);
});

Deno.test("on a recording a copy finds what the service finds, and with another constant something else", async () => {
  using folder = new TemporaryFolder();
  const path = join(folder.path, "dark.mp4");
  // A second of pictures, one of a gray that is nearly black, and pictures again.
  const parts = [
    "testsrc2=s=320x180:r=25:d=1",
    "color=0x060606:s=320x180:r=25:d=1",
    "testsrc2=s=320x180:r=25:d=1",
  ];
  make(
    path,
    "-f",
    "lavfi",
    "-i",
    `${parts.map((part, n) => `${part}[v${n}]`).join(";")};[v0][v1][v2]concat=n=3`,
    "-c:v",
    "mpeg4",
    "-q:v",
    "2",
  );
  const truth: Truth = { name: "dark", video: "dark.mp4", cuts: [] };
  const [recorded] = await recordAll([{ path, truth }], { cache: folder.path, jobs: 1 });
  const [again] = await recordAll([{ path, truth }], { cache: folder.path, jobs: 1 });
  assert.deepEqual(again, recorded, "what was kept is what was recorded");
  const { recording } = recorded!;
  const [{ frames, predictions }] = await measureAll([path]) as [Awaited<ReturnType<typeof measureAll>>[0]];
  assert.equal(recording.frames, frames);
  assert.deepEqual(predictions.black, [{ start: 25, end: 50 }]);
  const copy = await DetectionCopy.load();
  const found = () => [...copy.rangesOf([recording, recording], "black")];
  assert.deepEqual(found(), [predictions.black, predictions.black]);
  assert.deepEqual([...copy.rangesOf([recording], "freeze")], [predictions.freezes]);
  assert.deepEqual([...copy.faultsOf([recording], [predictions.gradual!])], [predictions.artifacts]);
  const darkest = copy.constantsOf("ranges/black.ts").find(({ name }) => name === "MEAN_MAX")!;
  copy.set(darkest, 17);
  assert.deepEqual(found(), [[], []]);
  copy.set(darkest, darkest.value);
  assert.deepEqual(found(), [predictions.black, predictions.black]);
  const changes = {
    "ranges/black.ts": (await Deno.readTextFile(blackSource)).replace(/MEAN_MAX = \d+/, "MEAN_MAX = 17"),
  };
  assert.deepEqual([...(await DetectionCopy.load(changes)).rangesOf([recording], "black")], [[]]);
});

const blackSource = new URL("../../src/media/detection/ranges/black.ts", import.meta.url);

/** A video with a shot of each clip, and a range to find in the middle of each. */
function threeShots(): FoldedVideo {
  const truth: Truth = {
    ...{ name: "three", video: "three.mp4", cuts: [], frames: 300, fps: 25 },
    shots: CLIPS.map((src, n) => ({ start: 100 * n, src, src_t: 0 })),
    black: CLIPS.map((_, n) => ({ start: 100 * n + 40, end: 100 * n + 60 })),
  };
  return { truth, path: "", recording: undefined!, folds: new VideoFolds(truth, 300, 3) };
}

Deno.test("a range is of the folds of all that is shown in it and beside it", () => {
  const { folds } = threeShots();
  assert.equal(folds.ofRange({ start: 20, end: 30 }), 0b001);
  assert.equal(folds.ofRange({ start: 100, end: 130 }), 0b011, "what is shown before it counts");
  assert.equal(folds.ofRange({ start: 150, end: 200 }), 0b110, "and what is shown after it");
  assert.equal(folds.ofRange({ start: 50, end: 250 }), 0b111);
  assert.deepEqual(folds.partsOf([{ start: 90, end: 120, kind: "flicker" }], 0b010), [
    { start: 100, end: 120, kind: "flicker" },
  ]);
});

Deno.test("constants are chosen where the fold that they judge is not shown", async () => {
  const video = threeShots();
  // At the committed value 10 nothing is found; at 8 the first shot's range; at 12.5 those of the two others.
  const constant: DetectorConstant = { file: "one.ts", name: "LEVEL", value: 10, text: "10.0", at: 0 };
  let level = 10;
  const [first, second, third] = video.truth.black!;
  const find = (): FrameRange[][] => [level < 9 ? [first!] : level > 12 ? [second!, third!] : []];
  const constants = new ChosenConstants(
    { constantsOf: () => [constant], set: (_, value) => level = value },
    { videos: [video], figure: "black", entry: "one.ts", find },
  );
  const chosen = (left: number) => constants.without(left).map(({ value }) => value);
  assert.deepEqual(chosen(0b001), [12.5]);
  assert.deepEqual(chosen(0b110), [8]);
  assert.equal(level, 10, "afterwards the copy is as it was");
  const [apart] = await rangesApart([video], "black", {
    findWithout: (left) => Promise.resolve(constants.foundWith(constants.without(left))),
    summary: () => "",
  });
  // What would find a range is never chosen where that range is not shown; of two equal gains the first one
  // tried is taken.
  assert.deepEqual(apart, []);
});
