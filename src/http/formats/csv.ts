/** Cells and lines of CSV, RFC 4180. See docs/api/reading.md#csv. */

/** What a spreadsheet may take for the begin of a formula, and the apostrophe that says it is none. */
const LIKE_FORMULA = /^[=+\-@\t\r\n'＝＋－＠]/;

/**
 * A cell of text that callers or operators chose: a spreadsheet runs none of it as a formula. Without its
 * first apostrophe it is the text.
 */
export function freeCell(text: string): string {
  return cell(LIKE_FORMULA.test(text) ? `'${text}` : text);
}

/** A cell of a number, of a name that the service made, or of nothing. */
export function cell(value: string | number | null | undefined): string {
  if (typeof value === "number") return String(value);
  const text = value ?? "";
  return /[",\r\n]/.test(text) ? `"${quotedText(text)}"` : text;
}

/** Text as it stands between the quotes of a cell. */
export function quotedText(text: string): string {
  return text.replaceAll('"', '""');
}

export function csvLine(cells: readonly string[]): string {
  return `${cells.join(",")}\r\n`;
}
