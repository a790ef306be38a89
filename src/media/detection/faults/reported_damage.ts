/** Damage that the decoder itself reports: frames that it had to invent in parts, and all that was made of
 * them.
 */

import { REPORT } from "../../frame_reports.ts";
import { AHEAD, LostFrames } from "./lost_frames.ts";
import { type ArtifactMeasures, MEASURES } from "./artifact_measures.ts";

/** Longest damage, milliseconds: a stream without key frames renews its picture bit by bit. */
const LONGEST_MS = 12_000;
/** Longest damage of invented parts, milliseconds: they are drawn over sooner, bit by bit. */
const CONCEALED_LONGEST_MS = 4_000;

/** Frames between two announcements: a stream that says something more often does not announce renewals. */
const ANNOUNCED_FRAMES = 5;
/**
 * Announced renewals that end damage: one may have begun before the damage, and the next one begins where it
 * ends.
 */
const RENEWALS = 2;
/**
 * New shots of a careful encoder that end damage: what the first one takes over from the shot before is
 * damaged, and in the second one nothing is left of that.
 */
const CAREFUL_CUTS = 2;
/**
 * Mean change of luma, in levels, from which on invented parts show: what does not move is invented as it
 * was.
 */
const CONCEALED_MIN = 0.13;

/** How sure damage is that the decoder reports. */
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
 * Where whole frames are lost, decoders invent nothing: they decode what follows with wrong references
 * (`LostFrames`). Damage ends like this with a frame that refers to no other, with the second new shot of a
 * careful encoder, and with the second renewal that is announced. Frames are pushed and judged in order.
 * Allocates nothing per frame.
 */
export class ReportedDamage {
  readonly #measures: ArtifactMeasures;
  readonly #lost: LostFrames;
  /** Latest end of the damage that goes on, milliseconds; NaN for none. */
  #untilMs = NaN;
  /** Whether only the picture told of the damage. */
  #isShown = false;
  /**
   * Renewals since the damage began. `#announcedAt` is the newest frame before which something was announced.
   */
  #renewals = 0;
  #announcedAt = -Infinity;
  /** New shots of a careful encoder since the damage began. */
  #carefulCuts = 0;

  constructor(measures: ArtifactMeasures) {
    this.#measures = measures;
    this.#lost = new LostFrames(measures);
  }

  reset(): void {
    this.#lost.reset();
    this.#untilMs = NaN;
    this.#isShown = false;
    this.#renewals = 0;
    this.#carefulCuts = 0;
    this.#announcedAt = -Infinity;
  }

  /** Takes the time of the next frame. Its report follows, at the latest before the frame is judged. */
  push(ptsMs: number): void {
    this.#lost.push(ptsMs);
  }

  /** Takes the report of the next frame that has none yet, bits of `REPORT`. */
  report(report: number): void {
    this.#lost.report(report);
  }

  /** Whether the frames behind it may yet show that the next frame to be judged is damaged. */
  isOpen(frame: number): boolean {
    return this.#lost.isOpen(frame);
  }

  /** Whether the decoder says of the frame, and not of the one before it, that it refers to no other. */
  beginsAnew(frame: number): boolean {
    return (this.#lost.reportOf(frame) & REPORT.isKey) !== 0 &&
      (this.#lost.reportOf(frame - 1) & REPORT.isKey) === 0;
  }

  /**
   * Judges the next frame, with the reports that have come. Returns 0, or how sure it is that the frame is
   * damaged.
   */
  step(frame: number, isCut: boolean): number {
    const report = this.#lost.reportOf(frame);
    const isLost = this.#lost.step(frame);
    if (report === 0) return 0;
    const isBetween = (report & REPORT.isBidirectional) !== 0;
    if (this.#isEnd(frame, report, isCut)) this.#untilMs = NaN;
    const isCorrupt = (report & REPORT.isCorrupt) !== 0 && this.#isSeen(frame);
    if (isLost || (isCorrupt && !isBetween)) {
      this.#isShown = false;
      this.#lastUntil(this.#lost.ptsMs(frame) + (isLost ? LONGEST_MS : CONCEALED_LONGEST_MS));
    }
    if (isCorrupt) return OWN_SCORE;
    if (!Number.isNaN(this.#untilMs)) return LATER_SCORE;
    return this.#lost.isLostBetween || (isBetween && this.#nextIsCorrupt(frame)) ? EARLIER_SCORE : 0;
  }

  /**
   * To be called where the picture shows that the frame that was judged last is damaged. Where the decoder
   * does not notice changed bytes, what is made of the frame is damaged too.
   */
  show(frame: number): void {
    if (!Number.isNaN(this.#untilMs) || !this.isSilent(frame)) return;
    this.#lastUntil(this.#lost.ptsMs(frame) + LONGEST_MS);
    this.#isShown = true;
  }

  #lastUntil(untilMs: number): void {
    this.#untilMs = Number.isNaN(this.#untilMs) ? untilMs : Math.max(this.#untilMs, untilMs);
    this.#renewals = 0;
    this.#carefulCuts = 0;
  }

  /** Whether the decoder of a frame would not notice changed bytes. */
  isSilent(frame: number): boolean {
    return (this.#lost.reportOf(frame) & REPORT.isSilent) !== 0;
  }

  /** Whether only the picture tells of the damage that goes on. */
  get isShown(): boolean {
    return this.#isShown && !Number.isNaN(this.#untilMs);
  }

  /** To be called where the picture shows that damage is over of which only the picture told. */
  heal(): void {
    this.#untilMs = NaN;
  }

  /** Whether damage before a frame is over with it. */
  #isEnd(frame: number, report: number, isCut: boolean): boolean {
    if ((report & REPORT.isAnnounced) !== 0) {
      if (frame - this.#announcedAt > ANNOUNCED_FRAMES) this.#renewals++;
      this.#announcedAt = frame;
    }
    if ((report & (REPORT.isKey | REPORT.isIntra)) !== 0) return true;
    // The first frame of the shot may be the one that was corrupt: then all of the shot is made of it, and it
    // does not count.
    const wasCorrupt = (this.#lost.reportOf(frame - 1) & REPORT.isCorrupt) !== 0;
    if (isCut && (report & REPORT.isCareful) !== 0 && !wasCorrupt) this.#carefulCuts++;
    return this.#carefulCuts >= CAREFUL_CUTS || this.#renewals >= RENEWALS ||
      this.#lost.ptsMs(frame) > this.#untilMs;
  }

  /**
   * Whether what is invented in a frame differs from what was there, as far as the motion around it tells.
   */
  #isSeen(frame: number): boolean {
    const later = this.#lost.reportOf(frame + 1);
    const next = later !== 0 && (later & REPORT.isKey) === 0
      ? this.#measures.values[this.#measures.placeOf(frame + 1) + MEASURES.luma1]!
      : 0;
    return Math.max(next, this.#lost.motion(frame)) > CONCEALED_MIN;
  }

  /** Whether the frame of which this one and those before it were made is corrupt. */
  #nextIsCorrupt(frame: number): boolean {
    for (let next = frame + 1; next <= frame + AHEAD; next++) {
      const report = this.#lost.reportOf(next);
      if (report === 0) return false;
      if ((report & REPORT.isBidirectional) !== 0) continue;
      return (report & REPORT.isCorrupt) !== 0 && (report & REPORT.isKey) === 0 && this.#isSeen(next);
    }
    return false;
  }
}
