/** HLS playlists (RFC 8216): every address in one is replaced, so that its reader requests no other address.
 */

import { attributesOf, withAttributes } from "./hls_attributes.ts";

/** The error of a playlist that cannot be rewritten safely; the message names the reason. */
export class PlaylistRefused extends Error {
  override readonly name = "PlaylistRefused";
}

/** Whether a body with this beginning is a playlist. */
export function isPlaylist(head: Uint8Array): boolean {
  return /^(\u00ef\u00bb\u00bf)?\s*#EXTM3U/i.test(new TextDecoder("latin1").decode(head.subarray(0, 1024)));
}

/**
 * The lines of the playlist, each with its line break, with each URI resolved against `base` and replaced by
 * the result of `replace`, which is told whether it is that of a part, or of a variant, and not of a tag.
 * They come one by one, so that a long playlist can be rewritten in pieces. Only tags that a player needs are
 * kept:
 *
 *     seg1.ts                            →  replace(https://host/seg1.ts)
 *     #EXT-X-MAP:URI="init.mp4"          →  #EXT-X-MAP:URI="…"
 *     #EXT-X-MAP:uri=init.mp4            →  #EXT-X-MAP:URI="…"
 *     #EXTINF:4.0,A title                →  #EXTINF:4.0,
 *     #EXT-X-DATERANGE:X-ASSET-URI="…"   →  an empty line
 */
export function* withUris(
  playlist: string,
  base: URL,
  replace: (uri: URL, isPart: boolean) => string,
): Generator<string> {
  let [lines, addresses, characters] = [0, 0, 0];
  const replaced = (uri: string, isPart: boolean) => {
    if (uri.length > URI_CHARACTERS_MAX) throw new PlaylistRefused("an address in it is too long");
    const url = URL.parse(uri, base);
    if (!url) throw new PlaylistRefused("it names something that is no address");
    // Counted as resolved: a short address may become as long as that of the playlist.
    characters += url.href.length;
    if (++addresses > ADDRESSES_MAX || characters > ADDRESS_CHARACTERS_MAX) {
      throw new PlaylistRefused("it names too many parts");
    }
    return replace(url, isPart);
  };
  for (const [, line] of playlist.replace(/^\ufeff/, "").matchAll(/([^\r\n]*)(?:\r\n|\r|\n|$)/g)) {
    if (++lines > LINES_MAX) throw new PlaylistRefused("it has too many lines");
    yield `${withUri(line!, replaced)}\n`;
  }
}

function withUri(line: string, replaced: (uri: string, isPart: boolean) => string): string {
  const tag = /^#[A-Z0-9-]+/.exec(line)?.[0] ?? "";
  if (line.startsWith("#")) {
    if (!TAGS.has(tag)) return "";
    if (line.length > URI_CHARACTERS_MAX) throw new PlaylistRefused("a line of it is too long");
    if (tag === "#EXTINF") line = line.replace(/,.*/s, ",");
  }
  // deno-lint-ignore no-control-regex -- some programs take one of them for a line break
  if (/[\0-\x08\x0b\x0c\x0e-\x1f]/.test(line)) throw new PlaylistRefused("it holds control characters");
  if (!line.startsWith("#")) return line.trim() === "" ? "" : replaced(line.trim(), true);
  if (!WITH_ATTRIBUTES.has(tag)) return line;
  const attributes = new Map(attributesOf(line));
  for (const name of attributes.keys()) if (name !== "URI" && name.includes("URI")) attributes.delete(name);
  const uri = attributes.get("URI");
  if (uri !== undefined) attributes.set("URI", replaced(uri, false));
  return withAttributes(tag, attributes);
}

const WITH_ATTRIBUTES: ReadonlySet<string> = new Set(
  ["KEY", "MAP", "MEDIA", "START", "STREAM-INF"].map((name) => `#EXT-X-${name}`),
);

/**
 * Tags that are kept: those that ffmpeg reads, and those that tell other players how to play. Other tags may
 * name addresses in ways of their own.
 */
const TAGS: ReadonlySet<string> = new Set(
  [
    ...[
      "EXTM3U",
      "EXTINF",
      "EXT-X-BYTERANGE",
      "EXT-X-DISCONTINUITY",
      "EXT-X-DISCONTINUITY-SEQUENCE",
      "EXT-X-ENDLIST",
      "EXT-X-GAP",
    ],
    ...[
      "EXT-X-INDEPENDENT-SEGMENTS",
      "EXT-X-KEY",
      "EXT-X-MAP",
      "EXT-X-MEDIA",
      "EXT-X-MEDIA-SEQUENCE",
      "EXT-X-START",
    ],
    ...[
      "EXT-X-PLAYLIST-TYPE",
      "EXT-X-PROGRAM-DATE-TIME",
      "EXT-X-STREAM-INF",
      "EXT-X-TARGETDURATION",
      "EXT-X-VERSION",
    ],
  ].map((name) => `#${name}`),
);

/** The most characters of one address or tag. */
const URI_CHARACTERS_MAX = 8192;
/** The most addresses: a day in parts of two seconds. */
const ADDRESSES_MAX = 50_000;
/** The most characters of all addresses of a playlist, resolved: 10,000 parts with 800 characters each. */
const ADDRESS_CHARACTERS_MAX = 2 ** 23;
/** The most lines: five for each address. */
const LINES_MAX = 250_000;
