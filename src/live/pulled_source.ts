/** A live source that is pulled, across its gaps: one time line, whatever each connection to it says. */

import type { World } from "../base/world.ts";
import type { MediaInput } from "../media/input.ts";
import type { DecodedFrame } from "../media/live/live_decoder.ts";
import { PulledDecoder } from "../media/live/pulled_decoder.ts";
import type { MediaInfo } from "../media/probe.ts";
import type { Extent } from "../model/frames/coordinates.ts";
import type { SessionCounts } from "./session_counts.ts";
import type { LiveStart } from "./messages.ts";

export interface PulledSourceOptions {
  readonly tools: LiveStart["tools"];
  readonly world: World;
  readonly maxFrame: Extent;
  readonly counts: SessionCounts;
  readonly onFrame: (frame: DecodedFrame) => void;
  /** It gives no more; `begin` may open it again. */
  readonly onGap: (reason: string, lastPtsMs: number | null) => void;
  /** The first frame after a gap. */
  readonly onResumed: () => void;
  /** It said how long it is, and has been seen to its end: there is nothing to wait for. */
  readonly onFinished: () => void;
}

/** What a source with a known end may lack at the end, milliseconds: sound outlasts pictures, and headers round. */
const END_TOLERANCE_MS = 2_000;
const TICKS_PER_MS = 90;

/**
 * ```
 *   connection   0 … 5000 │ gap of 1800 ms │ 0 … 900
 *   session      0 … 5000 │                │ 6800 … 7700
 * ```
 * The time of a gap is that between the frames around it, so that times keep following the world's.
 */
export class PulledSource implements AsyncDisposable {
  readonly #options: PulledSourceOptions;
  #decoder: PulledDecoder | null = null;
  #isClosed = false;
  /** Decoders that end. */
  #ending: Promise<void> = Promise.resolve();
  #frames = 0;
  #last: { readonly frame: DecodedFrame; readonly atMs: number } | null = null;
  #hasGap = false;
  /** Media time of the session at time 0 of the present connection. */
  #offsetMs = 0;

  constructor(options: PulledSourceOptions) {
    this.#options = options;
  }

  /** Opens the source, for the first time or after a gap; another connection, if there is one, is given up. */
  begin({ input, info }: { readonly input: MediaInput; readonly info: MediaInfo }): void {
    if (this.#isClosed) return;
    this.#letGo();
    let isFirst = true;
    const { tools, world, maxFrame } = this.#options;
    const decoder: PulledDecoder = new PulledDecoder({
      tools,
      world,
      input: info.durationMs === null ? input : atItsOwnPace(input),
      maxFrame,
      ...(info.video && { streamIndex: info.video.streamIndex }),
      onFrame: (frame) => {
        if (this.#decoder !== decoder) return;
        if (isFirst) this.#resume(frame);
        isFirst = false;
        this.#show(frame);
      },
      onEnded: (reason) => {
        if (this.#decoder !== decoder) return;
        this.#letGo();
        if (this.#isSeenToItsEnd(info)) return this.#options.onFinished();
        this.#hasGap = true;
        this.#options.onGap(reason, this.#last && this.#last.frame.ptsMs);
      },
    });
    this.#decoder = decoder;
  }

  /** Ends ffmpeg and waits until it is gone. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#isClosed = true;
    this.#letGo();
    await this.#ending;
  }

  #letGo(): void {
    const decoder = this.#decoder;
    this.#decoder = null;
    if (decoder) this.#ending = Promise.all([this.#ending, decoder[Symbol.asyncDispose]()]).then(() => {});
  }

  #resume({ ptsMs }: DecodedFrame): void {
    if (this.#last) {
      const { frame: last, atMs } = this.#last;
      const gapMs = Math.max(1, Math.round(this.#options.world.monotonicMs() - atMs));
      this.#offsetMs = last.ptsMs + gapMs - ptsMs;
    }
    if (this.#hasGap) this.#options.onResumed();
    this.#hasGap = false;
  }

  #show(given: DecodedFrame): void {
    const { world, counts, onFrame } = this.#options;
    const frame: DecodedFrame = {
      ...given,
      frameIndex: this.#frames++,
      ptsMs: given.ptsMs + this.#offsetMs,
      rtpTimestamp: given.rtpTimestamp + this.#offsetMs * TICKS_PER_MS,
    };
    this.#last = { frame, atMs: world.monotonicMs() };
    counts.add("framesDecoded");
    onFrame(frame);
  }

  #isSeenToItsEnd({ durationMs }: MediaInfo): boolean {
    return durationMs !== null && this.#last !== null &&
      this.#last.frame.ptsMs - this.#offsetMs >= durationMs - END_TOLERANCE_MS;
  }
}

/** A live source comes at its own pace; of one that is there in full ffmpeg would read all at once. */
function atItsOwnPace(input: MediaInput): MediaInput {
  return { ...input, args: [...input.args, "-re"] };
}
