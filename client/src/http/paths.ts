/** Paths and queries of requests, with everything in them encoded. */

/**
 * A path whose parts are encoded: ``path`/v1/runs/${id}` ``. A part that would change the path is a
 * TypeError.
 */
export function path(texts: TemplateStringsArray, ...parts: (string | number)[]): string {
  return texts.reduce((before, text, index) => before + segment(parts[index - 1]!) + text);
}

/** With `?` in front; empty where every value is undefined or null. */
export function query(values: Readonly<Record<string, string | number | null | undefined>>): string {
  const given = Object.entries(values).filter(([, value]) => value !== undefined && value !== null);
  return given.length === 0
    ? ""
    : `?${new URLSearchParams(given.map(([name, value]) => [name, String(value)]))}`;
}

function segment(part: string | number): string {
  const text = String(part);
  if (/^\.{0,2}$/.test(text)) throw new TypeError(`an id must be a text other than "${text}"`);
  return encodeURIComponent(text);
}
