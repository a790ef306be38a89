/** Draws the times below the lanes, single frames where they are far enough apart, and the playhead over
 * everything.
 */

import { mediaTime } from "../../text/time.ts";
import type { Stretch } from "../view.ts";
import { type Plot, xOf } from "./plot.ts";

const STEPS_MS = [
  ...[
    1,
    2,
    5,
    10,
    20,
    50,
    100,
    200,
    500,
    1_000,
    2_000,
    5_000,
    10_000,
    15_000,
    30_000,
  ],
  ...[
    60_000,
    120_000,
    300_000,
    600_000,
    900_000,
    1_800_000,
    3_600_000,
    7_200_000,
    21_600_000,
    86_400_000,
  ],
];
/** Between two labels. */
const LABEL_ROOM = 96;
/** Frames are told apart from here on. */
const FRAME_ROOM = 9;
const FRAME_LABEL_ROOM = 40;

export function drawRuler(plot: Plot, fps: number | null): void {
  const { context, width, rows: { ruler, gutter }, window, colours } = plot;
  const perMs = (width - gutter) / (window.toMs - window.fromMs);
  const dayMs = STEPS_MS.at(-1)!;
  const stepMs = STEPS_MS.find((step) => step * perMs >= LABEL_ROOM) ??
    dayMs * Math.ceil(LABEL_ROOM / (dayMs * perMs));
  context.font = `11px ${colours.font}`;
  context.textAlign = "left";
  context.textBaseline = "alphabetic";
  context.lineWidth = 1;
  context.strokeStyle = colours.line;
  context.fillStyle = colours.dim;
  for (
    let ms = Math.ceil(window.fromMs / stepMs) * stepMs;
    ms <= window.toMs;
    ms += stepMs
  ) {
    const x = Math.round(xOf(plot, ms)) + 0.5;
    context.beginPath();
    context.moveTo(x, plot.rows.overview.height + 6);
    context.lineTo(x, ruler.top + 6);
    context.stroke();
    context.fillText(
      shortTime(ms, stepMs),
      x + 3,
      ruler.top + 16,
      width - x - 3,
    );
  }
  if (fps !== null && 1000 / fps * perMs >= FRAME_ROOM) {
    drawFrames(plot, fps, perMs);
  }
}

/** `0:12`, and with what is below a second where the labels are that close. */
function shortTime(ms: number, stepMs: number): string {
  const text = mediaTime(ms);
  return stepMs >= 1000 ? text.slice(0, -4) : text;
}

function drawFrames(plot: Plot, fps: number, perMs: number): void {
  const { context, rows: { ruler }, window, colours } = plot;
  const frameMs = 1000 / fps;
  const isNumbered = frameMs * perMs >= FRAME_LABEL_ROOM;
  context.strokeStyle = colours.strong;
  context.textAlign = "right";
  const last = Math.floor(window.toMs / frameMs);
  for (let frame = Math.ceil(window.fromMs / frameMs); frame <= last; frame++) {
    const x = Math.round(xOf(plot, frame * frameMs)) + 0.5;
    context.beginPath();
    context.moveTo(x, ruler.top);
    context.lineTo(x, ruler.top + 4);
    context.stroke();
    if (isNumbered) context.fillText(String(frame), x - 3, ruler.top + 6);
  }
}

export function drawPlayhead(plot: Plot, ms: number): void {
  const { context, rows: { ruler, gutter, overview }, whole, width, colours } = plot;
  context.fillStyle = colours.accent;
  const inWhole = xOf({ ...plot, window: whole }, ms);
  context.fillRect(inWhole - 0.75, overview.top, 1.5, overview.height);
  const x = xOf(plot, ms);
  if (x < gutter - 1 || x > width + 1) return;
  context.fillRect(
    x - 0.75,
    overview.height + 2,
    1.5,
    ruler.top - overview.height,
  );
  context.beginPath();
  context.moveTo(x - 5, ruler.top - 1);
  context.lineTo(x + 5, ruler.top - 1);
  context.lineTo(x, ruler.top + 6);
  context.fill();
}

/** The stretch that the reader chose. */
export function drawRange(plot: Plot, { fromMs, toMs }: Stretch): void {
  const { context, rows: { overview, ruler, gutter }, width, colours } = plot;
  const left = Math.max(gutter, xOf(plot, fromMs));
  const right = Math.min(width, xOf(plot, toMs));
  if (right <= left) return;
  context.fillStyle = colours.accent;
  context.globalAlpha = 0.14;
  context.fillRect(
    left,
    overview.height + 4,
    right - left,
    ruler.top - overview.height - 4,
  );
  context.globalAlpha = 1;
}
