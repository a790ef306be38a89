/** Recordings of named sources as callers see them. */

import type { ClipSoundState } from "../live/recording/record_plan.ts";

/** One segment of a recording. */
export interface RecordedSegmentLook {
  readonly segment_id: string;
  /** When the segment begins: wall time, epoch milliseconds. */
  readonly start_at_ms: number;
  readonly end_at_ms: number;
  /** The caller's run that was open when the segment began; null for one of another principal. */
  readonly run_id: string | null;
  /** When the segment begins, in media time of the run. */
  readonly start_pts_ms: number;
  readonly end_pts_ms: number;
  readonly bytes: number;
  readonly codec: string;
  readonly sound: ClipSoundState;
  /** The format of the video. Segments of the same formats fit into one file. */
  readonly video_format: string;
  readonly sound_format: string | null;
}

/** How a named source is recorded. */
export interface RecordingLook {
  readonly hours: number;
  readonly bytes: number | null;
  /** The end of the newest segment, epoch milliseconds; null where there is none. */
  readonly newest_end_at_ms: number | null;
}
