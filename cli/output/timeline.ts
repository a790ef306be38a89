/** The timeline of a film as text: a lane for each type of mark that occurs, and a table of all marks. */

import { clock, laneOf, type Mark, MARK_TYPES } from "../contact_sheet/marks.ts";
import { visible } from "./visible.ts";

export interface Timeline {
  readonly marks: readonly Mark[];
  /** Media time of the first frame, and of the end of the last one. */
  readonly firstMs: number;
  readonly endMs: number;
}

/** Room for the names of lanes; more where a name is longer. */
const NAME_COLUMNS = 20;
const LANE_COLUMNS_MAX = 80;

/** The width of a lane on a terminal of so many columns. */
export function laneColumns(columns: number): number {
  return Math.max(20, Math.min(LANE_COLUMNS_MAX, columns - NAME_COLUMNS - 1));
}

/** `columns` is the width of a lane. */
export function timelineLines({ marks, firstMs, endMs }: Timeline, columns = 80): string[] {
  const column = (ms: number) =>
    Math.max(0, Math.min(columns - 1, Math.floor((ms - firstMs) / (endMs - firstMs) * columns)));
  const lines: string[] = [];
  const lanes = Map.groupBy(marks, laneOf);
  const nameColumns = Math.max(NAME_COLUMNS, ...lanes.keys().map((name) => name.length + 1));
  for (const name of [...MARK_TYPES, ...MARK_TYPES.map((type) => `model:${type}`)]) {
    const ofLane = lanes.get(name);
    if (!ofLane) continue;
    const lane = Array.from({ length: columns }, () => "·");
    for (const { start_pts_ms: start, end_pts_ms: end } of ofLane) {
      for (let at = column(start); at <= column(end); at++) lane[at] = name === "scene_cut" ? "┃" : "━";
    }
    lines.push(`${name.padEnd(nameColumns)}${lane.join("")}`);
  }
  const start = clock(firstMs).replace(/\.000$/, ""), end = clock(Math.round(endMs));
  return [
    ...lines,
    `${"".padEnd(nameColumns)}${start}${end.padStart(columns - start.length)}`,
    "",
    "from        to          frames       confidence  event type",
    ...marks.map(tableLine),
  ];
}

function tableLine(mark: Mark): string {
  const { start_pts_ms, end_pts_ms, start_frame, end_frame, confidence, note } = mark;
  const frames = start_frame === end_frame ? `${start_frame}` : `${start_frame}-${end_frame}`;
  return clock(start_pts_ms).padEnd(12) + clock(end_pts_ms).padEnd(12) + frames.padEnd(13) +
    confidence.toFixed(2).padEnd(12) + laneOf(mark) + (note ? ` (${visible(note.split(":")[0]!)})` : "");
}
