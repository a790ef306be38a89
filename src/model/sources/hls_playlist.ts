/** HLS playlists (RFC 8216): every address in one is replaced, so that its reader requests no other address. */

/** The playlist cannot be rewritten safely; the message names the reason. */
export class PlaylistRefused extends Error {
  override readonly name = "PlaylistRefused";
}

/** Whether a body with this beginning is a playlist. */
export function isPlaylist(head: Uint8Array): boolean {
  return /^(\u00ef\u00bb\u00bf)?\s*#EXTM3U/i.test(new TextDecoder("latin1").decode(head.subarray(0, 1024)));
}

/**
 * The playlist with each URI resolved against `base` and replaced by the result of `replace`. A tag is kept unchanged only
 * if it cannot contain an address:
 *
 *     seg1.ts                        →  replace(https://host/seg1.ts)
 *     #EXT-X-MAP:URI="init.mp4"      →  #EXT-X-MAP:URI="…"
 *     #EXT-X-MAP:URI=init.mp4        →  refused: programs read it in different ways
 */
export function withUris(playlist: string, base: URL, replace: (uri: URL) => string): string {
  // deno-lint-ignore no-control-regex -- some programs take one of them for a line break
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
