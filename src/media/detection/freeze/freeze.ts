/** Finds freezes: stretches in which a moving picture stands still, exactly or but for the codec's noise. */

import { CUT_SCORE_THRESHOLD } from "../../../model/frames/signals.ts";
import type { FrameHistory } from "../ranges/frame_history.ts";
import type { CutScores, RangeDetector, RangeSink } from "../ranges/range_sink.ts";
import { FREEZE_BOUNDS, type FreezeBounds, type Frozen, StillStretch } from "./still_stretch.ts";

/** A frame number that stands for no cut: longer ago than anything that is looked at. */
const NO_CUT = -100;
/**
 * Age in frames from which on it is taken as decided whether a frame begins a shot: what is not known by then
 * will not be known.
 */
const UNDECIDED_MAX = 64;

/*
 *        ┌→ StillStretch, measured by the half second before ───→ told
 *   push ┤
 *        └→ StillStretch, measured by the last frames before ───→ told where the other one tells nothing
 */
export class FreezeDetector implements RangeDetector {
  readonly #sink: RangeSink;
  readonly #cuts: CutScores;
  readonly #usual: StillStretch;
  readonly #brief: StillStretch;
  /**
   * The newest frame that is known to begin a shot. `#undecided` is the first frame of which that is not
   * known yet.
   */
  #cut = NO_CUT;
  #undecided = 0;
  /** Freezes that only the last frames before them show, and that were not told yet. */
  readonly #waiting: Frozen[] = [];
  /** The first frame that does not belong to a freeze that was told. */
  #told = 0;

  constructor(sink: RangeSink, cuts: CutScores, bounds: FreezeBounds = FREEZE_BOUNDS) {
    this.#sink = sink;
    this.#cuts = cuts;
    this.#usual = new StillStretch(cuts, false, bounds, (frozen) => this.#tell(frozen));
    this.#brief = new StillStretch(cuts, true, bounds, (frozen) => void this.#waiting.push(frozen));
  }

  reset(): void {
    this.#usual.reset();
    this.#brief.reset();
    this.#waiting.length = this.#told = this.#undecided = 0;
    this.#cut = NO_CUT;
  }

  push(history: FrameHistory): void {
    this.#follow(history.count - 1);
    this.#usual.push(history, this.#cut);
    this.#brief.push(history, this.#cut);
    this.#tellWaiting();
  }

  finish(history: FrameHistory): void {
    this.#usual.finish(history);
    this.#tellWaiting();
    this.#brief.finish(history);
    this.#tellWaiting();
    this.reset();
  }

  #follow(frame: number): void {
    while (this.#undecided < frame) {
      const score = this.#cuts.cutScore(this.#undecided);
      if (Number.isNaN(score) && frame - this.#undecided < UNDECIDED_MAX) return;
      if (score >= CUT_SCORE_THRESHOLD) this.#cut = this.#undecided;
      this.#undecided++;
    }
  }

  /** Tells the freezes that wait, unless the usual stretch may still tell the same. */
  #tellWaiting(): void {
    while (this.#waiting.length > 0) {
      const { start } = this.#usual;
      if (start >= 0 && start <= this.#waiting[0]!.lastFrame) return;
      this.#tell(this.#waiting.shift()!);
    }
  }

  #tell({ startFrame, lastFrame, first, last, startMs, endMs, confidence }: Frozen): void {
    if (startFrame < this.#told) return;
    this.#told = lastFrame + 1;
    this.#sink.add("freeze", first, last, startMs, endMs, confidence);
  }
}
