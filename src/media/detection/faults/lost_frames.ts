/** Where frames are missing that others were made of: a gap in time, what kinds of frames are around it, and
 * how the picture goes on.
 */

import { REPORT } from "../../frame_reports.ts";
import { type ArtifactMeasures, MEASURES } from "./artifact_measures.ts";

/** How many frames are kept, a power of two, with the look-ahead. */
const KEPT = 64;
/** Later frames that belong to a row of frames made of both neighbours: no encoder makes more in a row. */
export const AHEAD = 5;
/** The steps between frames before a gap from which the steady one is taken, an odd number. */
const STEPS = 9;
/** How many times the steady step a gap is at least. */
const GAP = 1.5;
/** Share of the steady step: steps that differ from it by less leave it as it is. */
const UNSTEADY = 0.3;
/**
 * Most frames from the report of a missed reference to the frame behind the gap: a decoder with many threads,
 * which also sorts the frames, tells of it so early.
 */
const LOSS_FRAMES = 32;
/** Mean change of luma between frames, in levels, from which on wrong references show. */
const LOST_MIN = 0.06;

/** Most steps of a gap where no decoder tells of losses: a longer one is a pause. */
const SILENT_STEPS_MAX = 12;
/** Frames in which a stream may have one gap: with more gaps, its encoder leaves frames out. */
const RARE_FRAMES = 30;
const SILENT_MIN = 0.15;
/** Frames whose changes say what is usual. */
const USUAL = 4;
/**
 * Straight edges that come with a frame, in thousandths of the places: at least, and for each level of its
 * change of luma.
 */
const EDGES_MIN = 3;
const EDGES_FOR_CHANGE = 2;
/**
 * A frame behind a loss changes at most this times as much as those behind it: what is lost goes on to be
 * missed.
 */
const LIKE_LATER = 1.3;
/**
 * LIKE_LATER for the frames before it; LIKE_TWO_STEPS is that for their change over two steps, which a
 * picture shows whose frame before was only left out.
 */
const LIKE_ONE_STEP = 1.15;
const LIKE_TWO_STEPS = 0.64;
/** Two steps of a motion that goes on steadily change the picture at most this times as much as one. */
const STEADY_TWO_STEPS = 2.2;

/**
 * ```
 *   shown     P B B P B B . B B P B B P        .: missing
 *   in a row            2     + 2 + 1          more than two frames between others never came before: the missing one is a P
 * ```
 *
 * H.264 and HEVC tell that a reference is missing, though not which frame it makes wrong. Other decoders say
 * nothing. Then a gap may be a frame that the encoder left out, and the picture behind it is as it should be:
 * it has moved on by two steps at once. Where a frame was lost it moves on by one step, or what is drawn does
 * not fit what is there, with straight edges around it, and goes on so.
 *
 * Frames are pushed and judged in order. Allocates nothing per frame.
 */
export class LostFrames {
  /**
   * Whether the frame that was judged last, and those before it up to a gap, lie between two others, one of
   * them is missed, and nothing else is made of them.
   */
  isLostBetween = false;
  readonly #measures: ArtifactMeasures;
  readonly #ptsMs = new Float64Array(KEPT);
  readonly #reports = new Uint16Array(KEPT);
  readonly #steps = new Float64Array(STEPS);
  /** How many frames have their reports. */
  #reported = 0;
  #pushed = 0;
  #steadyMs = NaN;
  /**
   * Frames made of both neighbours in a row, up to the last frame that was judged; `#longestRow` is the most
   * in a row.
   */
  #row = 0;
  #longestRow = 0;
  /** The newest frame before which a reference was missed. Below are the last two frames behind gaps. */
  #missedAt = -Infinity;
  #gapAt = -Infinity;
  #gapBefore = -Infinity;

  constructor(measures: ArtifactMeasures) {
    this.#measures = measures;
  }

  reset(): void {
    this.#reported = 0;
    this.#pushed = 0;
    this.#steadyMs = NaN;
    this.isLostBetween = false;
    this.#row = 0;
    this.#longestRow = 0;
    this.#missedAt = -Infinity;
    this.#gapAt = -Infinity;
    this.#gapBefore = -Infinity;
  }

  /** Takes the time of the next frame. */
  push(ptsMs: number): void {
    this.#ptsMs[this.#pushed++ % KEPT] = ptsMs;
  }

  /** Takes the report of the next frame that has none yet, bits of `REPORT`. */
  report(report: number): void {
    this.#reports[this.#reported++ % KEPT] = report;
  }

  ptsMs(frame: number): number {
    return this.#ptsMs[frame % KEPT]!;
  }

  /** Bits of `REPORT` of a frame; 0 where no report has come. */
  reportOf(frame: number): number {
    return frame < this.#reported ? this.#reports[frame % KEPT]! : 0;
  }

  /**
   * Judges the next frame: whether frames that it was made of were lost just before it, and the picture shows
   * it.
   */
  step(frame: number): boolean {
    const report = this.reportOf(frame);
    if ((report & REPORT.isReferenceLost) !== 0) this.#missedAt = frame;
    const missing = this.#missingBefore(frame);
    const isWhole = (report & (REPORT.isKey | REPORT.isIntra)) !== 0;
    const isBetween = (report & REPORT.isBidirectional) !== 0;
    const isTold = (report & REPORT.tellsLosses) !== 0;
    const isMissed = isTold && frame - this.#missedAt <= LOSS_FRAMES && this.motion(frame) > LOST_MIN;
    const isLost = missing > 0 && !isWhole && this.#isReferenceAmong(frame, missing) &&
      (isTold ? isMissed : this.#isLostInSilence(frame, missing));
    this.isLostBetween = isBetween && !isLost && (this.isLostBetween || (missing > 0 && isMissed));
    if (missing > 0) {
      this.#row = 0;
      this.#gapBefore = this.#gapAt;
      this.#gapAt = frame;
    }
    this.#row = isBetween ? this.#row + 1 : 0;
    this.#longestRow = Math.max(this.#longestRow, this.#row);
    return isLost;
  }

  /** Change of luma in this frame, or usual change in those before it. */
  motion(frame: number): number {
    const measures = this.#measures, { values } = measures;
    const one = values[measures.placeOf(frame - 1) + MEASURES.luma1]!;
    const two = values[measures.placeOf(frame - 2) + MEASURES.luma1]!;
    const three = values[measures.placeOf(frame - 3) + MEASURES.luma1]!;
    const median = Math.max(Math.min(one, two), Math.min(Math.max(one, two), three));
    return Math.max(values[measures.placeOf(frame) + MEASURES.luma1]!, median);
  }

  /** How many steady steps are missing before a frame; 0 where there is no gap. */
  #missingBefore(frame: number): number {
    if (frame <= STEPS) return 0;
    const step = this.#stepMs(frame);
    if (Math.abs(step - this.#steadyMs) <= UNSTEADY * this.#steadyMs) return 0;
    const steps = this.#steps;
    for (let i = 0; i < STEPS; i++) steps[i] = this.#stepMs(frame - 1 - i);
    this.#steadyMs = steps.sort()[STEPS >> 1]!;
    return this.#isGap(frame) ? Math.max(1, Math.round(step / this.#steadyMs) - 1) : 0;
  }

  #stepMs(frame: number): number {
    return this.#ptsMs[frame % KEPT]! - this.#ptsMs[(frame - 1) % KEPT]!;
  }

  #isGap(frame: number): boolean {
    return this.#stepMs(frame) > GAP * this.#steadyMs;
  }

  /**
   * Whether a frame that others are made of is among the missing ones: more are missing than could stand
   * between two others, of which nothing is made.
   */
  #isReferenceAmong(frame: number, missing: number): boolean {
    let row = this.#row + missing;
    for (let next = frame; next <= frame + AHEAD && next < this.#pushed; next++) {
      if ((this.reportOf(next) & REPORT.isBidirectional) === 0 || (next > frame && this.#isGap(next))) break;
      row++;
    }
    return row > this.#longestRow;
  }

  /**
   * Whether later frames may yet show that frames were lost before this one, where no decoder tells of
   * losses.
   */
  isOpen(frame: number): boolean {
    const report = this.reportOf(frame);
    if (report === 0 || (report & (REPORT.tellsLosses | REPORT.isKey | REPORT.isIntra)) !== 0) return false;
    return frame > STEPS && this.#isGap(frame) && frame - this.#gapBefore > RARE_FRAMES;
  }

  #isLostInSilence(frame: number, missing: number): boolean {
    if (missing >= SILENT_STEPS_MAX || frame - this.#gapBefore <= RARE_FRAMES) return false;
    if (this.motion(frame) <= SILENT_MIN) return false;
    const measures = this.#measures;
    const { values } = measures, place = measures.placeOf(frame);
    const change = values[place + MEASURES.luma1]!;
    if (!measures.movesOnward(frame) || change > LIKE_LATER * measures.usual(MEASURES.luma1, frame + 1)) {
      return false;
    }
    const edges = values[place + MEASURES.edgesAcrossNew]! + values[place + MEASURES.edgesDownNew]!;
    const isDrawnWrong = edges >= Math.max(EDGES_MIN, EDGES_FOR_CHANGE * change);
    if (missing > 1 || isDrawnWrong) return true;
    if (frame - this.#gapAt <= RARE_FRAMES) return false;
    const one = measures.usual(MEASURES.luma1, frame - USUAL),
      two = measures.usual(MEASURES.luma2, frame - USUAL);
    return two <= STEADY_TWO_STEPS * one && change <= LIKE_ONE_STEP * one && change <= LIKE_TWO_STEPS * two;
  }
}
