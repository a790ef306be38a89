/** When the segments of a recording were seen: places their media times on the clock of the machine. See
 * docs/cameras.md#recording.
 */

export interface SegmentMedia {
  /** When the segment begins: this and the end are media times, milliseconds. */
  readonly startMs: number;
  readonly endMs: number;
  /**
   * The least of arrival time minus media time of its units, milliseconds: no unit comes before it was seen.
   */
  readonly lagMs: number;
}

export interface SegmentTimes {
  /** When the segment was seen to begin: epoch milliseconds, whole. */
  readonly startMs: number;
  readonly endMs: number;
}

/**
 * The part of its length by which the end of a segment moves at most. The clock of a camera and that of the
 * machine drift apart by less; with more, a late network would be taken for drift.
 */
const SLEW_MAX = 0.01;
/**
 * The step from which a clock was set forward, or a camera lost time without saying so. A late network cannot
 * look like it: pictures that all come at once after a silence of at most 30 s, which would be a gap, are at
 * most 20 s late at the end of a segment of 10 s.
 */
const STEP_MS = 20_000;

/**
 * Places segments. Those that follow each other without a gap touch in both times. As the two clocks drift
 * apart, the later end moves to where it belongs, by at most a hundredth of the segment. A segment behind a
 * gap does not overlap the one before, though parts of HLS come in bursts, so that its pictures may be seen
 * sooner after their times.
 */
export class SegmentClock {
  #next: { readonly mediaMs: number; readonly wallMs: number } | null = null;

  place({ startMs, endMs, lagMs }: SegmentMedia): SegmentTimes {
    const next = this.#next;
    const lengthMs = endMs - startMs;
    const seenMs = Math.round(startMs + lagMs);
    const stepMs = next === null ? Infinity : seenMs - next.wallMs;
    const isFollowed = next?.mediaMs === startMs
      ? stepMs <= STEP_MS
      : next !== null && next.mediaMs < startMs && stepMs < 0 && stepMs >= -STEP_MS;
    const startWallMs = isFollowed ? next!.wallMs : seenMs;
    const driftMs = endMs + lagMs - (startWallMs + lengthMs);
    const slewMs = Math.min(SLEW_MAX * lengthMs, Math.max(-SLEW_MAX * lengthMs, driftMs));
    const endWallMs = Math.max(startWallMs + 1, Math.round(startWallMs + lengthMs + slewMs));
    this.#next = { mediaMs: endMs, wallMs: endWallMs };
    return { startMs: startWallMs, endMs: endWallMs };
  }
}
