/** Old frames among new ones, in any motion: what changed is as it was two frames before, all at once and again and again. */

import type { ArtifactMeasures } from "./artifact_measures.ts";

/** Frames that are looked at, from the first one on, and so many before it that say what is usual. */
const WINDOW = 6, USUAL_FRAMES = 10;
/** So many of them return: thousandths of the picture, and so many times as many as were usual. */
const RETURNS_MIN = 3;
const RETURNED_MIN = 10;
const RETURNED_MORE = 3;
/** So many of them are nearer to the frame two before than to the one before: most of that difference. */
const NEARER_MIN = 3;
const NEARER_MAX = 0.8;
/** The largest step over those before; a frame with a step like them is none of the first. */
const FURTHER_MIN = 1.4;
const FIRST_MIN = 1.15;
const STEP_MIN = 1;
/** Least step before, on average, and so many frames of the usual ones have a step: what begins to move says nothing, however fast. */
const USUAL_MIN = 2;
const MOVING_MIN = 5;
/** Most of the change, on average, that light explains. */
const LIGHT_MAX = 0.6;

/** How clearly old frames come back from this frame on: 1 where the rule just holds, 0 for no. */
export function returnStrength(measures: ArtifactMeasures, first: number, shotStart: number): number {
  const step = measures.at("luma1", first);
  const isFar = step > FIRST_MIN * measures.at("luma1", first - 1);
  if (step < STEP_MIN || !(isFar || isNearer(measures, first))) return 0;
  if (first - USUAL_FRAMES <= shotStart || first + WINDOW > measures.count) return 0;
  const usualStep = measures.largestBefore("luma1", first, WINDOW);
  if (!movesBefore(measures, first) || !(step > FIRST_MIN * usualStep || isNearer(measures, first))) return 0;
  let returns = 0, nearer = 0, farthest = 0, light = 0;
  const least = RETURNED_MIN + RETURNED_MORE * measures.largestBefore("returned2", first, USUAL_FRAMES);
  for (let at = first; at < first + WINDOW; at++) {
    const change = measures.at("luma1", at);
    if (measures.at("returned2", at) > least) returns++;
    if (isNearer(measures, at)) nearer++;
    farthest = Math.max(farthest, change);
    light += Math.abs(measures.lift(at)) /
      Math.max(change, STEP_MIN);
  }
  if (returns < RETURNS_MIN || nearer < NEARER_MIN || light > LIGHT_MAX * WINDOW) return 0;
  return farthest > FURTHER_MIN * usualStep ? Math.min(4, farthest / (FURTHER_MIN * usualStep)) : 0;
}

function movesBefore(measures: ArtifactMeasures, first: number): boolean {
  let sum = 0, moving = 0;
  for (let back = 1; back <= USUAL_FRAMES; back++) {
    const step = measures.at("luma1", first - back);
    if (back <= WINDOW) sum += step;
    if (step >= STEP_MIN) moving++;
  }
  return sum > USUAL_MIN * WINDOW && moving >= MOVING_MIN;
}

function isNearer(measures: ArtifactMeasures, frame: number): boolean {
  return measures.at("luma2", frame) < NEARER_MAX * measures.at("luma1", frame);
}
