/** The timeline of a film as text: a lane for each type of mark that occurs, and a table of all marks. */

import { clock, type Mark, MARK_TYPES } from "../contact_sheet/marks.ts";
import { visible } from "./visible.ts";

export interface Timeline {
  readonly marks: readonly Mark[];
  /** Media time of the first frame, and of the end of the last one. */
  readonly firstMs: number;
  readonly endMs: number;
}

const NAME_COLUMNS = 20;

/** `columns` is the width of a lane. */
export function timelineLines({ marks, firstMs, endMs }: Timeline, columns = 80): string[] {
  const column = (ms: number) =>
    Math.max(0, Math.min(columns - 1, Math.floor((ms - firstMs) / (endMs - firstMs) * columns)));
  const lines: string[] = [];
  for (const type of MARK_TYPES) {
    const ofType = marks.filter(({ event_type }) => event_type === type);
    if (ofType.length === 0) continue;
    const lane = Array.from({ length: columns }, () => "·");
    for (const { start_pts_ms: start, end_pts_ms: end } of ofType) {
      for (let at = column(start); at <= column(end); at++) lane[at] = type === "scene_cut" ? "┃" : "━";
    }
    lines.push(`${type.padEnd(NAME_COLUMNS)}${lane.join("")}`);
  }
  const start = clock(firstMs).replace(/\.000$/, ""), end = clock(Math.round(endMs));
  return [
    ...lines,
    `${"".padEnd(NAME_COLUMNS)}${start}${end.padStart(columns - start.length)}`,
    "",
    "from        to          frames       confidence  event type",
    ...marks.map(tableLine),
  ];
}

function tableLine(mark: Mark): string {
  const { start_pts_ms, end_pts_ms, start_frame, end_frame, confidence, event_type, note } = mark;
  const frames = start_frame === end_frame ? `${start_frame}` : `${start_frame}-${end_frame}`;
  return clock(start_pts_ms).padEnd(12) + clock(end_pts_ms).padEnd(12) + frames.padEnd(13) +
    confidence.toFixed(2).padEnd(12) + event_type + (note ? ` (${visible(note.split(":")[0]!)})` : "");
}
