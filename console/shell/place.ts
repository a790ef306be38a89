/** Which page is shown, and with what: the part of the address after `#`, such as `#/runs/run-1?t=11875`,
 * which no server sees.
 */

import { signal } from "@preact/signals";

export interface Place {
  /** Decoded parts: `["runs", "run-1"]`; empty for the first page. */
  readonly path: readonly string[];
  readonly query: URLSearchParams;
}

/** The address that `place` tells of. */
let readOf = "";

export const place = signal<Place>(read());

globalThis.addEventListener("hashchange", () => void (place.value = read()));

/** What a link to a place has as its `href`. */
export function hrefOf(
  path: readonly string[],
  query: Readonly<Record<string, string>> = {},
): string {
  const search = new URLSearchParams(query).toString();
  return `#/${path.map(encodeURIComponent).join("/")}${search === "" ? "" : `?${search}`}`;
}

export function go(
  path: readonly string[],
  query: Readonly<Record<string, string>> = {},
): void {
  location.hash = hrefOf(path, query);
}

/**
 * Changes parts of the query of the present page; null takes one away. Makes no step in the browser's
 * history.
 */
export function setQuery(
  changes: Readonly<Record<string, string | null>>,
): void {
  // A link was followed whose page is not shown yet: to write over its address would keep the reader here.
  if (location.hash !== readOf) return;
  const { path, query } = place.peek();
  const changed = new URLSearchParams(query);
  for (const [name, value] of Object.entries(changes)) {
    if (value === null) changed.delete(name);
    else changed.set(name, value);
  }
  if (changed.toString() === query.toString()) return;
  history.replaceState(null, "", hrefOf(path, Object.fromEntries(changed)));
  place.value = read();
}

function read(): Place {
  readOf = location.hash;
  const [path = "", search = ""] = readOf.replace(/^#\/?/, "").split(
    /\?(.*)/s,
  );
  return {
    path: path.split("/").filter(Boolean).map(decoded),
    query: new URLSearchParams(search),
  };
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    return part;
  }
}
