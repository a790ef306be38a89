/** Writes the contact sheet of an analyzed file, with pictures that ffmpeg on this machine cuts out. */

import type { FilmTimes } from "../../contact_sheet/film_times.ts";
import { clock, type Mark } from "../../contact_sheet/marks.ts";
import { findFfmpeg } from "../ffmpeg.ts";
import { writeWhole } from "../whole_file.ts";

/** A row of the sheet is ten seconds. */
const LONGEST_MS = 30 * 60_000;

export interface SheetFilm {
  readonly title: string;
  readonly path: string;
  readonly times: FilmTimes;
  readonly fps: number;
  readonly marks: readonly Mark[];
}

export async function writeSheet(path: string, film: SheetFilm): Promise<void> {
  const { times } = film;
  const endMs = Math.min(times.endMs, times.firstMs + LONGEST_MS);
  const about = endMs < times.endMs
    ? `The first ${clock(LONGEST_MS)} of ${clock(Math.round(times.lengthMs))}.`
    : "Every frame was looked at.";
  const marks = film.marks.filter(({ start_pts_ms }) => start_pts_ms < endMs);
  const { contactSheet } = await import("../../contact_sheet/sheet.ts");
  const html = await contactSheet(await findFfmpeg(), [{ ...film, endMs, marks, about, done: null }]);
  await writeWhole(path, html);
}
