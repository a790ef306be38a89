/** Detectors as they would be without the sources that they judge: copies with other constants, and who
 * judges what.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { boundsIn, constantsIn, scaled } from "../../lab/constants.ts";
import { groupOf } from "../../lab/edits/files/origins.ts";
import { type Change, ChosenConstants } from "../../lab/folds/chosen_constants.ts";
import { rangesApart } from "../../lab/folds/cross_validated.ts";
import { numbersIn, RANGE_BOUNDS, withNumbers } from "../../lab/folds/bounds.ts";
import { rangesIn } from "../../lab/folds/detected.ts";
import { FaultsCopy } from "../../lab/folds/faults_copy.ts";
import { VideoFolds } from "../../lab/folds/fold_sets.ts";
import type { FoldedVideo } from "../../lab/folds/range_tally.ts";
import { recordAll } from "../../lab/folds/recording.ts";
import { measureAll } from "../../lab/scores/measure.ts";
import { RangeDetectors, type RangeNumbers } from "../../src/media/detection/range_detectors.ts";
import type { Detector } from "../../src/model/frames/detected_range.ts";
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
  const bounds = "export const ONE_BOUNDS = {\n  /** Most. */\n  movedMax: 1_0,\n  rest: 0.5,\n} as const;\n";
  assert.deepEqual(boundsIn(bounds).map(({ name, value }) => [name, value]), [["movedMax", 10], [
    "rest",
    0.5,
  ]]);
  for (const { at, text } of found) assert.equal(source.slice(at, at + text.length), text);
  for (const { at, text } of boundsIn(bounds)) assert.equal(bounds.slice(at, at + text.length), text);
  assert.equal(scaled({ value: 2, text: "2" }, 0.9), 1);
  assert.equal(scaled({ value: 10, text: "10" }, 1.25), 13);
  assert.equal(scaled({ value: 2, text: "2.0" }, 1.25), 2.5);
});

Deno.test("on a recording is found what the service finds, and with other numbers something else", async () => {
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
  const found = (type: Detector, numbers: RangeNumbers = {}) => [
    ...rangesIn([recording, recording], (cuts) => new RangeDetectors(cuts, [type], numbers)),
  ];
  assert.deepEqual(found("black"), [predictions.black, predictions.black]);
  assert.deepEqual(found("freeze"), [predictions.freezes, predictions.freezes]);
  const meanMax = numbersIn(RANGE_BOUNDS.black).find(({ name }) => name === "meanMax")!;
  const black = withNumbers(RANGE_BOUNDS.black, [{ constant: meanMax, value: 17 }]);
  assert.deepEqual(found("black", { black }), [[], []]);

  const copy = await FaultsCopy.load();
  const faults = (changes: Change[]) => [
    ...copy.faultsWith(changes, [recording], [predictions.gradual!]),
  ];
  assert.deepEqual(faults([]), [predictions.artifacts]);
  const constant = copy.constants.find(({ name }) => name === "isolated_frames.ts CHANGE_MIN")!;
  assert.equal(constant.value, 9);
  faults([{ constant, value: 10 }]);
  assert.deepEqual(faults([]), [predictions.artifacts]);
});

Deno.test("numbers of bounds are named with their groups, and others stay when some are changed", () => {
  const numbers = numbersIn(RANGE_BOUNDS.freeze);
  assert.ok(numbers.length > 70);
  const constant = numbers.find(({ name }) => name === "redrawn.movedMax")!;
  assert.deepEqual(constant, { name: "redrawn.movedMax", value: 3, text: "3" });
  const changed = withNumbers(RANGE_BOUNDS.freeze, [{ constant, value: 4 }]);
  const { redrawn } = RANGE_BOUNDS.freeze;
  assert.deepEqual(changed, { ...RANGE_BOUNDS.freeze, redrawn: { ...redrawn, movedMax: 4 } });
});

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
  const constant = { name: "level", value: 10, text: "10.0" };
  const [first, second, third] = video.truth.black!;
  const find = ([change]: readonly Change[]): FrameRange[][] => {
    const level = change?.value ?? 10;
    return [level < 9 ? [first!] : level > 12 ? [second!, third!] : []];
  };
  const constants = new ChosenConstants({ videos: [video], figure: "black", constants: [constant], find });
  const chosen = (left: number) => constants.without(left).map(({ value }) => value);
  assert.deepEqual(chosen(0b001), [12.5]);
  assert.deepEqual(chosen(0b110), [8]);
  const [apart] = await rangesApart([video], "black", {
    findWithout: (left) => Promise.resolve(constants.foundWith(constants.without(left))),
    summary: () => "",
  });
  // What would find a range is never chosen where that range is not shown; of two equal gains the first one
  // tried is taken.
  assert.deepEqual(apart, []);
});
