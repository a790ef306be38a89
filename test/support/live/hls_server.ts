/** A live HLS stream on loopback: the parts of a film appear one after the other, and the playlist names the last three. */

import { join } from "node:path";
import { make, TempFolder } from "../media.ts";

export interface HlsServer extends AsyncDisposable {
  readonly port: number;
}

const PARTS_LISTED = 3;

/** The film as parts of `partSeconds` in MPEG-TS, as its packets are; each has to begin with a key frame. It is endless: it begins again. */
export function serveHls(film: string, { partSeconds = 1 } = {}): HlsServer {
  using folder = new TempFolder();
  make(
    join(folder.path, "list.m3u8"),
    ...["-i", film, "-c", "copy", "-f", "hls", "-hls_time", String(partSeconds), "-hls_list_size", "0"],
    ...["-hls_segment_filename", join(folder.path, "part%03d.ts")],
  );
  const names = folder.names().filter((name) => name.endsWith(".ts")).sort();
  const parts = names.map((name) => Deno.readFileSync(join(folder.path, name)));
  const startMs = performance.now();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
    const { pathname } = new URL(request.url);
    const part = /^\/part(\d+)\.ts$/.exec(pathname);
    if (part) return new Response(parts[Number(part[1]) % parts.length]);
    if (pathname !== "/list.m3u8") return new Response(null, { status: 404 });
    const first = Math.floor((performance.now() - startMs) / 1000 / partSeconds);
    const listed = Array.from({ length: PARTS_LISTED }, (_, place) => first + place);
    return new Response([
      ...["#EXTM3U", "#EXT-X-VERSION:3", `#EXT-X-TARGETDURATION:${Math.ceil(partSeconds)}`],
      `#EXT-X-MEDIA-SEQUENCE:${first}`,
      ...listed.flatMap((number) => [
        // The times of the film begin again.
        ...(number > 0 && number % parts.length === 0 ? ["#EXT-X-DISCONTINUITY"] : []),
        `#EXTINF:${partSeconds.toFixed(3)},`,
        `part${number}.ts`,
      ]),
    ].join("\n"));
  });
  return {
    port: (server.addr as Deno.NetAddr).port,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}
