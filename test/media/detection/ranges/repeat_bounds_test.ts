/** Bounds of repeats: what is just inside of each is one, what is just outside is none. */

import assert from "node:assert/strict";
import { MeasuredFilm, scattered } from "../../../support/kernels/measured_film.ts";

interface Loop {
  readonly period: number;
  /** Frames that play after the first playing. */
  readonly again?: number;
  readonly framesPerSecond?: number;
  /**
   * By how many levels the blocks of a frame differ from another; its frames are numbered from the start of
   * the loop.
   */
  readonly reach?: number;
  /** Which frame of the source a frame of the loop shows; those of the same number are alike. */
  readonly source?: (n: number) => number;
  /** Levels by which a frame that plays again is brighter; NaN for another picture. */
  readonly offset?: (n: number) => number;
}

/** 20 frames, the loop, and 30 frames more. */
function repeatsIn(
  { period, again = period, reach = 30, source = (n) => n, offset = () => 0, ...options }: Loop,
) {
  const film = new MeasuredFilm("repeat", options);
  const show = (picture: number, brighter = 0) => ({
    mean: (cell: number) =>
      100 + brighter + reach * scattered(picture, (cell % 20 >> 1) + 10 * (cell / 40 | 0)),
  });
  film.play(20, (n) => show(10_000 + n));
  film.play(period, (n) => show(source(n)));
  film.play(again, (n) => Number.isNaN(offset(n)) ? show(30_000 + n) : show(source(n % period), offset(n)));
  film.play(30, (n) => show(20_000 + n));
  return film.end();
}

interface Bound {
  readonly inside: number;
  readonly outside: number;
  readonly loop: (value: number) => Loop;
  readonly found: readonly string[];
  /** What is found outside, nothing unless given. */
  readonly other?: readonly string[];
}

const BOUNDS: Readonly<Record<string, Bound>> = {
  "eight frames": { inside: 8, outside: 7, loop: (period) => ({ period }), found: ["repeat 20-35"] },
  "150 ms": {
    ...{ inside: 9, outside: 8, found: ["repeat 20-37"] },
    loop: (period) => ({ period, framesPerSecond: 60 }),
  },
  "300 frames": {
    ...{ inside: 290, outside: 310, found: ["repeat 20-599"] },
    loop: (period) => ({ period, framesPerSecond: 60 }),
  },
  "12 seconds": {
    ...{ inside: 115, outside: 125, found: ["repeat 20-249"] },
    loop: (period) => ({ period, framesPerSecond: 10 }),
  },
  "the blocks differ by 1.5 levels": {
    ...{ inside: 1.4, outside: 1.6, found: ["repeat 20-99"] },
    loop: (offset) => ({ period: 40, offset: () => offset }),
  },
  "after much motion they differ by 6 % of that of the frames between": {
    ...{ inside: 3.2, outside: 4.2, found: ["repeat 20-99"] },
    loop: (offset) => ({ period: 40, reach: 90, offset: () => offset }),
  },
  "85 % of the frames play again": {
    ...{ inside: 36, outside: 32, found: ["repeat 20-95"] },
    loop: (again) => ({ period: 40, again }),
  },
  "they differ by 35 % of what the frames between do": {
    ...{ inside: 0.3, outside: 0.42, found: ["repeat 20-99"] },
    loop: (ratio) => ({ period: 40, reach: 1.5 / ratio, offset: () => 1 }),
  },
  "the frames between differ by 0.12 levels": {
    ...{ inside: 0.14, outside: 0.1, found: ["repeat 20-99"] },
    loop: (between) => ({ period: 40, reach: 1.5 * between }),
  },
  "70 % of the frames differ from those between": {
    ...{ inside: 8, outside: 6, found: ["repeat 20-99"] },
    loop: (lively) => ({ period: 40, source: (n) => n % 10 < lively ? n : 0 }),
  },
  "two frames in a row are missing": {
    ...{ inside: 2, outside: 3, found: ["repeat 20-139"], other: ["repeat 20-109"] },
    loop: (missing) => ({ period: 40, again: 80, offset: (n) => n >= 50 && n < 50 + missing ? NaN : 0 }),
  },
  "a frame differs by three times as much as those before": {
    ...{ inside: 0.9, outside: 1.05, found: ["repeat 20-139"], other: ["repeat 20-129"] },
    loop: (offset) => ({ period: 40, again: 80, offset: (n) => n < 70 ? 0.3 : offset }),
  },
  "a frame differs by 0.1 levels": {
    ...{ inside: 0.08, outside: 0.12, found: ["repeat 20-139"], other: ["repeat 20-129"] },
    loop: (offset) => ({ period: 40, again: 80, offset: (n) => n < 70 ? 0 : offset }),
  },
};

for (const [name, { inside, outside, loop, found, other = [] }] of Object.entries(BOUNDS)) {
  Deno.test(`repeat: ${name}`, () => {
    assert.deepEqual(repeatsIn(loop(inside)), found, `${inside}`);
    assert.deepEqual(repeatsIn(loop(outside)), other, `${outside}`);
  });
}

Deno.test("repeat: a loop that begins with a moment of rest, over slow motion", () => {
  // A lag beside the right one fits at first; the right one takes its place, and is traced back.
  const slow = (n: number) => ({
    mean: (cell: number) => 100 + 60 * Math.sin((n < 12 ? 12 : n) / 9 + (cell % 20 >> 1) / 3),
  });
  const film = new MeasuredFilm("repeat", {});
  film.play(20, (n) => slow(n)).play(40, (n) => slow(20 + n)).play(40, (n) => slow(20 + n));
  film.play(30, (n) => slow(60 + n));
  assert.deepEqual(film.end(), ["repeat 20-99"]);
});
