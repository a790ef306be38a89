/** One or two frames that are unlike the frames on both sides, which are alike: a foreign frame in a shot. */

import { type ArtifactMeasures, MEASURES } from "./artifact_measures.ts";

export interface IsolatedRun {
  /** Frames in the run; 0 where no run begins. */
  frames: number;
  /** How clear the run is: 1 where the rule just holds. */
  strength: number;
  /** Whether only the colours are others. */
  isChroma: boolean;
}

/** Least change of luma and chroma, in levels, at both ends. */
const CHANGE_MIN = 9;
/** Most of the change at the ends that may be left between the frames on both sides. */
const LEFT_MAX = 0.36;
/** Least loss of correlation at both ends: light that changes for a moment keeps the structure. */
const LOSS_MIN = 0.25;
/** Least difference that motion does not explain: a shaken camera only moves the picture. */
const UNEXPLAINED_MIN = 6;
/** How many times other changes nearby the change at the ends must be: in a shaken film all frames differ. */
const UNUSUAL = 1.8;
/**
 * Most change of the mean over the mean change: with more, nearly all of the picture became brighter (a
 * flash). DROP_MAX is the same where it became darker (a blink).
 */
const LIFT_MAX = 0.9;
const DROP_MAX = 0.97;
/**
 * Loss of correlation from which on a brighter or darker picture is another one, if both pictures have the
 * contrast RELIT_CONTRAST_MIN: light keeps the structure, or leaves a plain picture. Where all of the picture
 * but the part RELIT_REST became brighter, it must also have kept RELIT_TEXTURE_MIN of its fine texture:
 * light covers texture.
 */
const RELIT_LOSS_MIN = 0.75;
const RELIT_CONTRAST_MIN = 10;
const RELIT_REST = 0.04;
const RELIT_TEXTURE_MIN = 0.7;
/**
 * Least rise of the mean over the mean change for bright light that covers only a part of the picture, or has
 * a colour. Such light loses at most VEIL_LOSS_MAX of the structure, and leaves at most VEIL_CONTRAST_MAX of
 * the contrast and RELIT_TEXTURE_MIN of the texture.
 */
const VEIL_LIFT_MIN = 0.6;
const VEIL_LOSS_MAX = 0.5;
const VEIL_CONTRAST_MAX = 0.6;

const result: IsolatedRun = { frames: 0, strength: NaN, isChroma: false };

/** The run that begins with this frame. The object is the same in every call. */
export function isolatedRun(measures: ArtifactMeasures, start: number): IsolatedRun {
  result.frames = 0;
  if (start === 0 || !mayBeginRun(measures, start) || measures.isShaken(start)) return result;
  for (let frames = 1; frames <= 2 && start + frames < measures.count; frames++) {
    if (!isRun(measures, start, frames)) continue;
    const { values } = measures, now = measures.placeOf(start);
    result.frames = frames;
    result.isChroma = values[now + MEASURES.luma1]! < 0.35 * values[now + MEASURES.chroma1]!;
    break;
  }
  return result;
}

/** Whether a run may begin here, by what came until this frame. */
export function mayBeginRun(measures: ArtifactMeasures, start: number): boolean {
  const { values } = measures, now = measures.placeOf(start), before = measures.placeOf(start - 1);
  const loss = 1 - values[now + MEASURES.correlation]!;
  if (values[now + MEASURES.change]! < CHANGE_MIN || loss < LOSS_MIN) return false;
  if (values[now + MEASURES.unexplained]! < UNEXPLAINED_MIN) return false;
  const lift = values[now + MEASURES.lift]! / Math.max(values[now + MEASURES.luma1]!, 0.001);
  const isCovered =
    values[now + MEASURES.spikesAcross]! < RELIT_TEXTURE_MIN * values[before + MEASURES.spikesAcross]!;
  const contrast = values[now + MEASURES.contrast]!, contrastBefore = values[before + MEASURES.contrast]!;
  // The structure shows through, with less contrast.
  const isVeiled = loss < VEIL_LOSS_MAX && contrast < VEIL_CONTRAST_MAX * contrastBefore;
  if (lift > VEIL_LIFT_MIN && isCovered && isVeiled) return false;
  if (lift <= LIFT_MAX && lift >= -DROP_MAX) return true;
  if (lift > 1 - RELIT_REST && isCovered) return false;
  return loss >= RELIT_LOSS_MIN && Math.min(contrast, contrastBefore) >= RELIT_CONTRAST_MIN;
}

/** Whether `frames` frames from `start` on are a run; then `strength` says how clearly. */
function isRun(measures: ArtifactMeasures, start: number, frames: number): boolean {
  const { values } = measures;
  const first = measures.placeOf(start), after = measures.placeOf(start + frames);
  const change = Math.min(values[first + MEASURES.change]!, values[after + MEASURES.change]!);
  const isOne = frames === 1;
  const left = values[after + (isOne ? MEASURES.luma2 : MEASURES.luma3)]! +
    values[after + (isOne ? MEASURES.chroma2 : MEASURES.chroma3)]!;
  const loss = 1 - Math.max(values[first + MEASURES.correlation]!, values[after + MEASURES.correlation]!);
  const unexplained = Math.min(
    values[first + MEASURES.unexplained]!,
    values[after + MEASURES.unexplained]!,
  );
  if (change < CHANGE_MIN || left > LEFT_MAX * change || loss < LOSS_MIN || unexplained < UNEXPLAINED_MIN) {
    return false;
  }
  if (!isOne) {
    const second = measures.placeOf(start + 1);
    if (values[second + MEASURES.luma2]! + values[second + MEASURES.chroma2]! < 2 * left) return false;
  }
  // Of the four frames before the run and of three behind the frame after it.
  const usualBefore = values[measures.largestBefore(MEASURES.change, start, 4)]!;
  const usualBehind = values[measures.largestBefore(MEASURES.change, start + frames + 4, 3)]!;
  if (change <= UNUSUAL * Math.max(usualBefore, usualBehind)) return false;
  result.strength = Math.min(change / CHANGE_MIN, LEFT_MAX * change / Math.max(left, 0.1), 4);
  return result.strength >= 1;
}
