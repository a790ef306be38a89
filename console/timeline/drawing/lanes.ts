/** Draws the lanes: a strip of density where marks are too close to be told apart, else each mark with its
 * shape.
 */

import { MARK_LOOKS, type MarkLook } from "../../text/event_types.ts";
import type { MarkStore } from "../mark_store.ts";
import type { ShownMarks } from "../shown_marks.ts";
import type { SortedMarks } from "../sorted_marks.ts";
import { msAt, type Plot, type PlotRow, xOf } from "./plot.ts";

/** With less room than this for each mark, on average, only their density is drawn. */
const ROOM_MIN = 4;
/** A mark that lasts is drawn with its length where that is as long. */
const BAR_MIN = 6;
/** With less room, no word is drawn. */
const WORDS_MIN = 48;
const GLYPH_FONT = "14px sans-serif";

export function drawLanes(
  plot: Plot,
  shown: ShownMarks,
  store: MarkStore,
  selectedSeq: number | null,
): void {
  const { context, width, rows, colours } = plot;
  for (const [number, row] of rows.lanes.entries()) {
    if (number % 2 === 0) {
      context.fillStyle = colours.raised;
      context.globalAlpha = 0.5;
      context.fillRect(0, row.top, width, row.height);
      context.globalAlpha = 1;
    }
    const look = MARK_LOOKS[row.lane] ?? MARK_LOOKS.other!;
    drawName(plot, row, look);
    context.save();
    context.beginPath();
    context.rect(rows.gutter, row.top, width - rows.gutter, row.height);
    context.clip();
    drawLane(plot, row, {
      marks: shown.lane(row.lane),
      store,
      look,
      selectedSeq,
    });
    context.restore();
  }
}

interface Lane {
  readonly marks: SortedMarks;
  readonly store: MarkStore;
  readonly look: MarkLook;
  readonly selectedSeq: number | null;
}

function drawName(
  { context, rows, colours }: Plot,
  { top, height }: PlotRow,
  { name, shape, colour }: MarkLook,
) {
  const middle = top + height / 2;
  context.textBaseline = "middle";
  context.font = GLYPH_FONT;
  drawGlyph(context, shape, { x: 12, y: middle, colour, edge: colours.strong });
  if (rows.gutter < WORDS_MIN) return;
  context.fillStyle = colours.dim;
  context.font = `12px ${colours.font}`;
  context.textAlign = "left";
  context.fillText(name, 24, middle, rows.gutter - 28);
}

function drawLane(plot: Plot, row: PlotRow, lane: Lane): void {
  const { marks } = lane;
  const { window, width, rows } = plot;
  const first = marks.positionAt(window.fromMs - marks.longestMs);
  const end = marks.positionAt(window.toMs, "behind");
  if (end - first > (width - rows.gutter) / ROOM_MIN) {
    drawDensity(plot, row, lane);
  } else {
    for (let position = first; position < end; position++) {
      const next = position + 1 < marks.count
        ? xOf(plot, lane.store.startMsAt(marks.at(position + 1)))
        : width;
      drawMark(plot, row, lane, { index: marks.at(position), nextX: next });
    }
  }
}

/** One column a pixel, the denser the fuller. */
export function drawDensity(
  plot: Plot,
  { top, height }: PlotRow,
  { marks, look }: Pick<Lane, "marks" | "look">,
): void {
  const { context, width, rows: { gutter } } = plot;
  context.fillStyle = look.colour;
  let before = marks.positionAt(msAt(plot, gutter));
  for (let x = gutter; x < width; x++) {
    const behind = marks.positionAt(msAt(plot, x + 1));
    const count = behind - before;
    before = behind;
    if (count === 0) continue;
    const share = Math.min(1, 0.3 + Math.log2(1 + count) / 6);
    const filled = height < 12 ? height - 1 : Math.max(3, Math.round((height - 4) * share));
    context.fillRect(
      x,
      top + height - (height < 12 ? 1 : 2) - filled,
      1,
      filled,
    );
  }
}

function drawMark(
  plot: Plot,
  row: PlotRow,
  { store, look, selectedSeq }: Lane,
  { index, nextX }: { index: number; nextX: number },
): void {
  const { context, colours } = plot;
  const x = xOf(plot, store.startMsAt(index));
  const endX = xOf(plot, store.endMsAt(index));
  const middle = row.top + row.height / 2;
  const isChosen = store.seqAt(index) === selectedSeq;
  const status = store.statusAt(index);
  if (endX - x >= BAR_MIN) {
    drawBar(plot, row, {
      x,
      endX,
      colour: look.colour,
      isOpen: status === "provisional",
    });
  } else if (look === MARK_LOOKS.scene_cut) {
    context.fillStyle = look.colour;
    context.fillRect(x - 1.5, row.top + 2, 3, row.height - 4);
  } else {
    context.font = GLYPH_FONT;
    drawGlyph(context, look.shape, {
      x,
      y: middle,
      colour: look.colour,
      edge: colours.strong,
      isOpen: status === "provisional",
    });
  }
  if (status === "finalized") {
    context.fillStyle = colours.text;
    context.fillRect(x - 1, row.top + row.height - 4, 3, 3);
  }
  if (isChosen) {
    context.strokeStyle = colours.text;
    context.lineWidth = 2;
    context.strokeRect(
      x - 6,
      row.top + 1,
      Math.max(12, endX - x + 12),
      row.height - 2,
    );
  }
  const room = Math.max(endX, Math.min(nextX - 10, endX + 400)) - x - 12;
  const isWorded = look === MARK_LOOKS.description ||
    look === MARK_LOOKS.moment || look === MARK_LOOKS.other;
  if (isWorded && room >= WORDS_MIN) {
    drawWords(plot, store.at(index).label, {
      x: Math.max(x, plot.rows.gutter) + 10,
      y: middle,
      room,
    });
  }
}

/** From its start to its end, at the edges of the window cut off. */
function drawBar(
  { context }: Plot,
  { top, height }: PlotRow,
  { x, endX, colour, isOpen }: {
    x: number;
    endX: number;
    colour: string;
    isOpen: boolean;
  },
): void {
  context.fillStyle = colour;
  context.strokeStyle = colour;
  context.lineWidth = 1.5;
  context.globalAlpha = isOpen ? 0.1 : 0.35;
  context.fillRect(x, top + 4, endX - x, height - 8);
  context.globalAlpha = 1;
  context.strokeRect(x, top + 4, endX - x, height - 8);
  if (!isOpen) context.fillRect(x, top + 4, 3, height - 8);
}

function drawGlyph(
  context: CanvasRenderingContext2D,
  shape: string,
  { x, y, colour, edge, isOpen }: {
    x: number;
    y: number;
    colour: string;
    edge: string;
    isOpen?: boolean;
  },
): void {
  context.textAlign = "center";
  context.textBaseline = "middle";
  context.lineWidth = isOpen ? 1.5 : 0.6;
  context.strokeStyle = isOpen ? colour : edge;
  context.strokeText(shape, x, y);
  if (isOpen) return;
  context.fillStyle = colour;
  context.fillText(shape, x, y);
}

function drawWords(
  { context, colours }: Plot,
  text: string,
  { x, y, room }: { x: number; y: number; room: number },
) {
  context.font = `12px ${colours.font}`;
  context.fillStyle = colours.text;
  context.textAlign = "left";
  context.textBaseline = "middle";
  // Some 6 pixels a character; the exact width would have to be measured for each mark and frame.
  const fits = Math.floor(room / 6.2);
  context.fillText(
    text.length > fits ? `${text.slice(0, Math.max(0, fits - 1))}…` : text,
    x,
    y,
    room, // wider letters are drawn narrower, not over the next mark
  );
}
