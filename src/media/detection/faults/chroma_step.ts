/** Colours that change all at once while the picture stays: planes that are swapped, shifted or stuck. */

import { type ArtifactMeasures, MEASURES } from "./artifact_measures.ts";

/** Least change of chroma, in levels. */
const CHROMA_MIN = 3.4;
/**
 * Chroma must change by more than this times the change of luma. ABRUPT is the same factor beside its largest
 * change in the three frames before, to which MORE levels are added.
 */
const OVER_LUMA = 1.9;
const ABRUPT = 3;
const MORE = 0.15;
/**
 * Frames before a step that show what is usual; with fewer there is no fault. Encoders draw colours coarsely
 * and mend them every few frames. So a step is no fault either where it is less than MENDED times a step that
 * stayed, up to MENDED_FRAMES frames before.
 */
const USUAL_FRAMES = 3;
const MENDED_FRAMES = 8;
const MENDED = 1.5;
/**
 * How many times the added change of luma the added change of chroma must be, both beside the frames before:
 * a key frame draws both anew.
 */
const OVER_LUMA_RISE = 5.5;
/**
 * Least change of chroma, in levels, that is clear where all else moves little; the constants below say how
 * much larger than that it must be.
 */
const FAINT_MIN = 2.2;
const FAINT_OVER_LUMA = 5;
const FAINT_ABRUPT = 4.5;
const FAINT_OVER_LUMA_RISE = 12;
/**
 * Least change of chroma, in levels, that is clear where chroma stood nearly still before, though luma rises
 * too, as in pictures that come in jumps. The constants below say how clear the step must be otherwise.
 */
const STILL_MIN = 6;
const STILL_ABRUPT = 10;
const STILL_OVER_LUMA = 2.4;
const STILL_OVER_LUMA_RISE = 2;
/**
 * A coloured thing appears where luma moved by less than these levels before, and more than APPEARS_MIN
 * thousandths of the picture are new. It changes chroma by less than APPEARS_CHROMA_MAX levels, which is no
 * fault.
 */
const APPEARS_STILL = 0.5;
const APPEARS_MIN = 30;
const APPEARS_CHROMA_MAX = 20;
/** Texture must stay: the most that the larger of the spikes before and now may be over the smaller. */
const TEXTURE_MAX = 1.25;
const TEXTURE_FLOOR = 0.6;
/**
 * How far the correlation may fall below its least in the three frames before: the loss in those is what
 * motion costs.
 */
const LOSS_MAX = 0.1;
/**
 * Least contrast of luma, in levels. CONTRAST_KEPT is the part of the contrast before that must be left, as a
 * coloured flash covers the picture.
 */
const CONTRAST_MIN = 6;
const CONTRAST_KEPT = 0.6;
/**
 * A change of chroma above these levels is clear in a picture of less contrast too, if luma stays; a smaller
 * one there is only a plain colour.
 */
const GLARING = 60;
const GLARING_LUMA_MAX = 3;
const GLARING_CONTRAST_MIN = 3;
/**
 * A coarse encoder leaves chroma as it is for a while though luma changes, and then makes up for it. So where
 * chroma changed by less than COARSE_STILL levels and luma by more than COARSE_MOVES, a step must be larger
 * than COARSE_MIN. The same holds for a key frame, unless texture stays as it was, within the factor
 * KEY_TEXTURE_MAX, and luma changes no more than before.
 */
const COARSE_STILL = 0.04;
const COARSE_MOVES = 0.3;
const COARSE_MIN = 12;
const KEY_TEXTURE_MAX = 1.02;

export interface ChromaStep {
  /** How clear the step is: 1 where the rule just holds; 0 for no step. */
  strength: number;
}

const step: ChromaStep = { strength: NaN };

/**
 * How clearly chroma changes abruptly, and nothing else. `isKey`: the frame, and not the one before it,
 * refers to no other. The object is the same in every call.
 */
export function chromaStep(measures: ArtifactMeasures, frame: number, isKey: boolean): ChromaStep {
  step.strength = 0;
  const { values } = measures, now = measures.placeOf(frame);
  const chroma = values[now + MEASURES.chroma1]!, luma = values[now + MEASURES.luma1]!;
  if (chroma <= FAINT_MIN || chroma <= OVER_LUMA * luma || frame <= USUAL_FRAMES) return step;
  const before = measures.placeOf(frame - 1);
  const isGlaring = chroma > GLARING && luma < GLARING_LUMA_MAX;
  const least = isGlaring ? GLARING_CONTRAST_MIN : CONTRAST_MIN;
  const contrast = values[now + MEASURES.contrast]!;
  if (contrast <= Math.max(least, CONTRAST_KEPT * values[before + MEASURES.contrast]!)) return step;
  if (isMended(measures, frame)) return step;
  const chromaBefore = values[measures.largestBefore(MEASURES.chroma1, frame, USUAL_FRAMES)]!;
  const lumaBefore = values[measures.largestBefore(MEASURES.luma1, frame, 3)]!;
  const hasAppeared = lumaBefore < APPEARS_STILL && values[now + MEASURES.novel]! > APPEARS_MIN;
  if (hasAppeared && chroma < APPEARS_CHROMA_MAX) return step;
  const isCoarse = chromaBefore < COARSE_STILL && lumaBefore > COARSE_MOVES;
  const texture = TEXTURE_FLOOR + values[now + MEASURES.spikesAcross]! + values[now + MEASURES.spikesDown]!;
  const textureBefore = TEXTURE_FLOOR + values[before + MEASURES.spikesAcross]! +
    values[before + MEASURES.spikesDown]!;
  const textureChange = Math.max(texture, textureBefore) / Math.min(texture, textureBefore);
  const isRedrawn = isKey && (luma > lumaBefore || textureChange > KEY_TEXTURE_MAX);
  if ((isCoarse || isRedrawn) && chroma < COARSE_MIN) return step;
  const loss = values[measures.leastBefore(MEASURES.correlation, frame, 3)]! -
    values[now + MEASURES.correlation]!;
  if (loss >= LOSS_MAX || textureChange > TEXTURE_MAX) return step;
  const abrupt = chroma / (chromaBefore + MORE);
  const overRise = (chroma - chromaBefore) / (Math.max(0, luma - lumaBefore) + MORE);
  const strength = Math.min(chroma / CHROMA_MIN, abrupt / ABRUPT, overRise / OVER_LUMA_RISE);
  const isFaint = chroma > FAINT_OVER_LUMA * luma && abrupt > FAINT_ABRUPT && overRise > FAINT_OVER_LUMA_RISE;
  const isFromStill = chroma > Math.max(STILL_MIN, STILL_OVER_LUMA * luma) && abrupt > STILL_ABRUPT &&
    overRise > STILL_OVER_LUMA_RISE;
  if (strength > 1) step.strength = strength;
  else if (isFaint || isFromStill) step.strength = 1;
  return step;
}

/**
 * Whether a step of chroma is small beside one in the frames before that luma did not take part in: in cuts
 * both change.
 */
function isMended(measures: ArtifactMeasures, frame: number): boolean {
  const { values } = measures;
  let largest = 0;
  for (let back = USUAL_FRAMES + 1; back <= Math.min(MENDED_FRAMES, frame - 1); back++) {
    const place = measures.placeOf(frame - back), chroma = values[place + MEASURES.chroma1]!;
    if (values[place + MEASURES.luma1]! < chroma) largest = Math.max(largest, chroma);
  }
  return values[measures.placeOf(frame) + MEASURES.chroma1]! < MENDED * largest;
}
