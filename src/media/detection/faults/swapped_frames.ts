/** Pairs of frames that changed places, one pair behind the other. */

import { type ArtifactMeasures, MEASURES } from "./artifact_measures.ts";

/**
 * Least size of the far step over the near one. Frames that changed places make a far step, then a near one
 * back to what was shown three frames before.
 */
const FAR_NEAR_MIN = 1.25;
/** FAR_NEAR_MIN where there are only PAIRS_MIN pairs. */
const FAR_NEAR_CLEAR = 1.7;
const PAIRS_MIN = 2;
/** Frames to look back for pairs. */
const REACH = 24;
const NEAR_MIN = 0.4;
/** Most of the far step that light may explain. */
const SWAP_LIGHT_MAX = 0.8;
const FAR_MIN = 1;

export interface Swap {
  /** How clear the swap is: 1 where the rule just holds; 0 for no swap. */
  strength: number;
}

const swap: Swap = { strength: NaN };
/** How clear the pair is that `isPair` was asked for last. */
const pair: Swap = { strength: NaN };

/** How clearly the frame is one of pairs that changed places. The object is the same in every call. */
export function swapAt(measures: ArtifactMeasures, frame: number): Swap {
  swap.strength = 0;
  // The last pair is followed by the next frame in order, so its far step is missing: it counts to the one
  // before.
  for (let first = frame; first >= frame - 3; first--) {
    if (!isPair(measures, first)) continue;
    let pairs = 1, least = pair.strength;
    for (let at = first + 2; at + 2 < measures.count && isPair(measures, at); at += 2) {
      least = Math.min(least, pair.strength);
      pairs++;
    }
    for (let at = first - 2; at > frame - REACH && isPair(measures, at); at -= 2) {
      least = Math.min(least, pair.strength);
      pairs++;
    }
    if (pairs > PAIRS_MIN || (pairs === PAIRS_MIN && least >= FAR_NEAR_CLEAR / FAR_NEAR_MIN)) {
      swap.strength = Math.min(least, 4);
      break;
    }
  }
  return swap;
}

/** Whether the step to a frame leads away from the frame two before. */
export function mayBeFar(measures: ArtifactMeasures, frame: number): boolean {
  const { values } = measures, place = measures.placeOf(frame);
  const step = values[place + MEASURES.luma1]!;
  return frame >= 2 && step > FAR_MIN && step > 1.05 * values[place + MEASURES.luma2]!;
}

function isPair(measures: ArtifactMeasures, first: number): boolean {
  if (first < 2 || first + 2 >= measures.count || !mayBeFar(measures, first)) return false;
  const { values } = measures;
  const one = measures.placeOf(first), two = measures.placeOf(first + 1), three = measures.placeOf(first + 2);
  const to = values[one + MEASURES.luma1]!, near = values[two + MEASURES.luma1]!;
  if (near <= NEAR_MIN) return false;
  if (Math.abs(values[one + MEASURES.lift]!) >= SWAP_LIGHT_MAX * to) return false;
  const far = Math.min(to, values[three + MEASURES.luma1]!);
  const acrossThree = values[two + MEASURES.luma3]!;
  const acrossTwo = Math.min(values[two + MEASURES.luma2]!, values[three + MEASURES.luma2]!);
  if (far <= FAR_MIN || far <= FAR_NEAR_MIN * near) return false;
  if (acrossThree >= 0.85 * acrossTwo || acrossThree >= 1.35 * near + 0.3) return false;
  pair.strength = far / near / FAR_NEAR_MIN;
  return true;
}
