/** Tables for people: columns aligned by how wide their text is on a terminal. */

import type { Paint } from "./colour.ts";
import { visible } from "./visible.ts";

/** A cell is any text of the server; it is made harmless here. */
export type CellValue = string | number | boolean | null | undefined;

export interface Column {
  readonly title: string;
  /** Numbers stand on the right. */
  readonly isRight?: boolean;
  /** Colours a whole cell, by its text. */
  readonly paint?: (text: string) => (text: string) => string;
}

/** The last column is cut where it would pass this width. Infinity for output that is no terminal. */
export interface TableStyle {
  readonly paint: Paint;
  readonly columns: number;
}

const GAP = "  ";
const LAST_COLUMN_MIN = 20;

/** The lines of the table, the titles first. */
export async function tableLines(
  columns: readonly Column[],
  rows: readonly (readonly CellValue[])[],
  { paint, columns: limit }: TableStyle,
): Promise<string[]> {
  const texts = rows.map((row) => columns.map((_, index) => visible(String(row[index] ?? ""))));
  const width = await measureFor(texts.flat());
  const widths = columns.map(({ title }, index) =>
    texts.reduce((widest, row) => Math.max(widest, width(row[index]!)), title.length)
  );
  const last = columns.length - 1;
  const before = widths.slice(0, last).reduce((sum, each) => sum + each + GAP.length, 0);
  widths[last] = Math.min(widths[last]!, Math.max(LAST_COLUMN_MIN, limit - before));
  const cell = (text: string, index: number, style: (text: string) => string) => {
    const shown = index === last ? cut(text, widths[last]!, width) : text;
    const padding = " ".repeat(Math.max(0, widths[index]! - width(shown)));
    if (columns[index]!.isRight) return padding + style(shown);
    return style(shown) + (index === last ? "" : padding);
  };
  return [
    columns.map(({ title }, index) => cell(title, index, paint.bold)).join(GAP).trimEnd(),
    ...texts.map((row) =>
      row.map((text, index) => cell(text, index, columns[index]!.paint?.(text) ?? ((same) => same)))
        .join(GAP).trimEnd()
    ),
  ];
}

type Measure = (text: string) => number;

/** Where `visible` was used all of these are one column wide. */
const ASCII = /^[ -~]*$/;

/** The package that knows wide characters is loaded only where there are some. */
async function measureFor(texts: readonly string[]): Promise<Measure> {
  if (texts.every((text) => ASCII.test(text))) return (text) => text.length;
  const { default: stringWidth } = await import("string-width");
  return (text) => ASCII.test(text) ? text.length : stringWidth(text);
}

function cut(text: string, limit: number, width: Measure): string {
  if (width(text) <= limit) return text;
  let shown = "";
  let used = 0;
  for (const { segment } of new Intl.Segmenter().segment(text)) {
    used += width(segment);
    if (used > limit - 1) break;
    shown += segment;
  }
  return `${shown}…`;
}
