/** JSON that a person writes: its value, or where it cannot be read. */

/** Line and column count from 1. */
export interface JsonFault {
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

export type JsonText = { readonly value: unknown } | {
  readonly fault: JsonFault;
};

/** What a text says; where it is no JSON, the place that the browser names. */
export function readJsonText(text: string): JsonText {
  try {
    return { value: JSON.parse(text) };
  } catch (error) {
    const said = error instanceof Error ? error.message : String(error);
    const message = said.replace(/^JSON\.parse: /, "")
      .replace(/ (in JSON |of the JSON data)?\s*(at (position|line) .*)?$/, "")
      .replace(/, "?[^,]*\.\.\. is not valid JSON$/s, "");
    return { fault: { ...placeIn(text, said), message: `${message}.` } };
  }
}

/** Chrome names the position, Firefox line and column; for what ends too early it is the end. */
function placeIn(text: string, said: string): { line: number; column: number } {
  const place = /line (\d+) column (\d+)/.exec(said);
  if (place) return { line: Number(place[1]), column: Number(place[2]) };
  const position = /position (\d+)/.exec(said);
  return placeOf(text, position ? Number(position[1]) : text.trimEnd().length);
}

/** The line and the column of a character. */
export function placeOf(
  text: string,
  position: number,
): { line: number; column: number } {
  const before = text.slice(0, position).split("\n");
  return { line: before.length, column: before.at(-1)!.length + 1 };
}
