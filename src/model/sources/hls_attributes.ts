/** The attributes of a tag of an HLS playlist, read as loosely as players do. */

/**
 * By their names, in capitals and in the order of the tag; of equal ones the last counts. Quotes are taken
 * away, and need not be there:
 *
 *     URI="a b.mp4",NAME=x     →  URI: a b.mp4, NAME: x
 *     uri = "a.mp4             →  URI: a.mp4
 */
export function attributesOf(tag: string): ReadonlyMap<string, string> {
  const list = tag.slice(tag.indexOf(":") + 1);
  return new Map(
    [...list.matchAll(ATTRIBUTE)].map(([, name, quoted, plain]) => [
      name!.toUpperCase(),
      quoted?.replace(/\\(.)/g, "$1") ?? plain!,
    ]),
  );
}

/** The tag with these attributes, written in one way only: what no program needs plain is in quotes. */
export function withAttributes(tag: string, attributes: ReadonlyMap<string, string>): string {
  const list = [...attributes].flatMap(([name, value]) => {
    if (!/^[A-Z0-9-]+$/.test(name)) return [];
    const isPlain = !IN_QUOTES.has(name) && /^[\w.@+-]+$/.test(value);
    return `${name}=${isPlain ? value : `"${value.replace(/["\\]/g, "")}"`}`;
  });
  return `${tag}:${list.join(",")}`;
}

const ATTRIBUTE = /(?<=^|[\s,])([^\s,="]+)\s*=\s*(?:"((?:[^"\\]|\\.)*)"?|([^\s,]*))/g;

/** Attributes that are strings by RFC 8216. */
const IN_QUOTES: ReadonlySet<string> = new Set(
  ["URI", "GROUP-ID", "NAME", "CODECS", "AUDIO", "VIDEO", "SUBTITLES", "LANGUAGE", "BYTERANGE", "KEYFORMAT"],
);
