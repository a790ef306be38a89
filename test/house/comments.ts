/** Finds comments that cannot be read where they stand: without their subject, or wider than the code. */

/** The width to which the formatter breaks code. */
const COLUMNS = 110;
/** How a doc comment begins that speaks of what stands above it. */
const WITHOUT_SUBJECT = /^[ \t]*\/\*\*(?:[ \t]*\n[ \t]*\*)? (?:The same|Of|Those|That|So|Such|It)\b/gm;
/** A line of a comment in prose; drawings and tables, which are indented or have columns, may be wider. */
const PROSE = /^[ \t]*(?:\*|\/\/|\/\*\*?) (?![ |]).*$/gm;
const COLUMN_GAP = /\S {3,}\S/;

/** Every fault as "line: what". */
export function commentFaults(text: string): string[] {
  const lineOf = (index: number) => text.slice(0, index).split("\n").length;
  return [
    ...[...text.matchAll(WITHOUT_SUBJECT)].map(({ index }) =>
      `${lineOf(index)}: a comment without its subject`
    ),
    ...[...text.matchAll(PROSE)]
      .filter(([line]) => line.length > COLUMNS && !COLUMN_GAP.test(line))
      .map(({ index }) => `${lineOf(index)}: a comment wider than ${COLUMNS} columns`),
  ];
}
