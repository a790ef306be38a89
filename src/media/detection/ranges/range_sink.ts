/** What the detectors of ranges have in common: what they get, and a place for what they find. */

import type { Detector } from "../../../model/frames/detected_range.ts";
import type { FrameHistory } from "./frame_history.ts";

/**
 * Finds ranges of one type. After `finish`, and for a new stream, `reset` is called before the next frame.
 */
export interface RangeDetector {
  /** Looks at the newest frame of the history. Called once for each frame. */
  push(history: FrameHistory): void;
  /** To be called when no more frames come. */
  finish(history: FrameHistory): void;
  reset(): void;
}

/** How sure a frame is the first of a new shot; NaN while that is not known, and for a frame of long ago. */
export interface CutScores {
  cutScore(frame: number): number;
}

/** Frames count from 0; the last one is inside. */
export interface RangeSink {
  add(
    type: Detector,
    startFrame: number,
    endFrame: number,
    startPtsMs: number,
    endPtsMs: number,
    confidence: number,
  ): void;
}

/** The numbers that a detector decides by, where they are others than those that it has. */
export type BoundsOf<Own> = { readonly [Name in keyof Own]: number };

/**
 * The confidence of a range from how far it is inside the bounds of its detector: 0, just inside, is 0.5; 1
 * and more is 1.
 */
export function confidenceOf(margin: number): number {
  return 0.5 + 0.5 * Math.max(0, Math.min(1, margin));
}
