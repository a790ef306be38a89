/** What the detectors of ranges get and give: cut scores, and a place for what they find. */

import type { Detector } from "../../model/frames/detected_range.ts";

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
