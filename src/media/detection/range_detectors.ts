/** The detectors of ranges, fed frame by frame: black, freezes, flashes, gradual transitions and repeats. */

import { type DetectedRange, type Detector, DETECTORS } from "../../model/frames/detected_range.ts";
import { LIMITS } from "../../model/limits.ts";
import { BlackDetector } from "./black.ts";
import { FlashDetector } from "./flash.ts";
import { FrameHistory, type RangeMeasures } from "./frame_history.ts";
import { FreezeDetector } from "./freeze.ts";
import { GradualDetector } from "./gradual.ts";
import { RepeatDetector } from "./repeat.ts";
import type { CutScores, RangeSink } from "./range_sink.ts";

/** One more than are used, so that the user of the ranges sees that there were more. */
const RANGES_MAX = LIMITS.detection.rangesMax + 1;

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
  readonly #black: BlackDetector;
  readonly #freeze: FreezeDetector;
  readonly #flash: FlashDetector;
  readonly #gradual: GradualDetector;
  readonly #repeat: RepeatDetector;
  readonly #wanted: ReadonlySet<Detector>;
  #found: DetectedRange[] = [];

  constructor(cuts: CutScores, wanted: readonly Detector[] = DETECTORS) {
    this.#wanted = new Set(wanted);
    const sink: RangeSink = {
      add: (type, startFrame, endFrame, startPtsMs, endPtsMs, confidence) => {
        if (this.#found.length >= RANGES_MAX) return;
        this.#found.push({ type, startFrame, endFrame, startPtsMs, endPtsMs, confidence });
      },
    };
    this.#black = new BlackDetector(sink);
    this.#freeze = new FreezeDetector(sink, cuts);
    this.#flash = new FlashDetector(sink);
    this.#gradual = new GradualDetector(sink);
    this.#repeat = new RepeatDetector(sink);
  }

  /** Starts a new stream: the next frame is its first one. */
  reset(): void {
    this.#found = [];
    this.#history.reset();
    this.#black.reset();
    this.#freeze.reset();
    this.#flash.reset();
    this.#gradual.reset();
    this.#repeat.reset();
  }

  push(measures: RangeMeasures, ptsMs: number): void {
    this.#history.push(measures, ptsMs);
    if (this.#wanted.has("black")) this.#black.push(this.#history);
    if (this.#wanted.has("freeze")) this.#freeze.push(this.#history);
    if (this.#wanted.has("flash")) this.#flash.push(this.#history);
    if (this.#wanted.has("gradual_transition")) this.#gradual.push(this.#history);
    if (this.#wanted.has("repeat")) this.#repeat.push(this.#history);
  }

  /** The ranges that ended since the last call. */
  take(): readonly DetectedRange[] {
    const found = this.#found;
    if (found.length > 0) this.#found = [];
    return found;
  }

  /** The first frame of a range that lasts until now, as far as one can be sure of it; -1 if there is none. */
  openSince(type: "black" | "freeze" | "flash"): number {
    if (type === "freeze") return this.#freeze.open(this.#history);
    return type === "black" ? this.#black.open : this.#flash.open;
  }

  /** No more frames come: the ranges that were not taken, sorted by start. `reset` must be called before the next frame. */
  finish(): DetectedRange[] {
    if (this.#wanted.has("black")) this.#black.finish(this.#history);
    if (this.#wanted.has("freeze")) this.#freeze.finish(this.#history);
    if (this.#wanted.has("flash")) this.#flash.finish(this.#history);
    if (this.#wanted.has("gradual_transition")) this.#gradual.finish(this.#history);
    if (this.#wanted.has("repeat")) this.#repeat.finish();
    return this.#found.toSorted((a, b) => a.startFrame - b.startFrame);
  }
}
