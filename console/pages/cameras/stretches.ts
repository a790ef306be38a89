/** What a recording has without a gap, and what it lacks, from its segments. */

import type { RecordedSegment } from "../../../client/mod.ts";

/** Wall times. */
export interface WallRange {
  readonly fromMs: number;
  readonly toMs: number;
}

export interface RecordedStretch {
  readonly isGap: boolean;
  /** Wall times. */
  readonly startMs: number;
  readonly endMs: number;
  /** Of a gap none. */
  readonly segments: readonly RecordedSegment[];
}

/** Segments that touch and fit into one film, and the gaps between them, the oldest first. */
export function stretchesOf(segments: readonly RecordedSegment[]): RecordedStretch[] {
  const stretches: RecordedStretch[] = [];
  let open: RecordedSegment[] = [];
  const close = () => {
    if (open.length > 0) stretches.push(recorded(open));
    open = [];
  };
  for (const segment of segments) {
    const last = open.at(-1);
    if (last && segment.start_at_ms > last.end_at_ms) {
      close();
      stretches.push({
        ...{ isGap: true, segments: [] },
        ...{ startMs: last.end_at_ms, endMs: segment.start_at_ms },
      });
    } else if (last && !fitsTo(open, segment)) close();
    open.push(segment);
  }
  close();
  return stretches;
}

/** The bytes of the segments that have something of a range. */
export function bytesBetween(segments: readonly RecordedSegment[], fromMs: number, toMs: number): number {
  return segments.reduce(
    (sum, { start_at_ms, end_at_ms, bytes }) => start_at_ms < toMs && end_at_ms > fromMs ? sum + bytes : sum,
    0,
  );
}

/** One film has one format of pictures and one of sound; parts of it may be without sound. */
function fitsTo(open: readonly RecordedSegment[], segment: RecordedSegment): boolean {
  const sound = open.findLast(({ sound_format }) => sound_format !== null)?.sound_format ?? null;
  return open.at(-1)!.video_format === segment.video_format &&
    (sound === null || segment.sound_format === null || sound === segment.sound_format);
}

function recorded(segments: readonly RecordedSegment[]): RecordedStretch {
  return { isGap: false, segments, startMs: segments[0]!.start_at_ms, endMs: segments.at(-1)!.end_at_ms };
}
