/** Writes the contact sheet of an analyzed file, with pictures that ffmpeg on this machine cuts out. */

import type { Mark } from "../../contact_sheet/marks.ts";
import { findFfmpeg } from "../ffmpeg.ts";
import { writeWhole } from "../whole_file.ts";

/** Half an hour at 30 frames a second: a row of the sheet is ten seconds. */
const FRAMES_MAX = 54_000;

export interface SheetFilm {
  readonly title: string;
  readonly path: string;
  readonly frames: number;
  readonly fps: number;
  readonly marks: readonly Mark[];
}

export async function writeSheet(path: string, film: SheetFilm): Promise<void> {
  const frames = Math.min(film.frames, FRAMES_MAX);
  const about = frames < film.frames
    ? `The first ${frames} of ${film.frames} frames.`
    : "Every frame was looked at.";
  const marks = film.marks.filter(({ start_frame }) => start_frame < frames);
  const { contactSheet } = await import("../../contact_sheet/sheet.ts");
  const html = await contactSheet(await findFfmpeg(), [{ ...film, frames, marks, about, done: null }]);
  await writeWhole(path, html);
}
