/** Which of the stretches that may be transitions count, and which are the halves of one fade. */

import assert from "node:assert/strict";
import { ChosenStretches, type Stretch } from "../../../../src/media/detection/gradual/transition_choice.ts";

/** Frames at 25 a second; `plain` says which of its pictures are plain. */
function stretch(start: number, end: number, odds: number, plain = ""): Stretch {
  return {
    ...{ start, end, odds, startMs: start * 40, lastMs: (end - 1) * 40, endMs: end * 40 },
    ...{ first: start, last: end - 1 },
    ...{ startsPlain: plain.includes("start"), endsPlain: plain.includes("end") },
  };
}

function chosen(...stretches: Stretch[]): string[] {
  const found: string[] = [];
  const choice = new ChosenStretches({ add: (_, start, end) => found.push(`${start}-${end}`) });
  stretches.forEach((one) => choice.add(one));
  choice.finish();
  return found;
}

Deno.test("of stretches that overlap the surest counts, and others beside it", () => {
  assert.deepEqual(chosen(stretch(10, 30, 2), stretch(20, 40, 3), stretch(41, 50, 1.1)), ["20-39", "41-49"]);
  assert.deepEqual(chosen(stretch(10, 20, 1.5), stretch(20, 30, 2)), ["20-29"]);
});

Deno.test("a fade out and a fade in are one with at most half a second between", () => {
  const out = stretch(10, 20, 2, "end");
  assert.deepEqual(chosen(out, stretch(32, 40, 1.5, "start")), ["10-39"]);
  assert.deepEqual(chosen(out, stretch(33, 40, 1.5, "start")), ["10-19", "33-39"]);
  assert.deepEqual(chosen(out, stretch(32, 40, 1.5)), ["10-19", "32-39"]);
  assert.deepEqual(chosen(stretch(10, 20, 2), stretch(32, 40, 1.5, "start")), ["10-19", "32-39"]);
});

Deno.test("an unsure half of a fade counts beside a sure one, on either side, and only there", () => {
  const out = stretch(10, 20, 2, "end"), into = stretch(25, 35, 0, "start");
  assert.deepEqual(chosen(out, into), ["10-34"]);
  assert.deepEqual(chosen(stretch(10, 20, 0, "end"), stretch(25, 35, 2, "start")), ["10-34"]);
  assert.deepEqual(chosen(stretch(10, 20, 2, "end"), stretch(20, 30, 0, "start")), ["10-29"]);
  assert.deepEqual(chosen(stretch(10, 20, 0, "end"), into), []);
  assert.deepEqual(chosen(stretch(10, 20, 2), into), ["10-19"]);
  assert.deepEqual(chosen(out, stretch(25, 35, 0)), ["10-19"]);
  assert.deepEqual(chosen(out, stretch(33, 43, 0, "start")), ["10-19"]);
});

Deno.test("a stretch is given when no other can overlap it, a fade when no other half can follow", () => {
  const found: string[] = [];
  const choice = new ChosenStretches({ add: (_, start, end) => found.push(`${start}-${end}`) });
  choice.add(stretch(10, 20, 2));
  choice.settle(20 * 40 + 3010);
  assert.deepEqual(found, []);
  choice.settle(20 * 40 + 3011);
  assert.deepEqual(found, ["10-19"]);
  choice.add(stretch(110, 120, 2, "end"));
  choice.settle(120 * 40 + 3010);
  assert.deepEqual(found, ["10-19"]);
  choice.settle(120 * 40 + 3011);
  choice.settle(120 * 40 + 3011);
  assert.deepEqual(found, ["10-19", "110-119"]);
});
