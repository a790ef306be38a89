/** The reference implementation of `assembly/zone.ts`: at every frame it checks all scores since the last
 * change.
 */

import type { ZoneInterval, ZoneThresholds } from "../../../src/media/kernels/zone_kernel.ts";

export function referenceZone(
  { enterScore, exitScore, enterAfterFrames, exitAfterFrames }: ZoneThresholds,
  scores: readonly number[],
): ZoneInterval[] {
  const intervals: ZoneInterval[] = [];
  let since = 0;
  let enteredAt: number | undefined;
  const last = (frame: number, frames: number) =>
    frame + 1 - since >= frames ? scores.slice(frame + 1 - frames, frame + 1) : undefined;
  for (let frame = 0; frame < scores.length; frame++) {
    if (enteredAt === undefined) {
      if (!last(frame, enterAfterFrames)?.every((score) => score >= enterScore)) continue;
      enteredAt = frame;
    } else {
      if (!last(frame, exitAfterFrames)?.every((score) => score <= exitScore)) continue;
      intervals.push({ enteredAt, leftAt: frame });
      enteredAt = undefined;
    }
    since = frame + 1;
  }
  return enteredAt === undefined ? intervals : [...intervals, { enteredAt, leftAt: null }];
}
