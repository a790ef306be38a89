/** A live HLS stream on loopback: the parts of a film appear one after the other. All stay in the playlist,
 * as one that is late on a busy machine must miss none.
 */

import { join } from "node:path";
import { make, TempFolder } from "../media.ts";

export interface HlsServer extends AsyncDisposable {
  readonly port: number;
  /** The numbers of the parts that were asked for. */
  readonly asked: readonly number[];
  /** The encoder stops: the playlist stays as it is, or says that it has ended. */
  stop(how: "stalled" | "ended"): void;
  /** Lets the playlist start again, with the part that is due. */
  goOn(): void;
}

/**
 * Format of the parts. In MPEG-TS pictures and sound come together; in fragments of MP4 all pictures of a
 * part come before its sound.
 */
type PartFormat = "ts" | "m4s";

/** A reader begins three parts before the end. */
const PARTS_AHEAD = 3;

/** The parts of a film in this folder, as its packets are, and what comes before them. */
function partsOf(
  folder: string,
  film: string,
  { format, partSeconds }: { format: PartFormat; partSeconds: number },
) {
  const isTs = format === "ts";
  make(
    join(folder, "list.m3u8"),
    ...["-i", film, "-c", "copy", ...(isTs ? [] : ["-bsf:a", "aac_adtstoasc"])],
    ...["-f", "hls", "-hls_time", String(partSeconds), "-hls_list_size", "0"],
    ...["-hls_segment_type", isTs ? "mpegts" : "fmp4", "-hls_fmp4_init_filename", "init.mp4"],
    ...["-hls_segment_filename", join(folder, `part%03d.${format}`)],
  );
  const names = [...Deno.readDirSync(folder)].map(({ name }) => name).filter((name) =>
    name.startsWith("part")
  );
  const parts = names.sort().map((name) => Deno.readFileSync(join(folder, name)));
  return { parts, init: isTs ? null : Deno.readFileSync(join(folder, "init.mp4")) };
}

/**
 * The films one after the other as parts of `partSeconds`; each part has to begin with a key frame. It begins
 * as it is asked first, and is endless: it begins again.
 */
export function serveHls(
  films: string | readonly string[],
  { format = "ts", partSeconds = 1 }: { readonly format?: PartFormat; readonly partSeconds?: number } = {},
): HlsServer {
  const given = [films].flat().map((film) => {
    using folder = new TempFolder();
    return partsOf(folder.path, film, { format, partSeconds });
  });
  const parts = given.flatMap(({ parts }, film) =>
    parts.map((bytes, at) => ({ bytes, film, isFirst: at === 0 }))
  );
  const inits = given.map(({ init }) => init);
  const asked: number[] = [];
  let startMs = 0;
  let stopped: { readonly how: "stalled" | "ended"; readonly atMs: number } | null = null;
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, (request) => {
    const { pathname } = new URL(request.url);
    const part = /^\/part(\d+)\./.exec(pathname);
    if (part) {
      asked.push(Number(part[1]));
      return new Response(parts[Number(part[1]) % parts.length]!.bytes);
    }
    const init = inits[Number(/^\/init(\d+)\.mp4$/.exec(pathname)?.[1])];
    if (init) return new Response(init);
    if (pathname !== "/list.m3u8") return new Response(null, { status: 404 });
    // Nobody has missed a part on a busy machine.
    startMs ||= performance.now();
    const nowMs = stopped?.atMs ?? performance.now();
    const end = Math.floor((nowMs - startMs) / 1000 / partSeconds) + PARTS_AHEAD;
    const listed = Array.from({ length: end }, (_, place) => place);
    return new Response([
      ...["#EXTM3U", "#EXT-X-VERSION:7", `#EXT-X-TARGETDURATION:${Math.ceil(partSeconds)}`],
      "#EXT-X-MEDIA-SEQUENCE:0",
      ...listed.flatMap((number) => {
        const { film, isFirst } = parts[number % parts.length]!;
        return [
          // The times of a film begin at 0.
          ...(number > 0 && isFirst ? ["#EXT-X-DISCONTINUITY"] : []),
          ...(isFirst && inits[film] ? [`#EXT-X-MAP:URI="init${film}.mp4"`] : []),
          `#EXTINF:${partSeconds.toFixed(3)},`,
          `part${number}.${format}`,
        ];
      }),
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
