/** Which frames only show a picture again: a rule of the rate, and nothing else. */

import assert from "node:assert/strict";
import { RepeatedFrames } from "../../../../src/media/detection/ranges/repeated_frames.ts";

/**
 * What is told of frames: `#` for one that is new, `.` for one that repeats the one before. `moved` are
 * levels.
 */
function judged(moved: readonly number[]): string {
  const frames = new RepeatedFrames();
  let text = "";
  const judge = (known: number, isEnd: boolean) => {
    while (text.length < known) {
      const isRepeat = frames.isRepeat(text.length, isEnd);
      if (isRepeat === null) return;
      text += isRepeat ? "." : "#";
    }
  };
  moved.forEach((levels, frame) => {
    frames.push(levels);
    judge(frame + 1, false);
  });
  judge(moved.length, true);
  return text;
}

const times = (count: number, pattern: readonly number[]) =>
  Array.from({ length: count }, () => pattern).flat();

Deno.test("frames that the rate repeats are told, at twice the rate, at 3:2 and at four times it", () => {
  assert.equal(judged([0, ...times(5, [2, 0])]), "##.#.#.#.##");
  assert.equal(judged([0, ...times(4, [2, 0, 3, 0.1, 0]), 2]), "##.#..#.#..#.#..#.####");
  assert.equal(judged([0, ...times(5, [2, 0, 0, 0]), 2]), "##...#...#...#...#...#");
});

Deno.test("a codec that takes the last of them for a part of the way does not hide them", () => {
  assert.equal(judged([0, ...times(5, [2, 0, 0, 1.2]), 2]), "##...#...#...#...#...#");
});

const NONE: Readonly<Record<string, readonly number[]>> = {
  "motion": times(20, [2]),
  "a still picture": times(20, [0.01]),
  "a freeze": [...times(8, [2]), ...times(8, [0]), ...times(8, [2])],
  "one frame that is shown twice": [...times(8, [2]), 0, ...times(8, [2])],
  "three of them in a row": [...times(8, [2]), 0, 2, 0, 2, 0, ...times(8, [2])],
  "a low rate without a rule": [2, 0, 2, 0, 0, 0, 2, 0, 2, 0, 0, 0, 2, 0, 0, 2, 0, 0, 0, 0, 2],
  "motion that is half as much in every second frame": times(10, [2, 1]),
};

for (const [name, moved] of Object.entries(NONE)) {
  Deno.test(`no frame is left out of ${name}`, () => {
    assert.equal(judged(moved), "#".repeat(moved.length));
  });
}
