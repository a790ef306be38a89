/** How much of a live session's stream is kept for evidence clips, and what a clip has. See
 * docs/live/clips.md#evidence-clips.
 */

import type { Extent } from "../../frames/coordinates.ts";
import { LIMITS } from "../../../contract/limits.ts";
import type { ClipCause } from "./causes.ts";

/** Whether a clip has sound: not where the source has none, and not where MP4 cannot carry its codec. */
export const CLIP_SOUND_STATES = ["included", "none", "not_supported"] as const;
export type ClipSoundState = typeof CLIP_SOUND_STATES[number];

/** The field `record` of the attach configuration. */
export interface RecordPlan {
  readonly preRollMs: number;
  readonly postRollMs: number;
  readonly on: readonly ClipCause[];
}

/**
 * The most encoded bytes that a session keeps at a time: at the usual rate, those of both rolls, and those of
 * the pictures since the key frame before.
 */
export function keptBytesMax({ width, height }: Extent, { preRollMs, postRollMs }: RecordPlan): number {
  const perSecond = Math.max(
    LIMITS.evidence.keptBytesPerSecondMin,
    width * height * LIMITS.evidence.keptBytesPerSecondPerPixel,
  );
  return Math.ceil(perSecond * (preRollMs + postRollMs + LIMITS.evidence.keyframeEveryMs) / 1000);
}
