/** A marker as a cue of WebVTT. See docs/api/reading.md#webvtt. */

import { type Marker, typeWithOrigin } from "../../model/frames/marker.ts";
import { onOneTextLine } from "./one_text_line.ts";

/**
 * Ids of markers repeat across passes and those of cues may not, so `seq`, the number of the marker's event,
 * is part of the id. A cue may not end when it begins: that of a marker of one frame lasts a millisecond.
 * Players count from the start of the film, and markers from its first frame, which they show `videoStartMs`
 * later.
 *
 *     mk-00000002@17
 *     00:00:00.100 --> 00:00:00.101
 *     scene_cut (exact, 0.58275)
 */
export function vttCue(marker: Marker, seq: number, videoStartMs: number): string {
  const { marker_id, origin, status, start_pts_ms, end_pts_ms, confidence } = marker;
  const end = Math.max(end_pts_ms, start_pts_ms + 1);
  const text = `${onOneTextLine(typeWithOrigin(marker))} (${
    origin === undefined ? `${status}, ` : ""
  }${confidence})`;
  return `\n${marker_id}@${seq}\n${vttTime(start_pts_ms + videoStartMs)} --> ${
    vttTime(end + videoStartMs)
  }\n${escaped(text)}\n`;
}

/** `HH:MM:SS.mmm`; more digits of hours where they need them. */
function vttTime(ms: number): string {
  const time = `${twoDigits(ms / 3_600_000)}:${twoDigits(ms / 60_000 % 60)}:${twoDigits(ms / 1000 % 60)}`;
  return `${time}.${String(ms % 1000).padStart(3, "0")}`;
}

function twoDigits(value: number): string {
  const whole = Math.floor(value);
  return whole < 10 ? `0${whole}` : String(whole);
}

const ESCAPES: Readonly<Record<string, string>> = { "&": "&amp;", "<": "&lt;", ">": "&gt;" };

/** Without `-->` or a tag in it. */
function escaped(text: string): string {
  return !/[&<>]/.test(text) ? text : text.replaceAll(/[&<>]/g, (character) => ESCAPES[character]!);
}
