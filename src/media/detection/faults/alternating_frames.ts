/** Faults that alternate from frame to frame: brightness that goes up and down, and frames in the wrong order. */

import type { ArtifactMeasures } from "./artifact_measures.ts";

/** Least step of the mean luma, as a share of the darker frame, which counts as 16 at least. */
const STEP_MIN = 0.035;
const DARK = 16;
/** Most loss of correlation at a step: the picture itself stays. */
const STEP_LOSS_MAX = 0.12;
/** The same of all steps on average. */
const MEAN_LOSS_MAX = 0.06;
/** Steps up and down in turn, at most STEP_GAP frames apart. A strobe is dark for longer. */
const STEPS_MIN = 5;
const STEP_GAP = 2;
/** How far back steps are counted. */
const REACH = 24;

/** Whether later frames may show that the frame alternates with its neighbours. */
export function mayAlternate(measures: ArtifactMeasures, frame: number): boolean {
  for (let near = frame; near > frame - STEP_GAP; near--) {
    if (stepAt(measures, near) !== 0 || mayBeFar(measures, near)) return true;
  }
  return false;
}

/** How clearly the frame is part of a flicker: 1 where the rule just holds, 0 for no. */
export function flickerStrength(measures: ArtifactMeasures, frame: number): number {
  let last = 0;
  for (let at = frame; at > frame - STEP_GAP && last === 0; at--) last = stepAt(measures, at);
  if (last === 0) return 0;
  let first = frame;
  while (stepAt(measures, first) === 0) first--;
  let steps = 1;
  let isFollowed = false;
  let least = Math.abs(last);
  let loss = lossAt(measures, first);
  for (let at = first, sign = last;;) {
    const next = nextStep(measures, at, 1, sign);
    if (next < 0) break;
    at = next;
    if (at <= frame) break;
    isFollowed = true;
    sign = stepAt(measures, at);
    least = Math.min(least, Math.abs(sign));
    loss += lossAt(measures, at);
    steps++;
  }
  // Behind the last step the picture is as it was.
  if (!isFollowed) return 0;
  for (let at = first, sign = last; frame - at < REACH;) {
    const before = nextStep(measures, at, -1, sign);
    if (before < 0) break;
    at = before;
    sign = stepAt(measures, at);
    least = Math.min(least, Math.abs(sign));
    loss += lossAt(measures, at);
    steps++;
  }
  return steps < STEPS_MIN || loss > MEAN_LOSS_MAX * steps ? 0 : Math.min(least / STEP_MIN, 4);
}

/** The nearest step in this direction; -1 unless it is near and goes the other way. */
function nextStep(measures: ArtifactMeasures, from: number, direction: 1 | -1, sign: number): number {
  for (let gap = 1; gap <= STEP_GAP; gap++) {
    const at = from + gap * direction;
    if (at < 1 || at >= measures.count) return -1;
    const step = stepAt(measures, at);
    if (step !== 0) return step * sign < 0 ? at : -1;
  }
  return -1;
}

/** The relative change of the mean luma to the frame before; 0 where it is no step. */
function stepAt(measures: ArtifactMeasures, frame: number): number {
  if (frame < 1) return 0;
  const mean = measures.at("lumaMean", frame), before = measures.at("lumaMean", frame - 1);
  const step = (mean - before) / Math.max(DARK, Math.min(mean, before));
  if (Math.abs(step) <= STEP_MIN) return 0;
  return lossAt(measures, frame) < STEP_LOSS_MAX ? step : 0;
}

function lossAt(measures: ArtifactMeasures, frame: number): number {
  return 1 - measures.at("correlation", frame);
}

/** A far step, then a near one back to what was shown three frames before: frames that changed places. */
const FAR_NEAR_MIN = 1.25;
/** As that, where there are only two such pairs so far. */
const FAR_NEAR_CLEAR = 1.7;
const PAIRS_MIN = 2;
const NEAR_MIN = 0.4;
const FAR_MIN = 1;

/** How clearly the frame is one of pairs that changed places: 1 where the rule just holds, 0 for no. */
export function swapStrength(measures: ArtifactMeasures, frame: number): number {
  // The last pair is followed by the next frame in order, so its far step is missing: it counts to the one before.
  for (let first = frame; first >= frame - 3; first--) {
    const own = swapAt(measures, first);
    if (own === 0) continue;
    let pairs = 1, least = own;
    for (let at = first + 2; at + 2 < measures.count; at += 2) {
      const strength = swapAt(measures, at);
      if (strength === 0) break;
      least = Math.min(least, strength);
      pairs++;
    }
    for (let at = first - 2; at > frame - REACH; at -= 2) {
      const strength = swapAt(measures, at);
      if (strength === 0) break;
      least = Math.min(least, strength);
      pairs++;
    }
    if (pairs > PAIRS_MIN || (pairs === PAIRS_MIN && least >= FAR_NEAR_CLEAR / FAR_NEAR_MIN)) {
      return Math.min(least, 4);
    }
  }
  return 0;
}

/** A step that leads away from the frame two before. */
function mayBeFar(measures: ArtifactMeasures, frame: number): boolean {
  const step = measures.at("luma1", frame);
  return frame >= 2 && step > FAR_MIN && step > 1.05 * measures.at("luma2", frame);
}

function swapAt(measures: ArtifactMeasures, first: number): number {
  if (first < 2 || first + 2 >= measures.count) return 0;
  const to = measures.at("luma1", first), near = measures.at("luma1", first + 1);
  if (near <= NEAR_MIN || !mayBeFar(measures, first)) return 0;
  const far = Math.min(to, measures.at("luma1", first + 2));
  const acrossThree = measures.at("luma3", first + 1);
  const acrossTwo = Math.min(measures.at("luma2", first + 1), measures.at("luma2", first + 2));
  if (far <= FAR_MIN || far <= FAR_NEAR_MIN * near) return 0;
  if (acrossThree >= 0.85 * acrossTwo || acrossThree >= 1.35 * near + 0.3) return 0;
  return far / near / FAR_NEAR_MIN;
}
