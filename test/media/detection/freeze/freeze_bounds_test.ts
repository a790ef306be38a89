/** When a stretch that stands still is a freeze: bounds of what was before, of what is left and of what comes
 * after.
 */

import { type FreezeBound, testFreezeBounds } from "../../../support/kernels/measured_freeze.ts";
import { scattered } from "../../../support/kernels/measured_film.ts";

/**
 * What is left of motion of 3 levels change: `ratio` of it, nowhere the same as two or three frames before.
 */
const restless = (ratio: number, change = 6) => (n: number, cell: number) =>
  ratio * change / 2 * scattered(n + 500, cell);

const BOUNDS: Readonly<Record<string, FreezeBound>> = {
  "motion before has 0.15 levels": {
    ...{ inside: 0.16, outside: 0.14 },
    film: (moved) => ({ before: { moved, change: 0.1 }, still: { frames: 60 } }),
    found: ["freeze 30-89"],
  },
  "motion is faint below 0.6 levels, and must be missing for longer": {
    ...{ inside: 0.63, outside: 0.57 },
    film: (moved) => ({ before: { moved }, still: { frames: 6 } }),
    found: ["freeze 30-35"],
  },
  "faint motion must be missing for 170 ms divided by its levels": {
    ...{ inside: 13, outside: 10 },
    film: (frames) => ({ before: { moved: 0.36 }, still: { frames } }),
    found: ["freeze 30-42"],
  },
  "of fast motion 8.5 % is left": {
    ...{ inside: 0.084, outside: 0.1 },
    film: (rest) => ({ before: { change: 3 }, still: { moved: () => 5 * rest, offset: restless(rest, 3) } }),
  },
  "of motion below 1.5 levels 7 % is left": {
    ...{ inside: 1.6, outside: 1.4 },
    film: (moved) => ({
      before: { moved, change: 3 },
      still: { moved: () => moved * 0.082, offset: restless(0.082, 3) },
    }),
  },
  "of slow motion 7 % is left": {
    ...{ inside: 0.069, outside: 0.083 },
    film: (rest) => ({
      before: { moved: 1, change: 3 },
      still: { moved: () => rest, offset: restless(rest, 3) },
    }),
  },
  "of faint motion 6 % is left": {
    ...{ inside: 0.058, outside: 0.072 },
    film: (rest) => ({
      before: { moved: 0.5, change: 3 },
      still: { moved: () => rest / 2, offset: restless(rest, 3) },
    }),
  },
  "half of the frames before moved": {
    ...{ inside: 3, outside: 2 },
    film: (moving) => ({ before: { at: (n) => (29 - n) % 12 < 2 * moving ? 5 : 0 }, still: { frames: 30 } }),
    found: ["freeze 30-59"],
  },
  "it is 2.5 times as long as a hold before": {
    ...{ inside: 11, outside: 9 },
    film: (frames) => ({ before: { at: (n) => n >= 20 && n < 23 ? 0 : 5 }, still: { frames } }),
    found: ["freeze 30-40"],
  },
  "the last frames before have 30 % of the motion": {
    ...{ inside: 0.33, outside: 0.27 },
    film: (share) => ({
      before: { moved: 10, at: (n) => n >= 27 ? 10 * share : 10 },
      still: { moved: () => 0.05 },
    }),
  },
  "the middle one of the last frames has 10 % of the motion": {
    ...{ inside: 0.115, outside: 0.085 },
    film: (share) => ({
      before: { moved: 10, at: (n) => n >= 28 ? 10 * share : 10 },
      still: { moved: () => 0.05 },
    }),
  },
  "the last frames before have five times what is left": {
    ...{ inside: 0.42, outside: 0.33 },
    film: (share) => ({
      before: { change: 3, at: (n) => n >= 27 ? 5 * share : 5 },
      still: { moved: () => 0.4, offset: restless(0.08, 3) },
    }),
  },
  "the picture drifts by 0.42 levels": {
    ...{ inside: 0.38, outside: 0.46 },
    film: (drift) => ({
      still: { offset: (n, cell) => cell % 20 === 0 ? 20 * drift * Math.max(0, n - 4) / 15 : 0 },
    }),
  },
  "everywhere alike it drifts by a level": {
    ...{ inside: 0.95, outside: 1.05 },
    film: (drift) => ({ still: { offset: (n) => drift * Math.max(0, n - 4) / 15 } }),
  },
  "no cell drifts by more than five levels then": {
    ...{ inside: 4.9, outside: 5.1 },
    film: (drift) => ({
      still: { offset: (n, cell) => (cell % 8 === 0 ? drift : 0.2) * Math.max(0, n - 4) / 15 },
    }),
  },
  "and the motion before has 1.5 levels": {
    ...{ inside: 1.6, outside: 1.4 },
    film: (moved) => ({ before: { moved }, still: { offset: (n) => 0.6 * Math.max(0, n - 4) / 15 } }),
  },
  "after faint motion the picture drifts by 0.2 levels": {
    ...{ inside: 0.18, outside: 0.22 },
    film: (drift) => ({ before: { moved: 0.5 }, still: { offset: (n) => drift * Math.max(0, n - 4) / 15 } }),
  },
  "22 % of the cells stop": {
    ...{ inside: 0.24, outside: 0.2 },
    film: (share) => ({ before: { share }, still: { moved: () => 0.05 } }),
  },
  "after faint motion 35 % of the cells stop": {
    ...{ inside: 0.38, outside: 0.32 },
    film: (share) => ({ before: { moved: 0.5, share }, still: { moved: () => 0.025 } }),
  },
  "44 % of the cells stop where the stream ends": {
    ...{ inside: 0.47, outside: 0.41 },
    film: (share) => ({ before: { share }, still: { frames: 40 }, after: null }),
    found: ["freeze 30-69"],
  },
  "a cell stops that moves by a quarter": {
    ...{ inside: 0.23, outside: 0.27 },
    film: (rest) => ({ before: { moved: 4 }, still: { moved: () => 4 * rest * 0.85, share: 0.85 } }),
  },
  "60 % of the cells move again": {
    ...{ inside: 0.64, outside: 0.56 },
    film: (share) => ({ still: { moved: () => 0.05 }, after: { share } }),
  },
  "40 % of the motion comes back": {
    ...{ inside: 0.44, outside: 0.36 },
    film: (share) => ({ still: { moved: () => 0.05 }, after: { moved: 5 * share } }),
  },
  "the motion comes back within eight frames": {
    ...{ inside: 7, outside: 8 },
    film: (frames) => ({
      still: { moved: () => 0.05 },
      after: { at: (n) => n < frames ? 1.4 : 5 },
    }),
  },
  "the darkest and the brightest cell are 12 levels apart": {
    ...{ inside: 13, outside: 11 },
    film: (range) => ({ range, before: { change: 0 } }),
  },
  "five frames": {
    ...{ inside: 5, outside: 4 },
    film: (frames) => ({ framesPerSecond: 10, still: { frames } }),
    found: ["freeze 30-34"],
  },
  "190 ms": {
    ...{ inside: 10, outside: 9 },
    film: (frames) => ({ framesPerSecond: 50, still: { frames } }),
    found: ["freeze 30-39"],
  },
  "250 ms where the codec leaves something": {
    ...{ inside: 13, outside: 12 },
    film: (frames) => ({ framesPerSecond: 50, still: { frames, moved: () => 0.15 } }),
    found: ["freeze 30-42"],
  },
  "that is more than 0.1 levels": {
    ...{ inside: 0.09, outside: 0.11 },
    film: (rest) => ({ framesPerSecond: 50, still: { frames: 11, moved: () => rest } }),
    found: ["freeze 30-40"],
  },
  "there 30 % of what is usual is left at most": {
    ...{ inside: 0.27, outside: 0.33 },
    film: (rest) => ({
      before: { at: (n) => n >= 25 ? 15 : 2 },
      still: { moved: () => 2 * rest },
      after: { moved: 15 },
    }),
  },
  "usual is what 70 % of the frames of a second have at most": {
    ...{ inside: 9, outside: 6 },
    film: (fast) => ({
      before: { at: (n) => n >= 30 - fast ? 5 : 1 },
      still: { moved: () => 0.4 },
    }),
  },
  "300 ms where a cut ends it": {
    ...{ inside: 8, outside: 7 },
    film: (frames) => ({ cuts: [30 + frames], still: { frames, moved: () => 0.02 } }),
    found: ["freeze 30-37"],
  },
  "and 190 ms where it repeats exactly": {
    ...{ inside: 5, outside: 4 },
    film: (frames) => ({ cuts: [30 + frames], still: { frames } }),
    found: ["freeze 30-34"],
  },
  "a second where the stream ends": {
    ...{ inside: 25, outside: 24 },
    film: (frames) => ({ still: { frames }, after: null }),
    found: ["freeze 30-54"],
  },
  "a still shot begins up to five frames after its cut": {
    ...{ inside: 24, outside: 25 },
    film: (cut) => ({ cuts: [cut] }),
  },
  "20 times the motion before is a cut": {
    ...{ inside: 19, outside: 21 },
    film: (factor) => ({
      before: { moved: 1 },
      still: { frames: 7, moved: () => 0.02 },
      after: { moved: factor },
    }),
    found: ["freeze 30-36"],
  },
  "before such a cut 3 % of the motion is left": {
    ...{ inside: 0.026, outside: 0.034 },
    film: (rest) => ({
      before: { moved: 1, change: 3 },
      still: { moved: () => rest, offset: restless(rest, 3) },
      after: { moved: 25 },
    }),
  },
  "a cell moves with 0.1 levels a sample": {
    ...{ inside: 0.115, outside: 0.085 },
    film: (cell) => ({
      before: { moved: 1.5, change: 0, share: 0.15, others: cell },
      still: { frames: 30 },
      after: { moved: 5 },
    }),
    found: ["freeze 30-59"],
  },
  "the motion before is that at 80 % of its frames": {
    ...{ inside: 4, outside: 2 },
    film: (fast) => ({
      before: { at: (n) => n % 10 < fast ? 5 : 1.5 },
      still: { moved: (n) => n % 2 ? 0.6 : 0.22, share: 0.5 },
    }),
  },
  "half a second is before": {
    ...{ inside: 6, outside: 5 },
    film: (moving) => ({ before: { at: (n) => n < 30 - moving ? 0 : 5 }, still: { frames: 30 } }),
    found: ["freeze 30-59"],
  },
  "at a low rate six frames are before": {
    ...{ inside: 3, outside: 2 },
    film: (moving) => ({ framesPerSecond: 5, before: { at: (n) => n < 30 - moving ? 0 : 5 } }),
  },
  "at a high rate 60 frames are before": {
    ...{ inside: 31, outside: 25 },
    film: (moving) => ({
      framesPerSecond: 200,
      before: { frames: 120, at: (n) => n < 120 - moving ? 0 : 5 },
      still: { frames: 100 },
    }),
    found: ["freeze 120-219"],
  },
  "what stops after the motion died down repeats exactly in 60 % of the frames": {
    ...{ inside: 6, outside: 5 },
    film: (exact) => ({
      before: { moved: 10, at: (n) => n >= 22 ? 1 : 10 },
      still: { frames: 21, moved: (n) => n * exact % 10 < exact ? 0 : 0.05 },
    }),
    found: ["freeze 30-50"],
  },
  "then the motion is that of the middle one of six frames": {
    ...{ inside: 4, outside: 3 },
    film: (moving) => ({
      before: { moved: 10, at: (n) => n < 24 ? 10 : n >= 30 - moving ? 0.9 : 0.1 },
      after: { moved: 1 },
    }),
  },
  "then a still frame has 15 % of it": {
    ...{ inside: 0.13, outside: 0.17 },
    film: (share) => ({
      before: { moved: 10, at: (n) => n >= 22 ? 1 : 10 },
      still: { moved: (n) => n >= 8 && n < 11 ? share : 0 },
      after: { moved: 1 },
    }),
  },
  "a frame that moves three times as much as the others says nothing of the cells": {
    ...{ inside: 3.3, outside: 2.9 },
    film: (redrawn) => ({
      before: {
        share: 0.5,
        at: (n) => n % 12 === 5 ? redrawn / 2 : 1,
        others: (n) => n % 12 === 5 ? redrawn : 0.09,
      },
      still: { frames: 30, moved: () => 0.025 },
      after: { moved: 1, share: 0.5 },
    }),
    found: ["freeze 30-59"],
  },
  "where 80 % of the frames repeat exactly, 18 % of the cells stop": {
    ...{ inside: 0.2, outside: 0.16 },
    film: (share) => ({ before: { share } }),
  },
  "then 35 % of the cells move again": {
    ...{ inside: 0.37, outside: 0.33 },
    film: (share) => ({ after: { share } }),
  },
  "then 15 % of the motion comes back": {
    ...{ inside: 0.16, outside: 0.14 },
    film: (share) => ({ after: { moved: 5 * share } }),
  },
  "then faint motion must be missing for 70 ms divided by its levels, if it changes a cell by 0.8 levels": {
    ...{ inside: 0.84, outside: 0.76 },
    film: (change) => ({ before: { moved: 0.3, change }, still: { frames: 12 } }),
    found: ["freeze 30-41"],
  },
  "that is so from 80 % on": {
    ...{ inside: 0.85, outside: 0.75 },
    film: (exact) => ({
      still: { frames: 21, moved: (n) => n * exact % 1 < exact ? 0 : 0.05 },
      after: { share: 0.45 },
    }),
    found: ["freeze 30-50"],
  },
  "and for ten frames": {
    ...{ inside: 11, outside: 10 },
    film: (frames) => ({ still: { frames }, after: { share: 0.45 } }),
    found: ["freeze 30-40"],
  },
  "and where one frame in a row was still before": {
    ...{ inside: 1, outside: 2 },
    film: (hold) => ({
      before: { at: (n) => n >= 22 && n < 22 + hold ? 0 : 5 },
      after: { share: 0.45 },
    }),
  },
  "what was before a cut does not count": {
    ...{ inside: 22, outside: 2 },
    film: (cut) => ({
      cuts: [cut],
      before: { change: 0.4, at: (n) => n <= 22 ? 40 : 0.5 },
      still: { moved: () => 0.025 },
      after: { moved: 0.5, change: 0.4 },
    }),
    other: ["freeze 23-79"],
  },
  "a picture of two frames before repeats, where that between differs by 0.02 levels a cell": {
    ...{ inside: 0.024, outside: 0.016 },
    film: (step) => ({
      before: { moved: 0.5 },
      still: { moved: () => 0.15, offset: (n) => step * (n % 2) },
    }),
  },
  "and it differs from that by 0.004 levels at most": {
    ...{ inside: 0.0035, outside: 0.006 },
    film: (drift) => ({
      before: { moved: 0.5 },
      still: { moved: () => 0.15, offset: (n) => 0.04 * (n % 2) + drift * (n >> 1 & 1) },
    }),
  },
  "four frames of motion are known": {
    ...{ inside: 5, outside: 4 },
    film: (frames) => ({ before: { frames } }),
    found: ["freeze 5-24"],
    other: ["freeze 5-23"],
  },
};

testFreezeBounds(BOUNDS);
