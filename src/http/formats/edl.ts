/** Markers as an edit decision list, CMX 3600. See docs/api.md#edl. */

import type { Marker } from "../../model/frames/marker.ts";
import { frameAt, timecode, type TimecodeRate, timecodeRate } from "../../model/frames/timecode.ts";
import { onOneTextLine } from "./one_text_line.ts";

/** Where the source shows no rate that timecodes can count: 40 ms a frame. */
const DEFAULT_RATE: TimecodeRate = { nominal: 25, secondMs: 1000 };

/** `fps` is the rate of the run's sources; null where it is unknown. */
export function edlHead(runId: string, fps: number | null): string {
  const { nominal, secondMs } = timecodeRate(fps) ?? DEFAULT_RATE;
  const rate = secondMs === 1000 ? String(nominal) : `${nominal * 1000}/${secondMs}`;
  const origin = timecodeRate(fps) === null ? "DEFAULT" : "SOURCE";
  return lines([`TITLE: ${runId}`, "FCM: NON-DROP FRAME", "", `* FRAME RATE: ${rate} (${origin})`]);
}

/**
 * Writes one marker after the other. Source and record times are the same, and the frame of the out time is the first one
 * behind the marker, as CMX 3600 has it.
 *
 *     001  AX       V     C        00:00:00:03 00:00:00:04 00:00:00:03 00:00:00:04
 *     * FROM CLIP NAME: stream-0
 *     * LOC: 00:00:00:03 WHITE   scene_cut
 *     * MARKER: mk-00000002 exact 0.58275
 *     * PTS MS: 100 100
 */
export function edlEvents(fps: number | null): (marker: Marker) => string {
  const rate = timecodeRate(fps) ?? DEFAULT_RATE;
  let number = 0;
  return (marker) => {
    const [from, to] = [marker.start_pts_ms, marker.end_pts_ms].map((ms) => frameAt(ms, rate));
    const start = timecode(from!, rate);
    const times = `${start} ${timecode(to! + 1, rate)}`;
    return lines([
      `${String(++number).padStart(3, "0")}  AX       V     C        ${times} ${times}`,
      `* FROM CLIP NAME: ${onOneTextLine(marker.stream_id)}`,
      `* LOC: ${start} WHITE   ${onOneTextLine(marker.event_type)}`,
      `* MARKER: ${marker.marker_id} ${marker.status} ${marker.confidence}`,
      `* PTS MS: ${marker.start_pts_ms} ${marker.end_pts_ms}`,
    ]);
  };
}

function lines(texts: readonly string[]): string {
  return `${texts.join("\r\n")}\r\n`;
}
