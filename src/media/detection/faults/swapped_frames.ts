/** Pairs of frames that changed places, one pair behind the other. */

import { type ArtifactMeasures, MEASURES } from "./artifact_measures.ts";

/** A far step, then a near one back to what was shown three frames before: frames that changed places. */
const FAR_NEAR_MIN = 1.25;
/** As that, where there are only two such pairs so far. */
const FAR_NEAR_CLEAR = 1.7;
const PAIRS_MIN = 2;
/** How far back pairs are counted. */
const REACH = 24;
const NEAR_MIN = 0.4;
/** Most of the far step that light may explain. */
const SWAP_LIGHT_MAX = 0.8;
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
export function mayBeFar(measures: ArtifactMeasures, frame: number): boolean {
  const step = measures.at(MEASURES.luma1, frame);
  return frame >= 2 && step > FAR_MIN && step > 1.05 * measures.at(MEASURES.luma2, frame);
}

function swapAt(measures: ArtifactMeasures, first: number): number {
  if (first < 2 || first + 2 >= measures.count) return 0;
  const to = measures.at(MEASURES.luma1, first), near = measures.at(MEASURES.luma1, first + 1);
  if (near <= NEAR_MIN || !mayBeFar(measures, first)) return 0;
  const lift = measures.lift(first);
  if (Math.abs(lift) >= SWAP_LIGHT_MAX * to) return 0;
  const far = Math.min(to, measures.at(MEASURES.luma1, first + 2));
  const acrossThree = measures.at(MEASURES.luma3, first + 1);
  const acrossTwo = Math.min(measures.at(MEASURES.luma2, first + 1), measures.at(MEASURES.luma2, first + 2));
  if (far <= FAR_MIN || far <= FAR_NEAR_MIN * near) return 0;
  if (acrossThree >= 0.85 * acrossTwo || acrossThree >= 1.35 * near + 0.3) return 0;
  return far / near / FAR_NEAR_MIN;
}
