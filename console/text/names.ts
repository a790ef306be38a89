/** Names of things, short enough for a line. */

/** Long ids and hashes without their middle: `run-16f4…cbcb`. */
export function shortId(id: string): string {
  return id.length <= 16 ? id : `${id.slice(0, 8)}…${id.slice(-4)}`;
}

/** A live session of a publisher. */
export const PUBLISHED = "Published stream";

/** Control characters, and those that cannot be seen but turn the order of the others around. */
// deno-lint-ignore no-control-regex -- these are what is looked for
const UNSEEN = /[\u0000-\u001f\u007f-\u009f\u061c\u200b\u200e\u200f\u2028-\u202e\u2060-\u2069\ufeff]/g;

/** A name with a sign for each character that cannot be seen, so that it cannot look like another one. */
export function seenName(name: string): string {
  return name.replace(UNSEEN, "\ufffd");
}

/** The file name of a source, its host for a stream, or its own name where the operator has given it one. */
export function sourceName(sourceUri: string): string {
  if (sourceUri === "") return "no source yet";
  const named = /^source:(.+)$/.exec(sourceUri);
  if (named) return seenName(named[1]!);
  const url = /^[a-z]+:\/\//i.test(sourceUri) ? URL.parse(sourceUri) : null;
  if (url && url.protocol !== "file:") {
    return seenName(`${url.host}${url.pathname === "/" ? "" : url.pathname}`);
  }
  const name = decodeURIComponentSafely(sourceUri.replace(/^.*\//s, ""));
  return seenName(name.replace(/^[0-9a-f]{64}__/, ""));
}

/**
 * What a run is of: its upload by the name that it had. A run without a mode was made by a publisher, who
 * names no source.
 */
export function runName(
  { mode, source_uri, source_name }: {
    readonly mode: string;
    readonly source_uri: string;
    readonly source_name?: string | undefined;
  },
): string {
  if (source_name) return seenName(source_name);
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
