/** Which codecs the machine's ffmpeg decodes besides VP8 and H.264, for the offers of publishers (D11). */

import type { Tools } from "../../base/program_paths.ts";
import type { World } from "../../base/world.ts";
import type { VideoCodec } from "../../model/live/offer.ts";
import { run } from "../process.ts";

/** Decoders that need no other hardware than a processor; ffmpeg's own `av1` does. */
const DECODERS: Readonly<Record<string, VideoCodec>> = {
  hevc: "h265",
  vp9: "vp9",
  "libvpx-vp9": "vp9",
  libdav1d: "av1",
  "libaom-av1": "av1",
  libgav1: "av1",
};

const DEADLINE_MS = 5_000;
const ANSWER_BYTES = 256 << 10;
const ADDRESS_SPACE_BYTES = 2 * 2 ** 30;

/** None where ffmpeg does not say: what is always there is enough to begin with. */
export async function liveCodecs(
  { tools, world }: { readonly tools: Pick<Tools, "ffmpeg" | "prlimit">; readonly world: World },
): Promise<VideoCodec[]> {
  const { end, code, stdout } = await run(tools.ffmpeg, ["-nostdin", "-v", "error", "-decoders"], {
    world,
    signal: new AbortController().signal,
    deadlineMs: DEADLINE_MS,
    maxStdoutBytes: ANSWER_BYTES,
    maxStderrBytes: 0,
    limits: {
      prlimit: tools.prlimit,
      cpuSeconds: DEADLINE_MS / 1000,
      addressSpaceBytes: ADDRESS_SPACE_BYTES,
    },
  });
  if (end !== "exited" || code !== 0) return [];
  // " VFS..D hevc                 HEVC (High Efficiency Video Coding)"
  const names = new TextDecoder().decode(stdout).matchAll(/^ V\S{5} (\S+)/gm);
  return [
    ...new Set(Array.from(names, ([, name]) => DECODERS[name!]).filter((codec) => codec !== undefined)),
  ];
}
