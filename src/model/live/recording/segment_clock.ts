/** When the segments of a recording were seen: places their media times on the clock of the machine. See docs/cameras.md#recording. */

export interface SegmentMedia {
  /** Media times, milliseconds. */
  readonly startMs: number;
  readonly endMs: number;
  /** The least of arrival time minus media time of its units, milliseconds: no unit comes before it was seen. */
  readonly lagMs: number;
}

export interface SegmentTimes {
  /** Epoch milliseconds, whole. */
  readonly startMs: number;
  readonly endMs: number;
}

/** The clock of a camera and that of the machine drift apart by less; beyond it a late network is taken for drift. */
const SLEW_MAX = 0.01;
/**
 * A clock that was set forward by more, or a camera that lost time without saying so. A late network cannot look like it: pictures that all
 * come at once after a silence of at most 30 s, which would be a gap, are at most 20 s late at the end of a segment of 10 s.
 */
const STEP_MS = 20_000;

/**
 * Segments that follow each other without a gap touch in both times. As the two clocks drift apart, the later end moves to where it
 * belongs, by at most a hundredth of the segment. One behind a gap does not overlap the one before, though parts of HLS come in bursts,
 * so that its pictures may be seen sooner after their times.
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
