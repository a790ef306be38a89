/** The detectors of ranges, fed frame by frame: black, freezes, flashes, gradual transitions and repeats. */

import { type DetectedRange, type Detector, DETECTORS } from "../../model/frames/detected_range.ts";
import { LIMITS } from "../../model/limits.ts";
import { BlackDetector } from "./black.ts";
import { FlashDetector } from "./flash.ts";
import { FrameHistory, type RangeMeasures } from "./frame_history.ts";
import { FreezeDetector } from "./freeze.ts";
import { GradualDetector } from "./gradual.ts";
import { RepeatDetector } from "./repeat.ts";
import type { CutScores, RangeDetector, RangeSink } from "./range_sink.ts";

/** One more than are used, so that the user of the ranges sees that there were more. */
const RANGES_MAX = LIMITS.detection.rangesMax + 1;

const MAKE: Readonly<Record<Detector, (sink: RangeSink, cuts: CutScores) => RangeDetector>> = {
  black: (sink) => new BlackDetector(sink),
  flash: (sink) => new FlashDetector(sink),
  freeze: (sink, cuts) => new FreezeDetector(sink, cuts),
  gradual_transition: (sink) => new GradualDetector(sink),
  repeat: (sink) => new RepeatDetector(sink),
};

/**
 * ```
 *                       ┌→ BlackDetector ──┐
 *   push ─→ FrameHistory┼→ FreezeDetector ─┼→ ranges: take(), finish()
 *                       └→ ...            ─┘
 * ```
 *
 * The memory is bounded, so a stream may be endless if `take` is called now and then. An ordinary frame allocates nothing.
 */
export class RangeDetectors {
  readonly #history = new FrameHistory();
  readonly #detectors: readonly RangeDetector[];
  #found: DetectedRange[] = [];

  constructor(cuts: CutScores, wanted: readonly Detector[] = DETECTORS) {
    const sink: RangeSink = {
      add: (type, startFrame, endFrame, startPtsMs, endPtsMs, confidence) => {
        if (this.#found.length >= RANGES_MAX) return;
        this.#found.push({ type, startFrame, endFrame, startPtsMs, endPtsMs, confidence });
      },
    };
    this.#detectors = wanted.map((type) => MAKE[type](sink, cuts));
  }

  /** Starts a new stream: the next frame is its first one. */
  reset(): void {
    this.#found = [];
    this.#history.reset();
    for (const detector of this.#detectors) detector.reset();
  }

  push(measures: RangeMeasures, ptsMs: number): void {
    this.#history.push(measures, ptsMs);
    // By index: here an iterator would allocate for each frame.
    for (let i = 0; i < this.#detectors.length; i++) this.#detectors[i]!.push(this.#history);
  }

  /** The ranges that ended since the last call. */
  take(): readonly DetectedRange[] {
    const found = this.#found;
    if (found.length > 0) this.#found = [];
    return found;
  }

  /** No more frames come: the ranges that were not taken, sorted by start. `reset` must be called before the next frame. */
  finish(): DetectedRange[] {
    for (const detector of this.#detectors) detector.finish(this.#history);
    return this.#found.toSorted((a, b) => a.startFrame - b.startFrame);
  }
}
