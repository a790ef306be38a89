/** One or two frames that are unlike the frames on both sides, which are alike: a foreign frame in a shot. */

import { type ArtifactMeasures, MEASURES } from "./artifact_measures.ts";

export interface IsolatedRun {
  /** 0 where no run begins. */
  frames: number;
  /** 1 where the rule just holds. */
  strength: number;
  /** Only the colours are others. */
  isChroma: boolean;
}

/** Least change of luma and chroma, in levels, at both ends. */
const CHANGE_MIN = 9;
/** Most of that change that may be left between the two sides. */
const LEFT_MAX = 0.36;
/** Least loss of correlation at both ends: light that changes for a moment keeps the structure. */
const LOSS_MIN = 0.25;
/** Least difference that motion does not explain: a shaken camera only moves the picture. */
const UNEXPLAINED_MIN = 6;
/** How much larger than other changes nearby: in a shaken film all frames differ. */
const UNUSUAL = 1.8;
/** Change of the mean over the mean change: nearly all of the picture became brighter (a flash), or darker (a blink). */
const LIFT_MAX = 0.9;
const DROP_MAX = 0.97;
/**
 * A brighter or darker picture is another one where so much of the structure is lost and both have so much contrast: light keeps
 * the structure, or leaves a plain picture. And where all of it but a part of RELIT_REST became
 * brighter, it has as much fine texture as before: light covers texture.
 */
const RELIT_LOSS_MIN = 0.75;
const RELIT_CONTRAST_MIN = 10;
const RELIT_REST = 0.04;
const RELIT_TEXTURE_MIN = 0.7;
/** Bright light that covers a part only, or has a colour, leaves this part of contrast and texture, at most, and most of the structure. */
const VEIL_LIFT_MIN = 0.6;
const VEIL_LOSS_MAX = 0.5;
const VEIL_CONTRAST_MAX = 0.6;

const result: IsolatedRun = { frames: 0, strength: 0, isChroma: false };

/** The run that begins with this frame. The object is the same in every call. */
export function isolatedRun(measures: ArtifactMeasures, start: number): IsolatedRun {
  result.frames = 0;
  if (start === 0 || !mayBeginRun(measures, start) || measures.isShaken(start)) return result;
  for (let frames = 1; frames <= 2 && start + frames < measures.count; frames++) {
    const strength = strengthOf(measures, start, frames);
    if (strength < 1) continue;
    result.frames = frames;
    result.strength = strength;
    result.isChroma = measures.at(MEASURES.luma1, start) < 0.35 * measures.at(MEASURES.chroma1, start);
    break;
  }
  return result;
}

/** Whether a run may begin here, by what came until this frame. */
export function mayBeginRun(measures: ArtifactMeasures, start: number): boolean {
  if (measures.change(start) < CHANGE_MIN || 1 - measures.at(MEASURES.correlation, start) < LOSS_MIN) {
    return false;
  }
  if (measures.at(MEASURES.unexplained, start) < UNEXPLAINED_MIN) return false;
  const lift = measures.lift(start) /
    Math.max(measures.at(MEASURES.luma1, start), 0.001);
  const isCovered = measures.at(MEASURES.spikesAcross, start) <
    RELIT_TEXTURE_MIN * measures.at(MEASURES.spikesAcross, start - 1);
  if (lift > VEIL_LIFT_MIN && isCovered && isVeiled(measures, start)) return false;
  if (lift <= LIFT_MAX && lift >= -DROP_MAX) return true;
  if (lift > 1 - RELIT_REST && isCovered) return false;
  const contrast = Math.min(measures.at(MEASURES.contrast, start), measures.at(MEASURES.contrast, start - 1));
  return 1 - measures.at(MEASURES.correlation, start) >= RELIT_LOSS_MIN && contrast >= RELIT_CONTRAST_MIN;
}

/** Whether the structure shows through, with less contrast. */
function isVeiled(measures: ArtifactMeasures, frame: number): boolean {
  return 1 - measures.at(MEASURES.correlation, frame) < VEIL_LOSS_MAX &&
    measures.at(MEASURES.contrast, frame) < VEIL_CONTRAST_MAX * measures.at(MEASURES.contrast, frame - 1);
}

/** 0 where it is no run. */
function strengthOf(measures: ArtifactMeasures, start: number, frames: number): number {
  const after = start + frames;
  const change = Math.min(measures.change(start), measures.change(after));
  const left = frames === 1
    ? measures.at(MEASURES.luma2, after) + measures.at(MEASURES.chroma2, after)
    : measures.at(MEASURES.luma3, after) + measures.at(MEASURES.chroma3, after);
  const loss = 1 -
    Math.max(measures.at(MEASURES.correlation, start), measures.at(MEASURES.correlation, after));
  const unexplained = Math.min(
    measures.at(MEASURES.unexplained, start),
    measures.at(MEASURES.unexplained, after),
  );
  if (change < CHANGE_MIN || left > LEFT_MAX * change || loss < LOSS_MIN || unexplained < UNEXPLAINED_MIN) {
    return 0;
  }
  if (frames === 2) {
    const second = measures.at(MEASURES.luma2, start + 1) + measures.at(MEASURES.chroma2, start + 1);
    if (second < 2 * left) return 0;
  }
  if (change <= UNUSUAL * usualChange(measures, start, after)) return 0;
  return Math.min(change / CHANGE_MIN, LEFT_MAX * change / Math.max(left, 0.1), 4);
}

/** The largest change of the four frames before the run and of three behind the frame after it. */
function usualChange(measures: ArtifactMeasures, start: number, after: number): number {
  let usual = 0;
  for (let frame = start - 4; frame < start; frame++) usual = Math.max(usual, measures.change(frame));
  for (let frame = after + 1; frame <= after + 3; frame++) usual = Math.max(usual, measures.change(frame));
  return usual;
}
