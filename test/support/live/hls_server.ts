/** A live HLS stream on loopback: the parts of a film appear one after the other. All stay in the playlist, as one that is late on a busy machine must miss none. */

import { join } from "node:path";
import { make, TempFolder } from "../media.ts";

export interface HlsServer extends AsyncDisposable {
  readonly port: number;
  /** The numbers of the parts that were asked for. */
  readonly asked: readonly number[];
  /** The encoder stops: the playlist stays as it is, or says that it has ended. */
  stop(how: "stalled" | "ended"): void;
  /** It starts again, with the part that is due. */
  goOn(): void;
}

/** In MPEG-TS pictures and sound come together, in fragments of MP4 all pictures of a part come before its sound. */
type PartFormat = "ts" | "m4s";

/** A reader begins three parts before the end. */
const PARTS_AHEAD = 3;

/** The film as parts of `partSeconds`, as its packets are; each has to begin with a key frame. It is endless: it begins again. */
export function serveHls(
  film: string,
  { format = "ts", partSeconds = 1 }: { readonly format?: PartFormat; readonly partSeconds?: number } = {},
): HlsServer {
  using folder = new TempFolder();
  const isTs = format === "ts";
  make(
    join(folder.path, "list.m3u8"),
    ...["-i", film, "-c", "copy", ...(isTs ? [] : ["-bsf:a", "aac_adtstoasc"])],
    ...["-f", "hls", "-hls_time", String(partSeconds), "-hls_list_size", "0"],
    ...["-hls_segment_type", isTs ? "mpegts" : "fmp4", "-hls_fmp4_init_filename", "init.mp4"],
    ...["-hls_segment_filename", join(folder.path, `part%03d.${format}`)],
  );
  const names = folder.names().filter((name) => name.startsWith("part")).sort();
  const parts = names.map((name) => Deno.readFileSync(join(folder.path, name)));
  const init = isTs ? null : Deno.readFileSync(join(folder.path, "init.mp4"));
  const asked: number[] = [];
  let startMs = performance.now();
  let stopped: { readonly how: "stalled" | "ended"; readonly atMs: number } | null = null;
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
    const { pathname } = new URL(request.url);
    const part = /^\/part(\d+)\./.exec(pathname);
    if (part) {
      asked.push(Number(part[1]));
      return new Response(parts[Number(part[1]) % parts.length]);
    }
    if (pathname === "/init.mp4" && init) return new Response(init);
    if (pathname !== "/list.m3u8") return new Response(null, { status: 404 });
    const end = Math.floor(((stopped?.atMs ?? performance.now()) - startMs) / 1000 / partSeconds) +
      PARTS_AHEAD;
    const listed = Array.from({ length: end }, (_, place) => place);
    return new Response([
      ...["#EXTM3U", "#EXT-X-VERSION:7", `#EXT-X-TARGETDURATION:${Math.ceil(partSeconds)}`],
      "#EXT-X-MEDIA-SEQUENCE:0",
      ...(init ? ['#EXT-X-MAP:URI="init.mp4"'] : []),
      ...listed.flatMap((number) => [
        // The times of the film begin again.
        ...(number > 0 && number % parts.length === 0 ? ["#EXT-X-DISCONTINUITY"] : []),
        `#EXTINF:${partSeconds.toFixed(3)},`,
        `part${number}.${format}`,
      ]),
      ...(stopped?.how === "ended" ? ["#EXT-X-ENDLIST"] : []),
    ].join("\n"));
  });
  return {
    port: (server.addr as Deno.NetAddr).port,
    asked,
    stop(how) {
      stopped = { how, atMs: stopped?.atMs ?? performance.now() };
    },
    goOn() {
      startMs += performance.now() - stopped!.atMs;
      stopped = null;
    },
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}
