/** Brightness that goes up and down from frame to frame. */

import { type ArtifactMeasures, MEASURES } from "./artifact_measures.ts";

/** Least step of the mean luma, as a share of the darker frame, which counts as 16 at least; of one, and of all on average. */
const STEP_MIN = 0.045;
const MEAN_STEP_MIN = 0.09;
const DARK = 16;
/** Least contrast, in levels: of a picture without any, an encoder rounds the level up and down. */
const CONTRAST_MIN = 1.5;
/** Most loss of correlation at a step: the picture itself stays. */
const STEP_LOSS_MAX = 0.32;
/** The same of all steps on average. */
const MEAN_LOSS_MAX = 0.17;
/** Light changes nearly all of the picture in one direction, motion does not: least change of the mean over the mean change. */
const LIGHT_MIN = 0.86;
/** Steps up and down in turn, at most STEP_GAP frames apart. A strobe is dark for longer. */
const STEPS_MIN = 5;
const STEP_GAP = 2;
/** Light that is held is not quite steady: a step counts that is this part of the one beside it, in the other direction. */
const STEP_PART = 0.2;
/** So many are enough where they come at one distance, lie on both sides of the light before them, and are nothing but light. */
const EVEN_STEPS_MIN = 3;
const EVEN_STEP_MIN = 0.06;
const EVEN_LIGHT_MIN = 0.9;
/** How far the second step goes beyond the light before, as a part of it. */
const BEYOND_MIN = 0.2;
/** How far back steps are counted. */
const REACH = 24;

/** What is known of steps that follow each other. */
interface LightSteps {
  count: number;
  /** The first one, and the one behind it or -1. */
  first: number;
  second: number;
  /** Frames from one to the next where that is always the same, else 0. */
  gap: number;
  least: number;
  sum: number;
  loss: number;
  /** Sums of how far the mean and the samples changed. */
  lift: number;
  change: number;
}

const steps: LightSteps = {
  ...{ count: 0, first: 0, second: -1, gap: -1, least: 0, sum: 0, loss: 0, lift: 0, change: 0 },
};

/** Whether later frames may show that the frame flickers. */
export function mayFlicker(measures: ArtifactMeasures, frame: number): boolean {
  for (let near = frame; near > frame - STEP_GAP; near--) {
    if (stepAt(measures, near) !== 0) return true;
  }
  return false;
}

/** How clearly the frame is part of a flicker: 1 where the rule just holds, 0 for no. */
export function flickerStrength(measures: ArtifactMeasures, frame: number): number {
  let last = 0, at = frame;
  for (let near = frame; near > frame - STEP_GAP; near--) {
    const step = stepAt(measures, near);
    if (Math.abs(step) <= Math.abs(last)) continue;
    last = step;
    at = near;
  }
  if (last === 0) return 0;
  steps.count = 0;
  steps.second = steps.gap = -1;
  steps.least = Infinity;
  steps.sum = steps.loss = 0;
  steps.lift = steps.change = 0;
  const begin = at;
  addStep(measures, at, last);
  for (let sign = last;;) {
    const next = nextStep(measures, at, 1, sign);
    if (next < 0) break;
    addGap(next - at);
    if (at === begin) steps.second = next;
    at = next;
    sign = stepAt(measures, at);
    addStep(measures, at, sign);
  }
  // Behind the last step the picture is as it was.
  if (at <= frame) return 0;
  at = begin;
  for (let sign = last; frame - at < REACH;) {
    const before = nextStep(measures, at, -1, sign);
    if (before < 0) break;
    addGap(at - before);
    steps.second = at;
    at = before;
    sign = stepAt(measures, at);
    addStep(measures, at, sign);
  }
  steps.first = at;
  return isFlicker(measures) ? Math.min(steps.least / STEP_MIN, 4) : 0;
}

function addStep(measures: ArtifactMeasures, at: number, step: number): void {
  steps.count++;
  steps.least = Math.min(steps.least, Math.abs(step));
  steps.sum += Math.abs(step);
  steps.loss += lossAt(measures, at);
  steps.lift += Math.abs(measures.lift(at));
  steps.change += measures.at(MEASURES.luma1, at);
}

function addGap(gap: number): void {
  steps.gap = steps.gap === -1 || steps.gap === gap ? gap : 0;
}

function isFlicker(measures: ArtifactMeasures): boolean {
  const { count, first, second, gap, least, sum, loss, lift, change } = steps;
  if (loss > MEAN_LOSS_MAX * count || sum < MEAN_STEP_MIN * count || lift < LIGHT_MIN * change) return false;
  if (count >= STEPS_MIN) return true;
  if (count < EVEN_STEPS_MIN || gap === 0 || least < EVEN_STEP_MIN || lift < EVEN_LIGHT_MIN * change) {
    return false;
  }
  // A flash or two begin and end with the light before.
  const before = measures.at(MEASURES.lumaMean, first - 1);
  const one = measures.at(MEASURES.lumaMean, first) - before,
    two = measures.at(MEASURES.lumaMean, second) - before;
  return one * two < 0 && Math.abs(two) > BEYOND_MIN * Math.abs(one - two);
}

/** The nearest step in this direction that goes the other way; -1 where none is near. */
function nextStep(measures: ArtifactMeasures, from: number, direction: 1 | -1, sign: number): number {
  for (let gap = 1; gap <= STEP_GAP; gap++) {
    const at = from + gap * direction;
    if (at < 1 || at >= measures.count) return -1;
    const step = stepAt(measures, at);
    if (step * sign < 0 && Math.abs(step) >= STEP_PART * Math.abs(sign)) return at;
  }
  return -1;
}

/** The relative change of the mean luma to the frame before; 0 where it is no step. */
function stepAt(measures: ArtifactMeasures, frame: number): number {
  if (frame < 1) return 0;
  const mean = measures.at(MEASURES.lumaMean, frame), before = measures.at(MEASURES.lumaMean, frame - 1);
  const step = (mean - before) / Math.max(DARK, Math.min(mean, before));
  if (Math.abs(step) <= STEP_MIN || measures.at(MEASURES.contrast, frame) < CONTRAST_MIN) return 0;
  return lossAt(measures, frame) < STEP_LOSS_MAX ? step : 0;
}

function lossAt(measures: ArtifactMeasures, frame: number): number {
  return 1 - measures.at(MEASURES.correlation, frame);
}
