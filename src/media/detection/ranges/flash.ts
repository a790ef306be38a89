/** Finds flashes: the picture becomes brighter for a moment and then is as it was. */

import { likenessOf, roughnessOf } from "./cell_structure.ts";
import type { FrameHistory } from "./frame_history.ts";
import { CELL_SAMPLES, LUMA_CELLS } from "./frame_history.ts";
import { type BoundsOf, confidenceOf, type RangeDetector, type RangeSink } from "./range_sink.ts";

/** What makes a rise of the brightness a flash. */
export const FLASH_BOUNDS = {
  /** Levels by which the mean luma rises at least, within `riseMs`. */
  riseMin: 7,
  riseMs: 100,
  /** A flash has its first frame where the brightness leaves what it was by this share of the rise. */
  foot: 0.2,
  /** A flash ends where less than this share of the rise is left. */
  rest: 0.2,
  longestMs: 420,
  afterFrames: 6,
  /** Share of the rise that must be there after `speedMs`, or in the first frame; a whip pan takes longer. */
  speedMin: 0.5,
  speedMs: 45,
  /**
   * Least share of cells that become brighter by half the mean rise: a bright thing that comes into the
   * picture covers fewer.
   */
  spreadMin: 0.3,
  /** How much cells may become darker, as a share of how much they become brighter. */
  darkerMax: 0.1,
  /** How far the picture after a flash may differ from the one before, as a share of the rise. */
  changedMax: 0.55,
  /** Least likeness of the brightest frame to the structure before or after it: another picture has none. */
  likenessMin: 0.22,
  /**
   * Most steps from cell to cell, in levels, of a picture that is one bright plane, in which no structure is
   * left.
   */
  plainStep: 2,
  /**
   * Milliseconds before a flash in which no frame may be brighter than its last dark frame by more than
   * `beforeMax` of the rise.
   */
  beforeMs: 200,
  beforeMax: 0.4,
} as const;

export type FlashBounds = BoundsOf<typeof FLASH_BOUNDS>;

export class FlashDetector implements RangeDetector {
  readonly #sink: RangeSink;
  readonly #bounds: FlashBounds;
  /** The last frame before the rise; -1 while nothing is bright. */
  #base = -1;
  #peak = -1;
  /** First frame that is dark again; -1 before. */
  #end = -1;
  /** The first frame that does not belong to an earlier flash. */
  #floor = 0;

  constructor(sink: RangeSink, bounds: FlashBounds = FLASH_BOUNDS) {
    this.#sink = sink;
    this.#bounds = bounds;
  }

  reset(): void {
    this.#drop();
    this.#floor = 0;
  }

  #drop(): void {
    this.#base = this.#peak = this.#end = -1;
  }

  push(history: FrameHistory): void {
    const bounds = this.#bounds;
    const frame = history.count - 1;
    const mean = history.lumaMean(frame);
    if (this.#end >= 0) {
      if (frame < this.#end + bounds.afterFrames && !this.#rises(history, frame)) return;
      this.#judge(history);
    }
    if (this.#base < 0) {
      if (this.#rises(history, frame)) this.#begin(history, frame);
      return;
    }
    if (mean > history.lumaMean(this.#peak)) this.#peak = frame;
    const base = history.lumaMean(this.#base);
    const before = history.lumaMean(frame - 1);
    // A step that is larger than all of the rise before it: that was something else, and this begins.
    if (mean - before >= bounds.riseMin && mean - before > before - base) return this.#begin(history, frame);
    if (mean - base <= bounds.rest * (history.lumaMean(this.#peak) - base)) this.#end = frame;
    else if (history.ptsMs(frame) - history.ptsMs(this.#base) > bounds.longestMs) this.#drop();
  }

  finish(history: FrameHistory): void {
    if (this.#end >= 0) this.#judge(history);
    this.#drop();
  }

  #rises(history: FrameHistory, frame: number): boolean {
    return frame > 0 &&
      history.lumaMean(frame) - history.lumaMean(this.#foot(history, frame)) >= this.#bounds.riseMin;
  }

  /** The darkest frame of the last `riseMs`. */
  #foot(history: FrameHistory, frame: number): number {
    let foot = frame;
    for (let i = frame - 1; i >= history.oldest && i >= 0; i--) {
      if (history.ptsMs(frame) - history.ptsMs(i) > this.#bounds.riseMs && i < frame - 1) break;
      if (i < this.#floor) break;
      if (history.lumaMean(i) < history.lumaMean(foot)) foot = i;
    }
    return foot;
  }

  #begin(history: FrameHistory, frame: number): void {
    const foot = this.#foot(history, frame);
    const low = history.lumaMean(foot);
    const rise = history.lumaMean(frame) - low;
    let base = frame - 1;
    while (base > foot && history.lumaMean(base) - low > this.#bounds.foot * rise) base--;
    this.#base = base;
    this.#peak = frame;
  }

  #judge(history: FrameHistory): void {
    const confidence = this.#confidence(history);
    if (confidence >= 0.5) {
      const start = this.#base + 1, last = this.#end - 1;
      const startMs = history.ptsMs(start), endMs = history.lastMs(last);
      this.#sink.add("flash", history.first(start), history.last(last), startMs, endMs, confidence);
      this.#floor = this.#end;
    }
    this.#drop();
  }

  #confidence(history: FrameHistory): number {
    const bounds = this.#bounds;
    const { sums } = history;
    const low = history.lumaMean(this.#base);
    const rise = history.lumaMean(this.#peak) - low;
    if (this.#wasBright(history, low + bounds.beforeMax * rise)) return 0;
    const base = history.cellsAt(this.#base),
      peak = history.cellsAt(this.#peak),
      end = history.cellsAt(this.#end);
    let brighter = 0, darker = 0, spread = 0, changed = 0;
    for (let cell = 0; cell < LUMA_CELLS; cell++) {
      const difference = (sums[peak + cell]! - sums[base + cell]!) / CELL_SAMPLES;
      if (difference > 0) brighter += difference;
      else darker -= difference;
      if (difference > rise / 2) spread++;
      changed += Math.abs(sums[end + cell]! - sums[base + cell]!) / CELL_SAMPLES;
    }
    darker /= brighter;
    spread /= LUMA_CELLS;
    changed /= LUMA_CELLS * rise;
    const speed = (this.#highest(history) - low) / rise;
    if (
      speed < bounds.speedMin || spread < bounds.spreadMin || darker > bounds.darkerMax ||
      changed > bounds.changedMax
    ) return 0;
    const isPlain = roughnessOf(history, this.#peak) < bounds.plainStep;
    const likeness = Math.max(
      likenessOf(history, this.#base, this.#peak),
      likenessOf(history, this.#end, this.#peak),
    );
    if (likeness < bounds.likenessMin && !isPlain) return 0;
    const margin = Math.min(
      (rise - bounds.riseMin) / 10,
      (spread - bounds.spreadMin) / 0.3,
      1 - darker / bounds.darkerMax,
      1 - changed / bounds.changedMax,
      isPlain ? 1 : (likeness - bounds.likenessMin) / 0.3,
    );
    return confidenceOf(margin);
  }

  /** The brightest of the first frames of the rise. */
  #highest(history: FrameHistory): number {
    let highest = 0;
    for (let frame = this.#base + 1; frame < this.#end; frame++) {
      if (frame > this.#base + 1 && history.ptsMs(frame) - history.ptsMs(this.#base) > this.#bounds.speedMs) {
        break;
      }
      highest = Math.max(highest, history.lumaMean(frame));
    }
    return highest;
  }

  /**
   * Whether the picture was bright just before: then it only comes back from a dark moment, which is no
   * flash. Frames of an earlier flash do not count.
   */
  #wasBright(history: FrameHistory, level: number): boolean {
    for (let frame = this.#base - 1; frame >= Math.max(history.oldest, this.#floor); frame--) {
      if (history.ptsMs(this.#base) - history.ptsMs(frame) > this.#bounds.beforeMs) return false;
      if (history.lumaMean(frame) > level) return true;
    }
    return false;
  }
}
