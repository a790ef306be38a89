/** HLS playlists: every address in one is replaced, so that whoever reads it asks for nothing else. RFC 8216. */

/** The playlist cannot be rewritten so that no address of its own is left; the message says what is wrong with it. */
export class PlaylistRefused extends Error {
  override readonly name = "PlaylistRefused";
}

/** Whether the start of a body is that of a playlist. */
export function isPlaylist(head: Uint8Array): boolean {
  return /^(\u00ef\u00bb\u00bf)?\s*#EXTM3U/i.test(new TextDecoder("latin1").decode(head.subarray(0, 1024)));
}

/**
 * The playlist with each URI, resolved against `base`, replaced by what `replace` gives for it. A tag is kept as it is
 * only if it can hold no address:
 *
 *     seg1.ts                        →  replace(https://host/seg1.ts)
 *     #EXT-X-MAP:URI="init.mp4"      →  #EXT-X-MAP:URI="…"
 *     #EXT-X-MAP:URI=init.mp4        →  refused: programs differ in how they read it
 */
export function withUris(playlist: string, base: URL, replace: (uri: URL) => string): string {
  // deno-lint-ignore no-control-regex -- some programs end a line at one of them
  if (/[\0-\x08\x0b\x0c\x0e-\x1f]/.test(playlist)) throw new PlaylistRefused("it holds control characters");
  const replaced = (uri: string) => {
    const url = URL.parse(uri, base);
    if (!url) throw new PlaylistRefused("it names something that is no address");
    return replace(url);
  };
  return playlist.replace(/^\ufeff/, "").split(/\r\n|\r|\n/).map((line) => {
    if (!line.startsWith("#")) return line.trim() === "" ? "" : replaced(line.trim());
    const rewritten = line.replace(/(?<![\w-])URI="([^"\\]*)"/g, (_, uri) => `\0"${replaced(uri)}"`);
    if (/URI\s*=/i.test(rewritten.replace(/\0"[^"]*"/g, ""))) {
      throw new PlaylistRefused("it spells an address oddly");
    }
    return rewritten.replaceAll("\0", "URI=");
  }).join("\n");
}
