/** The field `recording` of a named source: how long its video is kept, and how much memory a session needs
 * for it.
 */

import type { Extent } from "../frames/coordinates.ts";
import { LIMITS } from "../../contract/limits.ts";

/** How a source is recorded: `recording = { hours = 48 }`. */
export interface RecordingPlan {
  /** Hours after its end at which a segment goes. */
  readonly hours: number;
  /** The bytes of the source beyond which the oldest segments go; null for no limit. */
  readonly bytes: number | null;
}

/**
 * The most encoded bytes of one segment: of the rate that evidence clips are made for, and as much again for
 * what comes until the next key frame.
 */
export function segmentBytesMax({ width, height }: Extent): number {
  const { keptBytesPerSecondMin, keptBytesPerSecondPerPixel } = LIMITS.evidence;
  const perSecond = Math.max(keptBytesPerSecondMin, width * height * keptBytesPerSecondPerPixel);
  return Math.ceil(perSecond * 2 * LIMITS.recording.segmentMs / 1000);
}
