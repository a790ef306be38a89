/** Pieces of Markdown in the layout that `deno fmt` gives them: tables, and the sections between two markers.
 */

/** A table with its columns aligned. A `|` inside a cell is escaped. */
export function table(head: readonly string[], rows: readonly (readonly string[])[]): string {
  const cells = [head, ...rows].map((row) => row.map(escaped));
  const widths = head.map((_, column) => Math.max(3, ...cells.map((row) => [...row[column]!].length)));
  const line = (row: readonly string[], fill = " ") =>
    `| ${row.map((cell, column) => cell.padEnd(widths[column]!, fill)).join(" | ")} |`;
  return [line(cells[0]!), line(head.map(() => ""), "-"), ...cells.slice(1).map((row) => line(row))].join(
    "\n",
  );
}

function escaped(cell: string): string {
  return cell.replaceAll(/(?<!\\)\|/g, "\\|").replaceAll("\n", " ");
}

export function code(text: string): string {
  return text === "" ? "" : `\`${text}\``;
}

/**
 * A generated section: `<!-- generated: NAME -->` up to its end marker, which belongs to the nearest start
 * before it.
 */
const SECTION = /(<!-- generated: ([a-z ]+) -->\n)([^]*?)(<!-- \/generated -->)/g;

/** `page` with the text of every marked section replaced by `textOf` its name. Throws for an unknown name. */
export function filled(page: string, textOf: (name: string) => string): string {
  const starts = page.match(/<!-- generated: .* -->/g)?.length ?? 0;
  let sections = 0;
  const text = page.replaceAll(SECTION, (_whole, start: string, name: string, _old, end: string) => {
    sections++;
    return `${start}\n${textOf(name)}\n\n${end}`;
  });
  if (sections !== starts) throw new Error("a marker `generated` has no end, or its name is misspelt");
  return text;
}
