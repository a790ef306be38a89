/** The scorer: what counts as found, what as a false alarm, and what counts as neither. */

import assert from "node:assert/strict";
import {
  type Predictions,
  rates,
  tallyCuts,
  tallyFrames,
  tallyRanges,
  tallyVideo,
} from "../../lab/scores/score.ts";
import { scoreTable, totalsOf, totalTable } from "../../lab/scores/score_table.ts";
import type { FrameRange, Truth } from "../../lab/scores/truth.ts";

const NOTHING: Truth = { name: "one", video: "one.mp4", cuts: [] };

Deno.test("a cut is found within one frame, and each prediction finds one cut", () => {
  const truth = { ...NOTHING, cuts: [10, 12, 50] };
  assert.deepEqual(tallyCuts(truth, [11, 49, 80]), { hits: 2, falseAlarms: [80], misses: [12] });
  assert.deepEqual(tallyCuts(truth, [9, 13, 50, 50]), { hits: 3, falseAlarms: [], misses: [] });
  assert.deepEqual(tallyCuts(truth, [8]), { hits: 0, falseAlarms: [8], misses: [10, 12, 50] });
});

Deno.test("a cut is not asked for and not wrong where the picture really jumps", () => {
  const truth: Truth = {
    ...NOTHING,
    gradual: [{ start: 20, end: 30 }],
    black: [{ start: 40, end: 50 }],
    freezes: [{ start: 60, end: 70, kind: "freeze_drop" }, { start: 80, end: 90, kind: "freeze" }],
    loops: [{ start: 100, end: 130, period: 10 }],
    jumpcuts: [140],
    jumps: [150],
    flashes: [{ start: 160, end: 162 }],
    lightsteps: [170],
  };
  const right = [19, 25, 30, 40, 50, 70, 100, 110, 120, 130, 141, 149];
  assert.deepEqual(tallyCuts(truth, right).falseAlarms, []);
  assert.deepEqual(tallyCuts(truth, [18, 31, 60, 90, 105, 160, 170]).falseAlarms, [
    18,
    31,
    60,
    90,
    105,
    160,
    170,
  ]);
});

Deno.test("a range is found when it shares half of what either covers", () => {
  const truth = [{ start: 10, end: 20 }, { start: 30, end: 40 }];
  assert.deepEqual(tallyRanges(truth, [{ start: 10, end: 15 }]), { hits: 1, falseAlarms: 0, misses: 1 });
  assert.deepEqual(tallyRanges(truth, [{ start: 10, end: 14 }]), { hits: 0, falseAlarms: 1, misses: 2 });
  assert.deepEqual(tallyRanges(truth, [{ start: 10, end: 40 }]), { hits: 0, falseAlarms: 1, misses: 2 });
  // One truth range is found once; the second prediction of it is wrong.
  const halves = [{ start: 30, end: 35 }, { start: 35, end: 40 }];
  assert.deepEqual(tallyRanges(truth, halves), { hits: 1, falseAlarms: 1, misses: 1 });
});

Deno.test("of two predictions of one range the better one finds it, whatever their order", () => {
  const truth = [{ start: 0, end: 10 }, { start: 10, end: 18 }];
  const predicted = [{ start: 5, end: 18 }, { start: 0, end: 9 }];
  assert.deepEqual(tallyRanges(truth, predicted), { hits: 2, falseAlarms: 0, misses: 0 });
  assert.deepEqual(tallyRanges(truth, predicted.toReversed()), { hits: 2, falseAlarms: 0, misses: 0 });
});

Deno.test("a prediction that lies half where both answers are right is no false alarm", () => {
  const doubtful = [{ start: 100, end: 110 }];
  assert.equal(tallyRanges([], [{ start: 105, end: 115 }], doubtful).falseAlarms, 0);
  assert.equal(tallyRanges([], [{ start: 106, end: 116 }], doubtful).falseAlarms, 1);
});

Deno.test("a repeat is no false alarm where shots show the same frames of a clip", () => {
  const shots = [
    { start: 0, src: "a.mp4", src_t: 1 },
    { start: 40, src: "a.mp4", src_t: 1.7 },
    { start: 80, src: "drawn:text", src_t: 0 },
    { start: 120, src: "drawn:text", src_t: 0 },
    { start: 160, src: "b.mp4", src_t: 1 },
    { start: 200, src: "b.mp4", src_t: 2 },
    { start: 500, src: "a.mp4", src_t: 1.7 },
  ];
  const falseAlarms = (start: number, end: number) =>
    tallyVideo({ ...NOTHING, frames: 600, fps: 25, shots }, { loops: [{ start, end }] }).counts.loops!
      .falseAlarms;
  assert.equal(falseAlarms(0, 80), 0);
  assert.equal(falseAlarms(80, 160), 1);
  assert.equal(falseAlarms(160, 240), 1);
  assert.equal(falseAlarms(520, 600), 1);
});

Deno.test("faults are counted frame by frame, doubtful frames not at all", () => {
  const truth = [{ start: 10, end: 20 }];
  const predicted = [{ start: 8, end: 14 }, { start: 12, end: 16 }];
  assert.deepEqual(tallyFrames(truth, predicted), { hits: 6, falseAlarms: 2, misses: 4 });
  assert.deepEqual(tallyFrames(truth, predicted, [{ start: 9, end: 12 }]), {
    hits: 6,
    falseAlarms: 1,
    misses: 4,
  });
});

Deno.test("a video is scored in what was predicted of it, damage counts as a fault, and stillness may be called a freeze", () => {
  const truth: Truth = {
    ...NOTHING,
    cuts: [5],
    frames: 250,
    fps: 25,
    artifacts: [{ start: 20, end: 30, kind: "blocks" }],
    corruption: [{ start: 50, end: 60, kind: "bytes" }],
    faint: [{ start: 60, end: 64 }],
    jumps: [90],
    static: [{ start: 100, end: 120 }],
  };
  const predictions: Predictions = {
    artifacts: [{ start: 20, end: 30 }, { start: 50, end: 62 }, { start: 89, end: 91 }, {
      start: 200,
      end: 202,
    }],
    freezes: [{ start: 101, end: 120 }, { start: 150, end: 160 }],
  };
  const { counts, clean } = tallyVideo(truth, predictions);
  assert.deepEqual(counts, {
    freezes: { hits: 0, falseAlarms: 1, misses: 0 },
    artifacts: { hits: 2, falseAlarms: 1, misses: 0 },
    artifact_frames: { hits: 20, falseAlarms: 2, misses: 0 },
  });
  assert.equal(clean.seconds, 0);
});

Deno.test("a freeze between still parts need not be found, one beside motion must be", () => {
  const frozen = { start: 50, end: 70 };
  const tallyOf = (still: FrameRange[], freezes: FrameRange[]) =>
    tallyVideo({ ...NOTHING, frames: 200, fps: 24, freezes: [frozen], static: still }, { freezes }).counts
      .freezes;
  const before = { start: 10, end: 50 }, after = { start: 74, end: 90 };
  assert.deepEqual(tallyOf([before, after], []), { hits: 0, falseAlarms: 0, misses: 0 });
  assert.deepEqual(tallyOf([before, after], [frozen]), { hits: 0, falseAlarms: 0, misses: 0 });
  for (
    const still of [[before], [after], [before, { start: 75, end: 90 }], [{ start: 10, end: 45 }, after]]
  ) {
    assert.deepEqual(tallyOf(still, []), { hits: 0, falseAlarms: 0, misses: 1 });
    assert.deepEqual(tallyOf(still, [frozen]), { hits: 1, falseAlarms: 0, misses: 0 });
  }
});

Deno.test("artifact markers on a video without faults are counted by the time that they take to appear", () => {
  const truth: Truth = { ...NOTHING, kind: "pan", frames: 1500, fps: 25 };
  const tally = tallyVideo(truth, { cuts: [3], artifacts: [{ start: 0, end: 2 }, { start: 9, end: 12 }] });
  assert.deepEqual(tally.clean, { seconds: 60, artifactMarkers: 2 });
  const other = tallyVideo({ ...NOTHING, cuts: [7], frames: 1500, fps: 25 }, { cuts: [7], artifacts: [] });
  const totals = totalsOf([{ kind: "pan", tally }, { kind: "hard", tally: other }]);
  assert.deepEqual([...totals.keys()], ["hard", "pan", "TOTAL"]);
  assert.deepEqual(totals.get("TOTAL")!.counts.cuts, { hits: 1, falseAlarms: 1, misses: 0 });
  const lines = scoreTable(totals).split("\n");
  assert.match(lines[1]!, /^hard +1 +1\.000 1\/0\/0 +0\.0$/);
  assert.match(lines[3]!, /^TOTAL +2 +0\.667 1\/1\/0 +0\.000 0\/2\/0 +0\.000 0\/5\/0 +10\.0$/);
});

Deno.test("a detector that finds nothing where there is something is not there, and two measurements stand side by side", () => {
  const truth: Truth = {
    ...NOTHING,
    kind: "hard",
    cuts: [5, 50],
    black: [{ start: 9, end: 20 }],
    frames: 100,
  };
  const tallied = (cuts: readonly number[]) =>
    totalsOf([{ kind: "hard", tally: tallyVideo(truth, { cuts, black: [], freezes: [] }) }]);
  const named = [["in-sample", tallied([5, 50])], ["cross-validated", tallied([5])]] as const;
  const rows = totalTable(named, "markdown").split("\n").map((line) =>
    line.split("|").map((cell) => cell.trim())
  );
  assert.deepEqual(rows[2]!.slice(1, 10), [
    ...["hard cuts", "1.000", "1.000", "1.000", "2/0/0", "1.000", "0.500", "0.667", "1/0/1"],
  ]);
  assert.deepEqual(rows.find(([, figure]) => figure === "black")!.slice(2, 4), ["not there", ""]);
  assert.deepEqual(rows.find(([, figure]) => figure === "freezes")!.slice(2, 4), ["1.000", "1.000"]);
  assert.match(scoreTable(named[1][1], "text", named[0][1]), /hard +1 +0\.667 \(1\.000\) 1\/0\/1/);
});

Deno.test("nothing to find and nothing found is a perfect score", () => {
  assert.deepEqual(rates({ hits: 0, falseAlarms: 0, misses: 0 }), { precision: 1, recall: 1, f1: 1 });
  assert.deepEqual(rates({ hits: 0, falseAlarms: 0, misses: 2 }), { precision: 0, recall: 0, f1: 0 });
});
