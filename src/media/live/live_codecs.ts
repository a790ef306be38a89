/** Which codecs the machine's ffmpeg decodes besides VP8 and H.264, so that offers with them can be accepted. */

import { NEVER_ABORTED } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { VideoCodec } from "../../model/live/offer.ts";
import type { ToolRunner } from "../tools/runner.ts";

/** Decoders that run on the processor alone; ffmpeg's own `av1` needs a graphics card. See docs/live.md#codecs. */
const DECODERS: Readonly<Record<string, VideoCodec>> = {
  hevc: "h265",
  vp9: "vp9",
  "libvpx-vp9": "vp9",
  libdav1d: "av1",
  "libaom-av1": "av1",
  libgav1: "av1",
};

const DEADLINE_MS = 5_000;
const LIST_BYTES_MAX = 256 << 10;

/** Asks ffmpeg when it is first needed, with the first offer: the answer takes longer than the start of the service. */
export class LiveCodecs {
  readonly #options: { readonly runner: ToolRunner; readonly world: World };
  #asked: Promise<readonly VideoCodec[]> | null = null;

  constructor(options: { readonly runner: ToolRunner; readonly world: World }) {
    this.#options = options;
  }

  /** Besides VP8 and H.264, which every ffmpeg decodes. Empty where ffmpeg does not answer; the next call asks it again. */
  async list(): Promise<readonly VideoCodec[]> {
    const asked = this.#asked ??= liveCodecs(this.#options).catch(() => []);
    const codecs = await asked;
    if (codecs.length === 0 && this.#asked === asked) this.#asked = null;
    return codecs;
  }
}

/** Empty where ffmpeg does not answer. */
export async function liveCodecs(
  { runner, world }: { readonly runner: ToolRunner; readonly world: World },
): Promise<VideoCodec[]> {
  const { end, code, stdout } = await runner.run({ kind: "list_decoders" }, {
    world,
    signal: NEVER_ABORTED,
    deadlineMs: DEADLINE_MS,
    maxStdoutBytes: LIST_BYTES_MAX,
    maxStderrBytes: 0,
  });
  if (end !== "exited" || code !== 0) return [];
  // " VFS..D hevc                 HEVC (High Efficiency Video Coding)"
  const names = new TextDecoder().decode(stdout).matchAll(/^ V\S{5} (\S+)/gm);
  return [
    ...new Set(Array.from(names, ([, name]) => DECODERS[name!]).filter((codec) => codec !== undefined)),
  ];
}
