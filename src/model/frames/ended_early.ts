/** Whether a source ended before the end that it announces. See docs/api/ingest.md#early-ends. */

export interface EndedEarly {
  /** When the last decoded frame ends, whole milliseconds from the first one. */
  readonly ended_at_ms: number;
  /** When the source says that its video ends. */
  readonly expected_end_ms: number;
  /** What is known of the cause. */
  readonly reason: string;
}

/** How a source ended, as answers and events have it. */
export interface SourceEnd {
  readonly ended_early?: EndedEarly;
  /** What failed in the middle, or is missing there, of a source that did not end early. */
  readonly source_warning?: string;
}

/** What is known of the end of a decode. */
export interface DecodeFacts {
  /**
   * The end of the video as the container has it, milliseconds from its first frame; null where it has none,
   * or guesses it.
   */
  readonly announcedMs: number | null;
  /** When the last decoded frame ends, milliseconds from the first one. */
  readonly endMs: number;
  /** The longest distance of two frames, milliseconds. */
  readonly longestMs: number;
  /**
   * Why the source must be incomplete, such as a file that is shorter than its container says; null where
   * nothing shows it.
   */
  readonly missing: string | null;
  /** What the decoder says is wrong, which may be of any part; null for nothing. */
  readonly complaint: string | null;
}

/**
 * How much earlier an end counts as early where something is known to be missing: containers round, and sound
 * ends a little later.
 */
const MISSING_MS = 250;
/**
 * How much earlier an end counts as early where the decoder only complains. It has to be much: the last
 * picture of a film may be shown for long.
 */
const UNEXPLAINED_MS = 2_000;
const UNEXPLAINED_SHARE = 0.05;

/** Whether a source ended early; null where it did not, or nothing but its length speaks for it. */
export function endedEarly(end: DecodeFacts): EndedEarly | null {
  const { announcedMs, endMs, longestMs, missing, complaint } = end;
  const reason = missing ?? complaint;
  if (announcedMs === null || reason === null) return null;
  const least = missing === null
    ? Math.max(UNEXPLAINED_MS, announcedMs * UNEXPLAINED_SHARE, 2 * longestMs)
    : MISSING_MS;
  if (announcedMs - endMs < least) return null;
  return { ended_at_ms: Math.round(endMs), expected_end_ms: Math.round(announcedMs), reason };
}
