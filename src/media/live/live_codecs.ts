/** Which codecs the machine's ffmpeg decodes besides VP8 and H.264, so that offers with them can be accepted.
 */

import type { VideoCodec } from "../../model/live/offer.ts";
import type { AboutFfmpeg, DECODERS } from "../trials/ffmpeg_facts.ts";

/** The codecs by ffmpeg's name. See docs/live/whip.md#codecs. */
const CODECS: Readonly<Partial<Record<keyof typeof DECODERS, VideoCodec>>> = {
  hevc: "h265",
  vp9: "vp9",
  av1: "av1",
};

export class LiveCodecs {
  readonly #ffmpeg: Pick<AboutFfmpeg, "facts">;

  constructor(ffmpeg: Pick<AboutFfmpeg, "facts">) {
    this.#ffmpeg = ffmpeg;
  }

  /** The codecs besides VP8 and H.264, which every ffmpeg decodes. Empty where ffmpeg does not answer. */
  async list(): Promise<readonly VideoCodec[]> {
    const facts = await this.#ffmpeg.facts();
    return Object.entries(CODECS).filter(([name]) => facts?.codecs.includes(name)).map(([, codec]) => codec);
  }
}
