/** A live source that ffmpeg fetches itself (RTSP, HLS) into pictures, until it ends. */

import type { Tools } from "../../base/program_paths.ts";
import type { World } from "../../base/world.ts";
import type { Extent } from "../../model/frames/coordinates.ts";
import type { MediaInput } from "../input.ts";
import { type DecodedFrame, RING_FRAMES } from "./live_decoder.ts";
import { reasonIn } from "../media_fault.ts";
import { FrameRing } from "./frame_ring.ts";
import { LiveFfmpeg, TICKS_PER_SECOND } from "./live_ffmpeg.ts";
import type { Outcome } from "../process.ts";

export interface PulledDecoderOptions {
  readonly tools: Pick<Tools, "ffmpeg" | "prlimit">;
  readonly world: World;
  readonly input: MediaInput;
  /** `VideoStream.streamIndex` of a probe; absent is the first video stream. */
  readonly streamIndex?: number;
  readonly maxFrame: Extent;
  /** Called while the source is read: what takes long here holds the source back. */
  readonly onFrame: (frame: DecodedFrame) => void;
  /** Once, unless it is disposed before. The reason names no address. */
  readonly onEnded: (reason: string) => void;
}

/** A source from which nothing comes for so long has ended: its own silence limit (10 s) and a slow start. */
const SILENCE_MS = 30_000;
const WATCH_MS = 1_000;

/**
 * `frameIndex` counts pictures from 0; `rtpTimestamp` is the time of the picture from the start of the source in 90 kHz
 * (jumps of the source's clock are passed over); `arrivedMs` is when it was decoded. After its end a source is opened again
 * by a new decoder, whose times begin at 0 again.
 */
export class PulledDecoder implements AsyncDisposable {
  readonly counts = { decoded: 0 };
  readonly #options: PulledDecoderOptions;
  readonly #closing = new AbortController();
  readonly #finished: Promise<void>;
  #lastFrameMs: number;

  constructor(options: PulledDecoderOptions) {
    const { tools, world, input, streamIndex, maxFrame } = options;
    this.#options = options;
    this.#lastFrameMs = world.monotonicMs();
    const source = new LiveFfmpeg({
      tools,
      world,
      input: [...input.args, "-i", input.url],
      stream: streamIndex === undefined ? "0:v:0" : `0:${streamIndex}`,
      keepsTimes: false,
      maxFrame,
      hasStdin: false,
      ring: new FrameRing(RING_FRAMES),
      onPixels: (pixels, rtpTimestamp) => {
        this.#lastFrameMs = world.monotonicMs();
        options.onFrame({
          frameIndex: this.counts.decoded++,
          rtpTimestamp,
          ptsMs: Math.round(rtpTimestamp * 1000 / TICKS_PER_SECOND),
          arrivedMs: world.now(),
          pixels,
        });
      },
      signal: this.#closing.signal,
    });
    this.#finished = this.#run(source);
  }

  /** Ends ffmpeg and waits until it is gone. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("the pulled decoder is closing"));
    await this.#finished;
  }

  async #run(source: LiveFfmpeg): Promise<void> {
    const ended = new AbortController();
    const watching = this.#watch(source, ended.signal);
    const outcome = await source.ended;
    ended.abort();
    const isSilent = await watching;
    if (this.#closing.signal.aborted) return;
    this.#options.onEnded(isSilent ? "it gave no picture for 30 s" : reasonOf(outcome));
  }

  /** Whether it was ended for its silence. */
  async #watch(source: LiveFfmpeg, ended: AbortSignal): Promise<boolean> {
    const { world } = this.#options;
    while (!ended.aborted) {
      await world.sleep(WATCH_MS, ended).catch(() => {/* it has ended */});
      if (ended.aborted || world.monotonicMs() - this.#lastFrameMs < SILENCE_MS) continue;
      source.kill();
      return true;
    }
    return false;
  }
}

function reasonOf({ end, code, stderr }: Omit<Outcome, "stdout">): string {
  if (end !== "exited") return "the decoder broke down on it";
  return code === 0 ? "it has ended" : reasonIn(stderr);
}
