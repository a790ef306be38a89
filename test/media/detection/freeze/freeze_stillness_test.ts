/** What is still after motion, and what a codec may draw again meanwhile: bounds of both. */

import { type FreezeBound, testFreezeBounds } from "../../../support/kernels/measured_freeze.ts";

/** One cell that goes up and down by `change`. */
const blinking = (change: number) => (n: number, cell: number) => cell === 7 ? change * (n % 2) : 0;
/** A frame within the stretch that differs, and from it on `step` is left. */
const KEYFRAME = 10;
const keyframe = (moved: number, rest = 0.05) => (n: number) => n === KEYFRAME ? moved : rest;
const redrawn = (step: number, change = step) => (n: number, cell: number) =>
  n < KEYFRAME ? 0 : cell === 7 ? change : cell % 2 ? step : -step;
/**
 * A picture in which from frame KEYFRAME on so many cells are brighter by some levels, and one more by
 * `change`.
 */
const partly = (cells: number, levels: number, change: number) => (n: number, cell: number) =>
  n < KEYFRAME ? 0 : cell === 7 ? change : cell >= 20 && cell < 20 + cells ? levels : 0;
const BOUNDS: Readonly<Record<string, FreezeBound>> = {
  "a still frame has 35 % of the motion before": {
    ...{ inside: 0.32, outside: 0.38 },
    film: (share) => ({
      before: { moved: 2 },
      still: { moved: (n) => (n % 2 ? 2 : 0.76) * share, share: 0.5 },
    }),
  },
  "a still frame has 1.2 levels": {
    ...{ inside: 1.1, outside: 1.3 },
    film: (moved) => ({ still: { moved: () => moved, share: 0.5 } }),
  },
  "no cell changes by more than 1.3 levels": {
    ...{ inside: 1.2, outside: 1.4 },
    film: (change) => ({ before: { change: 3 }, still: { offset: blinking(change) } }),
  },
  "no cell changes by more than 15 % of the change before": {
    ...{ inside: 1.25, outside: 1.6 },
    film: (change) => ({ before: { change: 10 }, still: { offset: blinking(change) } }),
  },
  "no cell changes by more than 2.2 levels": {
    ...{ inside: 2.1, outside: 2.3 },
    film: (change) => ({ before: { change: 40 }, still: { offset: blinking(change) } }),
  },
  "the first frames may change by 25 %": {
    ...{ inside: 1.8, outside: 2.6 },
    film: (change) => ({
      before: { change: 9 },
      still: { offset: (n, cell) => n < 2 ? blinking(change)(n + 1, cell) : 0 },
    }),
  },
  "the first frames may change by 4 levels": {
    ...{ inside: 3.8, outside: 4.2 },
    film: (change) => ({
      before: { change: 40 },
      still: { offset: (n, cell) => n < 2 ? blinking(change)(n + 1, cell) : 0 },
    }),
  },
  "four first frames may, and two after them are a keyframe": {
    ...{ inside: 6, outside: 7 },
    film: (frames) => ({
      before: { change: 40 },
      still: { frames: 30, offset: (n, cell) => cell === 7 ? 3 * Math.min(n + 1, frames) : 0 },
    }),
    found: ["freeze 30-59"],
  },
  "a keyframe has two frames": {
    ...{ inside: 2, outside: 3 },
    film: (frames) => ({
      still: { frames: 11 + frames, moved: (n) => n >= 4 && n < 4 + frames ? 2 : 0.05, offset: () => 0 },
    }),
    found: ["freeze 30-42"],
  },
  "a keyframe has 3 levels": {
    ...{ inside: 2.8, outside: 3.2 },
    film: (moved) => ({ still: { moved: keyframe(moved) } }),
    other: ["freeze 30-39"],
  },
  "a keyframe has four times the motion before": {
    ...{ inside: 2.2, outside: 2.6 },
    film: (moved) => ({ before: { moved: 0.6 }, still: { moved: keyframe(moved) } }),
    other: ["freeze 30-39"],
  },
  "a keyframe changes no cell by more than 3.5 levels": {
    ...{ inside: 3.3, outside: 3.7 },
    film: (change) => ({ still: { moved: keyframe(2), offset: redrawn(0.4, change) } }),
    other: ["freeze 30-39"],
  },
  "a keyframe of nearly the same picture changes no cell by more than 7 levels": {
    ...{ inside: 6.5, outside: 7.5 },
    film: (change) => ({ still: { moved: keyframe(2), offset: redrawn(0.1, change) } }),
    other: ["freeze 30-39"],
  },
  "a keyframe changes the cells by half a level": {
    ...{ inside: 0.46, outside: 0.54 },
    film: (step) => ({ still: { moved: keyframe(2), offset: redrawn(step) } }),
    other: ["freeze 30-39"],
  },
  "eight frames a keyframe": {
    ...{ inside: 16, outside: 15 },
    film: (frames) => ({
      before: { moved: 3 },
      still: { frames, moved: (n) => n === 3 || n === 7 || n === 11 ? 2 : 0.05 },
    }),
    found: ["freeze 30-45"],
  },
  "what is less than 35 % of the motion before does not count as one": {
    ...{ inside: 6.1, outside: 5.3 },
    film: (moved) => ({
      before: { moved },
      still: { frames: 12, moved: (n) => n === 3 || n === 6 || n === 9 ? 2 : 0.05 },
    }),
    found: ["freeze 30-41"],
  },
  "a coarse keyframe lies between frames that repeat but for 0.02 levels": {
    ...{ inside: 0.017, outside: 0.024 },
    film: (rest) => ({ still: { moved: keyframe(4, rest) } }),
    other: ["freeze 30-39"],
  },
  "a coarse keyframe has 5 levels": {
    ...{ inside: 4.6, outside: 5.4 },
    film: (moved) => ({ before: { moved: 8 }, still: { moved: keyframe(moved, 0) } }),
    other: ["freeze 30-39"],
  },
  "a coarse keyframe changes no cell by more than 9 levels": {
    ...{ inside: 8.5, outside: 9.5 },
    film: (change) => ({ still: { moved: keyframe(4, 0), offset: partly(60, 2.5, change) } }),
    other: ["freeze 30-39"],
  },
  "right after it moves 15 % of it": {
    ...{ inside: 0.14, outside: 0.16 },
    film: (share) => ({
      still: {
        moved: (n) => n === KEYFRAME ? 4 : n === KEYFRAME + 1 ? 4 * share : 0,
        offset: redrawn(0.4),
      },
    }),
    other: ["freeze 30-39"],
  },
  "54 cells may change at once": {
    ...{ inside: 53, outside: 56 },
    film: (cells) => ({ still: { moved: keyframe(4, 0), offset: partly(cells - 1, 10, 30) } }),
    other: ["freeze 30-39"],
  },
  "with 3 % of the motion before": {
    ...{ inside: 0.028, outside: 0.032 },
    film: (rest) => ({
      before: { moved: 8 },
      still: { moved: keyframe(4, 8 * rest), offset: partly(40, 10, 30) },
    }),
    other: ["freeze 30-39"],
  },
  "after less than five levels the frame before it repeats": {
    ...{ inside: 5.2, outside: 4.8 },
    film: (moved) => ({ before: { moved }, still: { moved: keyframe(4, 0.1), offset: partly(40, 10, 30) } }),
    other: ["freeze 30-39"],
  },
  "if one does by eight levels": {
    ...{ inside: 8.2, outside: 7.8 },
    film: (change) => ({
      before: { moved: 10 },
      still: { moved: keyframe(6, 0), offset: partly(40, 3, change) },
    }),
    other: ["freeze 30-39"],
  },
  "those that change by two levels count": {
    ...{ inside: 1.9, outside: 2.1 },
    film: (levels) => ({ still: { moved: keyframe(4, 0), offset: partly(60, levels, 30) } }),
    other: ["freeze 30-39"],
  },
  "a coarse keyframe changes the cells by 1.5 levels": {
    ...{ inside: 1.43, outside: 1.57 },
    film: (step) => ({ still: { moved: keyframe(4, 0), offset: redrawn(step) } }),
    other: ["freeze 30-39"],
  },
};

testFreezeBounds(BOUNDS);
