/** Names of things, short enough for a line. */

/** Long ids and hashes without their middle: `run-16f4…cbcb`. */
export function shortId(id: string): string {
  return id.length <= 16 ? id : `${id.slice(0, 8)}…${id.slice(-4)}`;
}

/** A live session of a publisher. */
export const PUBLISHED = "Published stream";

/** The file name of a source, or its host for a stream. */
export function sourceName(sourceUri: string): string {
  if (sourceUri === "") return "no source yet";
  const url = /^[a-z]+:\/\//i.test(sourceUri) ? URL.parse(sourceUri) : null;
  if (url && url.protocol !== "file:") {
    return `${url.host}${url.pathname === "/" ? "" : url.pathname}`;
  }
  return decodeURIComponentSafely(sourceUri.replace(/^.*\//, "")).replace(
    /^[0-9a-f]{64}__/,
    "",
  );
}

/** What a run is of. A run without a mode was made by a publisher, who names no source. */
export function runName(
  { mode, source_uri }: { readonly mode: string; readonly source_uri: string },
): string {
  return mode === "" && source_uri === "" ? PUBLISHED : sourceName(source_uri);
}

/** `scene_cut` as words: `scene cut`. */
export function words(name: string): string {
  return name.replaceAll("_", " ");
}

function decodeURIComponentSafely(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
