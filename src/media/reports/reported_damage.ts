/** Damage that the decoder itself reports: frames that it had to invent in parts, and all that was made of them. */

import { REPORT } from "./frame_reports.ts";
import type { ArtifactMeasures } from "../detection/faults/artifact_measures.ts";

/** How many frames are kept, a power of two, with the look-ahead. */
const KEPT = 64;
/** Frames behind a damaged one that may have been made of it before it is shown: no encoder makes more in a row. */
const AHEAD = 5;
/** The steps between frames before a gap from which the steady one is taken, an odd number. */
const STEPS = 9;
/** A gap is longer than the steady step by this factor. */
const GAP = 1.5;
/**
 * A decoder with many threads, which also sorts the frames, misses a reference so many frames before the frame behind the gap
 * is shown.
 */
const LOSS_FRAMES = 32;
/** Damage lasts no longer: a stream that never begins anew renews its picture bit by bit. */
const LONGEST_MS = 12_000;

/**
 * Mean change of luma between frames from which on it shows that parts were invented, or that references are wrong: what does not
 * move is invented as it was, and a still picture that is lost is like the one before.
 */
const CONCEALED_MIN = 0.15;
const LOST_MIN = 0.1;

/** How sure it is. */
const OWN_SCORE = 0.98;
const LATER_SCORE = 0.94;
const EARLIER_SCORE = 0.8;

/**
 * ```
 *   shown     P  B  B  P  P  P  P  K  P          K: key frame, B: made of the frames before and behind
 *   reported           !                         invented in parts
 *   damaged      x  x  x  x  x  x                up to the next key frame, and the frames in between that were made of it
 * ```
 *
 * Where whole frames are lost, decoders invent nothing: they decode what follows with wrong references. Some report that, and the
 * time steps over what was lost. A new shot, which refers to little, ends damage like a key frame. Frames are pushed and judged in order. Allocates nothing per frame.
 */
export class ReportedDamage {
  readonly #measures: ArtifactMeasures;
  readonly #reports = new Uint8Array(KEPT);
  readonly #ptsMs = new Float64Array(KEPT);
  readonly #steps = new Float64Array(STEPS);
  /** Frames that were pushed, and those of them whose reports have come. */
  #count = 0;
  #reported = 0;
  /** When the damage began that goes on; NaN for none. */
  #sinceMs = NaN;
  /** The newest frame before which a reference was lost that is not yet explained by a gap. */
  #lostAt = -Infinity;

  constructor(measures: ArtifactMeasures) {
    this.#measures = measures;
  }

  reset(): void {
    this.#count = 0;
    this.#reported = 0;
    this.#sinceMs = NaN;
    this.#lostAt = -Infinity;
  }

  /** Takes the time of the next frame. Its report follows, at the latest before the frame is judged. */
  push(ptsMs: number): void {
    this.#ptsMs[this.#count++ % KEPT] = ptsMs;
  }

  /** Takes the report of the next frame that has none yet, bits of `REPORT`. */
  report(report: number): void {
    this.#reports[this.#reported++ % KEPT] = report;
  }

  /** Judges the next frame, with the reports that have come. Returns 0, or how sure it is that the frame is damaged. */
  step(frame: number, isCut: boolean): number {
    const report = frame < this.#reported ? this.#reports[frame % KEPT]! : 0;
    if (report === 0) return 0;
    const ms = this.#ptsMs[frame % KEPT]!;
    const isBetween = (report & REPORT.isBidirectional) !== 0;
    const isKey = (report & REPORT.isKey) !== 0;
    if ((report & REPORT.isReferenceLost) !== 0) this.#lostAt = frame;
    if (isKey || isCut || ms - this.#sinceMs > LONGEST_MS) this.#sinceMs = NaN;
    if (!isKey && this.#isBehindLoss(frame)) this.#sinceMs = ms;
    const isCorrupt = (report & REPORT.isCorrupt) !== 0 && this.#isSeen(frame);
    if (isCorrupt && !isBetween) this.#sinceMs = ms;
    if (isCorrupt) return OWN_SCORE;
    if (!Number.isNaN(this.#sinceMs)) return LATER_SCORE;
    return isBetween && this.#nextIsCorrupt(frame) ? EARLIER_SCORE : 0;
  }

  /** Whether frames were lost just before this one that others refer to, and it is seen. */
  #isBehindLoss(frame: number): boolean {
    return frame - this.#lostAt <= LOSS_FRAMES && this.#isBehindGap(frame) && this.#motion(frame) > LOST_MIN;
  }

  /** Whether what is invented in a frame differs from what was there, as far as the motion around it tells. */
  #isSeen(frame: number): boolean {
    const next = frame + 1 < this.#reported && (this.#reports[(frame + 1) % KEPT]! & REPORT.isKey) === 0
      ? this.#measures.at("luma1", frame + 1)
      : 0;
    return Math.max(next, this.#motion(frame)) > CONCEALED_MIN;
  }

  /** Change of luma in this frame, or usual change in those before it. */
  #motion(frame: number): number {
    const one = this.#measures.at("luma1", frame - 1);
    const two = this.#measures.at("luma1", frame - 2);
    const three = this.#measures.at("luma1", frame - 3);
    const median = Math.max(Math.min(one, two), Math.min(Math.max(one, two), three));
    return Math.max(this.#measures.at("luma1", frame), median);
  }

  #isBehindGap(frame: number): boolean {
    if (frame <= STEPS) return false;
    const steps = this.#steps;
    for (let i = 0; i < STEPS; i++) steps[i] = this.#step(frame - 1 - i);
    return this.#step(frame) > GAP * steps.sort()[STEPS >> 1]!;
  }

  #step(frame: number): number {
    return this.#ptsMs[frame % KEPT]! - this.#ptsMs[(frame - 1) % KEPT]!;
  }

  /** Whether the frame of which this one and those before it were made is corrupt. */
  #nextIsCorrupt(frame: number): boolean {
    for (let next = frame + 1; next <= frame + AHEAD && next < this.#reported; next++) {
      const report = this.#reports[next % KEPT]!;
      if ((report & REPORT.isBidirectional) !== 0) continue;
      return (report & REPORT.isCorrupt) !== 0 && (report & REPORT.isKey) === 0 && this.#isSeen(next);
    }
    return false;
  }
}
