import assert from "node:assert/strict";
import type { DetectedRange } from "../../../src/model/frames/detected_range.ts";
import { rowRanges } from "../../../src/model/frames/row_range.ts";

function found(type: DetectedRange["type"], startPtsMs: number, endPtsMs: number): DetectedRange {
  return { type, startFrame: 0, endFrame: 0, startPtsMs, endPtsMs, confidence: 0.75 };
}

/** Rows every half second. */
const HALF_SECONDS = [0, 500, 1000, 1500, 2000];

function framesOf(startPtsMs: number, endPtsMs: number, ptsMs = HALF_SECONDS) {
  const [range] = rowRanges([found("freeze", startPtsMs, endPtsMs)], ptsMs).ranges;
  return [range!.start_frame, range!.end_frame];
}

Deno.test("a range spans the rows inside it, its own ends included", () => {
  assert.deepEqual(framesOf(500, 1500), [1, 3]);
  assert.deepEqual(framesOf(499, 1501), [1, 3]);
  assert.deepEqual(framesOf(501, 1499), [2, 2]);
  assert.deepEqual(framesOf(0, 9000), [0, 4]);
});

Deno.test("a range without a row inside stands at the row before it", () => {
  assert.deepEqual(framesOf(520, 980), [1, 1]);
  assert.deepEqual(framesOf(1, 2), [0, 0]);
  assert.deepEqual(framesOf(2040, 2080), [4, 4]);
});

Deno.test("times keep those of the range, rounded as rows are", () => {
  const third = 1000 / 30;
  const ptsMs = [0, third, 2 * third, 3 * third];
  assert.deepEqual(framesOf(third, 2 * third, ptsMs), [1, 2]);
  assert.deepEqual(framesOf(third, 2 * third, ptsMs.map(Math.round)), [1, 2]);
  const [range] = rowRanges([found("flash", third, 2 * third)], ptsMs).ranges;
  assert.deepEqual([range!.start_pts_ms, range!.end_pts_ms, range!.confidence], [33, 67, 0.75]);
});

Deno.test("ranges are in one order, whoever reports them first", () => {
  const ranges = [
    found("repeat", 500, 1000),
    found("black", 500, 1000),
    found("flash", 500, 600),
    found("freeze", 0, 2000),
  ];
  for (const given of [ranges, ranges.toReversed()]) {
    const types = rowRanges(given, HALF_SECONDS).ranges.map(({ type }) => type);
    assert.deepEqual(types, ["freeze", "flash", "black", "repeat"]);
  }
});

Deno.test("of more than 10,000 ranges the first ones are kept, and it says so", () => {
  const ranges = Array.from({ length: 10_001 }, (_, index) => found("flash", 2000 - index * 0.1, 2001));
  const many = rowRanges(ranges, HALF_SECONDS);
  assert.deepEqual([many.ranges.length, many.isTruncated], [10_000, true]);
  assert.equal(many.ranges[0]!.start_pts_ms, 1000);
  const all = rowRanges(ranges.slice(1), HALF_SECONDS);
  assert.deepEqual([all.ranges.length, all.isTruncated], [10_000, false]);
});
