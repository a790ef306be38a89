/** A contact sheet: one HTML file with the strip of each film, its marks above it, and the frames of every
 * mark.
 */

import type { FilmTimes } from "./film_times.ts";
import { clock, laneOf, type Mark, type MarkType, rateText } from "./marks.ts";
import { SHEET_STYLE } from "./sheet_style.ts";
import { thumbnails } from "./thumbnails.ts";

/** A film with what the service said of it. */
export interface MarkedFilm {
  readonly title: string;
  readonly about: string;
  readonly path: string;
  readonly times: FilmTimes;
  readonly fps: number;
  /** Where the sheet ends; the film may be longer. */
  readonly endMs: number;
  readonly marks: readonly Mark[];
  /** What was done to the film, where that is known. */
  readonly done: readonly Done[] | null;
}

interface Done {
  readonly type: string;
  readonly startFrame: number;
  readonly endFrame: number;
}

/** Time of one row of the strip. */
const ROW_MS = 10_000;
/** A picture of the strip stands for about so much. */
const CELL_MS = 1000;
/** Width of a row in characters of a label, to keep labels apart. */
const ROW_CHARACTERS = 178;
const LANE_PIXELS = 22;

const NAME_OF: Record<MarkType, string> = {
  scene_cut: "cut",
  gradual_transition: "gradual transition",
  flash: "flash",
  freeze: "freeze",
  black: "black",
  repeat: "repeat",
  artifact_suspected: "artifact",
};

/** The HTML text; it needs no other file. */
export async function contactSheet(ffmpeg: string, films: readonly MarkedFilm[]): Promise<string> {
  const sections: string[] = [];
  for (const film of films) sections.push(await filmSection(ffmpeg, film));
  return `<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>Contact sheet</title>
<style>${SHEET_STYLE}</style>
<body>
<header>
<h1>Contact sheet</h1>
<p>Marks are what the service answered. Pictures are the frames that the marks name, cut out of the film.</p>
</header>
${sections.join("\n")}
</body>
</html>
`;
}

async function filmSection(ffmpeg: string, film: MarkedFilm): Promise<string> {
  const rows = rowsOf(film);
  const cells = rows.map((row) => cellsOf(row, film));
  const frames = [
    ...cells.flat().map(({ frame }) => frame),
    ...film.marks.flatMap((mark) => shown(mark, film)),
  ];
  const pictures = await thumbnails(ffmpeg, film.path, frames);
  return `<section>
<h2>${escaped(film.title)}</h2>
<p class="about">${escaped(film.about)} ${
    clock(Math.round(film.times.lengthMs))
  }, ${film.times.frames} frames at ${rateText(film.fps)} a second. ${counts(film.marks)}</p>
${rows.map((row, index) => rowHtml(row, cells[index]!, film, pictures)).join("\n")}
<ol class="marks">
${film.marks.map((mark, index) => cardHtml(mark, index + 1, film, pictures)).join("\n")}
</ol>
</section>`;
}

function counts(marks: readonly Mark[]): string {
  const byLane = Map.groupBy(marks, laneOf);
  const texts = Array.from(
    byLane.values(),
    (all) => `${all.length} ${NAME_OF[all[0]!.event_type]}${all.length > 1 ? "s" : ""}${byModel(all[0]!)}`,
  );
  return texts.length > 0 ? `Found: ${texts.join(", ")}.` : "Nothing was found.";
}

function byModel({ origin }: Mark): string {
  return origin === undefined ? "" : " of the model";
}

/** The time of one row; all rows stand for the same. */
interface Row {
  readonly fromMs: number;
  readonly toMs: number;
}

function rowsOf({ times: { firstMs }, endMs }: MarkedFilm): readonly Row[] {
  return Array.from({ length: Math.max(1, Math.ceil((endMs - firstMs) / ROW_MS)) }, (_, row) => ({
    fromMs: firstMs + row * ROW_MS,
    toMs: Math.min(endMs, firstMs + (row + 1) * ROW_MS),
  }));
}

interface Cell {
  readonly fromMs: number;
  readonly toMs: number;
  /** The frame in its middle. */
  readonly frame: number;
}

/**
 * Each shot of the row in equal parts, so that the pictures change where the film does; no more parts than it
 * has frames.
 */
function cellsOf({ fromMs, toMs }: Row, { marks, times }: MarkedFilm): readonly Cell[] {
  const edges = marks.flatMap((mark) =>
    mark.origin !== undefined
      ? []
      : mark.event_type === "scene_cut"
      ? [times.msAt(mark.start_frame)]
      : mark.event_type === "black"
      ? [times.msAt(mark.start_frame), times.msAt(mark.end_frame + 1)]
      : []
  );
  const inside = edges.filter((edge) => edge > fromMs && edge < toMs);
  const bounds = [...new Set([fromMs, ...inside, toMs])].toSorted((one, other) => one - other);
  return bounds.slice(1).flatMap((end, index) => {
    const start = bounds[index]!;
    const frames = times.frameAt(end) - times.frameAt(start) + 1;
    const parts = Math.max(1, Math.min(frames, Math.round((end - start) / CELL_MS)));
    return Array.from({ length: parts }, (_, part) => {
      const cell = {
        fromMs: start + (end - start) * part / parts,
        toMs: start + (end - start) * (part + 1) / parts,
      };
      return { ...cell, frame: times.frameAt((cell.fromMs + cell.toMs) / 2) };
    });
  });
}

type Pictures = ReadonlyMap<number, string>;

function rowHtml(row: Row, cells: readonly Cell[], film: MarkedFilm, pictures: Pictures): string {
  const { times } = film;
  const lengthMs = row.toMs - row.fromMs;
  const ticks = Array.from({ length: Math.ceil(lengthMs / 1000) }, (_, second) => {
    const label = clock(Math.round(row.fromMs + second * 1000)).slice(0, -4);
    return `<i style="left:${percent(second * 1000 / lengthMs)}">${label}</i>`;
  });
  const strip = cells.map(({ fromMs, toMs, frame }) => {
    const place = `left:${percent((fromMs - row.fromMs) / ROW_MS)};width:${
      percent((toMs - fromMs) / ROW_MS)
    }`;
    return `<b style="${place}">${image(pictures, frame)}</b>`;
  });
  const items = film.marks.map((mark, index) => ({
    type: mark.event_type,
    fromMs: times.msAt(mark.start_frame),
    toMs: times.msAt(mark.end_frame + 1),
    label: `${index + 1} ${NAME_OF[mark.event_type]}${byModel(mark)}`,
    isMeasured: mark.origin === undefined,
  }));
  const measured = items.filter(({ isMeasured }) => isMeasured);
  const said = items.filter(({ isMeasured }) => !isMeasured);
  const done = film.done?.map(({ type, startFrame, endFrame }) => ({
    type,
    fromMs: times.msAt(startFrame),
    toMs: times.msAt(endFrame + 1),
    label: NAME_OF[type as MarkType] ?? type,
  }));
  return `<div class="row">
${said.length > 0 ? lanesHtml("found", said, row) : ""}
${lanesHtml("found", measured, row)}
<div class="film">${strip.join("")}</div>
<div class="ticks" style="width:${percent(lengthMs / ROW_MS)}">${ticks.join("")}</div>
${done ? lanesHtml("done", done, row) : ""}
</div>`;
}

interface Item {
  readonly type: string;
  readonly fromMs: number;
  readonly toMs: number;
  readonly label: string;
}

/** Bars with labels, in as few lanes as keep them apart. */
function lanesHtml(name: "found" | "done", items: readonly Item[], row: Row): string {
  const ends: number[] = [];
  const bars: ((lanes: number) => string)[] = [];
  const shown = items.filter(({ fromMs, toMs }) => fromMs < row.toMs && toMs > row.fromMs);
  for (const { type, fromMs, toMs, label } of shown) {
    const start = Math.max(fromMs, row.fromMs) - row.fromMs;
    const end = Math.min(toMs, row.toMs) - row.fromMs;
    const text = fromMs < row.fromMs ? `… ${label}` : label;
    const labelSpan = (text.length + 3) / ROW_CHARACTERS * ROW_MS;
    const left = Math.min(start, ROW_MS - labelSpan);
    const free = ends.findIndex((used) => used <= left);
    const lane = free < 0 ? ends.length : free;
    ends[lane] = Math.max(end, left + labelSpan);
    const bar = `left:${percent(start / ROW_MS)};width:${percent((end - start) / ROW_MS)}`;
    bars.push((lanes) => {
      // The first lane is the one next to the strip.
      const top = `top:${(name === "found" ? lanes - 1 - lane : lane) * LANE_PIXELS}px`;
      return `<u class="${type}" style="${bar};${top}"></u>` +
        `<span class="${type}" style="left:${percent(left / ROW_MS)};${top}">${text}</span>`;
    });
  }
  const lanes = Math.max(1, ends.length);
  const drawn = bars.map((draw) => draw(lanes)).join("");
  return `<div class="lanes ${name}" style="height:${lanes * LANE_PIXELS}px">${drawn}</div>`;
}

/** The frames that show a mark: around it where it is short, spread over it where it is long. */
function shown(
  { event_type, start_frame: start, end_frame: end }: Mark,
  { times: { frames } }: MarkedFilm,
): readonly number[] {
  const part = (share: number) => Math.round(start + (end - start) * share);
  const chosen = {
    scene_cut: [start - 8, start - 1, start, start + 8],
    gradual_transition: [start, part(1 / 3), part(2 / 3), end],
    flash: [start - 1, start, end, end + 1],
    freeze: [start, part(1 / 2), end, end + 8],
    black: [start - 1, start, end, end + 1],
    repeat: [start, part(1 / 3), part(2 / 3), end],
    artifact_suspected: [start - 1, start, end, end + 1],
  }[event_type];
  return [...new Set(chosen)].filter((frame) => frame >= 0 && frame < frames);
}

function cardHtml(mark: Mark, number: number, film: MarkedFilm, pictures: Pictures): string {
  const { event_type: type, start_frame: start, end_frame: end } = mark;
  const isInside = (frame: number) => frame >= start && frame <= end;
  const figures = shown(mark, film).map((frame) =>
    `<figure${isInside(frame) ? ' class="inside"' : ""}>${
      image(pictures, frame)
    }<figcaption>${frame}</figcaption></figure>`
  );
  const time = start === end
    ? clock(mark.start_pts_ms)
    : `${clock(mark.start_pts_ms)} – ${clock(mark.end_pts_ms)}`;
  return `<li class="${type}">
<h3><u></u>${number} ${NAME_OF[type]}${byModel(mark)} <span>${time}</span></h3>
<div class="frames">${figures.join("")}</div>
<p>${escaped(certainty(mark))}</p>
</li>`;
}

/**
 * A segment's confidence says how much the picture changes, and not how sure the mark is: that of a range
 * says it.
 */
function certainty({ event_type: type, status, confidence, note, origin }: Mark): string {
  if (origin !== undefined) return `not measured, confidence ${confidence.toFixed(2)}`;
  const isSegment = type === "scene_cut" || type === "artifact_suspected";
  return note ?? (isSegment ? status : `${status}, confidence ${confidence.toFixed(2)}`);
}

function image(pictures: Pictures, frame: number): string {
  const picture = pictures.get(frame);
  return picture ? `<img alt="frame ${frame}" src="${picture}">` : "";
}

/** Names of files and texts of the service as HTML text. */
function escaped(text: string): string {
  return text.replaceAll("&", "&amp;").replaceAll("<", "&lt;").replaceAll(">", "&gt;");
}

function percent(share: number): string {
  return `${(share * 100).toFixed(3)}%`;
}
