/** One ffmpeg that decodes a live input: it gives each frame as soon as it is decoded, with its exact time. */

import { hasEndedWithin } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { Extent } from "../../model/frames/coordinates.ts";
import { VIDEO_CLOCK_HZ } from "../formats/clock.ts";
import type { Outcome, RunningTool } from "../process.ts";
import type { JobOf } from "../tools/job.ts";
import type { ToolRunner } from "../tools/runner.ts";
import { type FramePixels, type FrameRing, RING_READ_BYTES } from "./frame_ring.ts";

export interface LiveFfmpegOptions {
  readonly runner: ToolRunner;
  readonly world: World;
  /** Of a `live_decode` the input comes through `write`. */
  readonly job: JobOf<"live_decode" | "live_pull">;
  /** The size of the pictures as displayed, before scaling; where it is not known, what ffmpeg says of its input counts. */
  readonly sourceExtent?: Extent;
  readonly ring: FrameRing;
  /** Called while the output is read, so it must not wait. `rtpTimestamp` is the time in units of 1/90000 s. */
  readonly onPixels: (pixels: FramePixels, rtpTimestamp: number) => void;
  readonly signal: AbortSignal;
}

/**
 * ```
 *   stdin ─IVF→ ffmpeg ─NUT→ stdout ─read in 64 KiB─→ FrameRing ─→ onPixels
 * ```
 *
 * One frame out for each unit in, without delay: one thread each for decoder, filter and "encoder", because more threads delay
 * frames; no probing beyond the first bytes; every packet is flushed.
 */
export class LiveFfmpeg {
  /** How ffmpeg ended, with its error output; all its output was read. Never rejects. */
  readonly ended: Promise<Omit<Outcome, "stdout">>;

  readonly #tool: RunningTool;
  readonly #described: StreamDescription;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array> | null;

  private constructor(tool: RunningTool, described: StreamDescription, options: LiveFfmpegOptions) {
    this.#tool = tool;
    this.#described = described;
    this.#writer = tool.stdin?.getWriter() ?? null;
    // A failed write rejects for the caller of `write`, and the end of the process is in `ended`.
    this.#writer?.closed.catch(() => {});
    this.ended = this.#finish(this.#read(options));
  }

  /** Throws when ffmpeg cannot be started. */
  static start(options: LiveFfmpegOptions): LiveFfmpeg {
    const { runner, job, signal } = options;
    const described = new StreamDescription();
    const tool = runner.start(job, {
      signal,
      maxStderrBytes: ERROR_BYTES,
      onStderr: (part) => described.read(part),
    });
    return new LiveFfmpeg(tool, described, options);
  }

  /** Resolves when ffmpeg's pipe has taken the bytes; rejects when ffmpeg has ended. One write at a time. */
  write(bytes: Uint8Array): Promise<void> {
    return this.#writer!.write(bytes);
  }

  /** No more bytes follow: ffmpeg gives its last frames and ends. */
  close(): void {
    this.#writer?.close().catch(() => {/* it has ended by itself */});
  }

  kill(): void {
    this.#tool.kill("killed");
  }

  async #finish(reading: Promise<void>): Promise<Omit<Outcome, "stdout">> {
    const failure = await reading.then(() => null, (error) => error instanceof Error ? error.message : "");
    if (failure !== null) this.kill();
    const ended = await this.#tool.ended;
    // The descriptor of a pipe without a reader stays open until it is closed here.
    await this.#writer?.abort().catch(() => {/* it was closed */});
    return failure === null ? ended : { ...ended, stderr: `${ended.stderr}\n${failure}` };
  }

  async #read({ ring, world, sourceExtent, onPixels }: LiveFfmpegOptions): Promise<void> {
    ring.reset();
    const reader = this.#tool.stdout!.getReader({ mode: "byob" });
    let buffer = new Uint8Array(RING_READ_BYTES);
    let isDescribed = false;
    const described = this.#described;
    try {
      for (;;) {
        const { value, done } = await reader.read(buffer);
        if (done) break;
        // The description comes before the first frame, but through another pipe.
        if (!isDescribed) await hasEndedWithin(world, DESCRIPTION_WAIT_MS, described.known);
        isDescribed = true;
        const stream = {
          isFullRange: described.isFullRange,
          sourceExtent: sourceExtent ?? described.inputExtent,
        };
        ring.push(value, stream, (pixels, { pts, numerator, denominator }) => {
          onPixels(pixels, Math.round(pts * numerator * VIDEO_CLOCK_HZ / denominator));
        });
        buffer = new Uint8Array(value.buffer as ArrayBuffer);
      }
    } finally {
      // If reading ends early, ffmpeg must not block on a pipe that is no longer read.
      await reader.cancel().catch(() => {/* it has ended */});
    }
  }
}

/** What NUT has no field for, read from what ffmpeg says of its input and its output: colour range, size before scaling. */
class StreamDescription {
  isFullRange = false;
  /** Of the first video stream of the input; null where ffmpeg does not say. */
  inputExtent: Extent | null = null;
  readonly #known = Promise.withResolvers<void>();
  readonly #decoder = new TextDecoder();
  /** ffmpeg's output until it has described its video stream; null from then on. */
  #text: string | null = "";

  get known(): Promise<void> {
    return this.#known.promise;
  }

  /** Takes the next part of stderr. */
  read(part: Uint8Array): void {
    if (this.#text === null) return;
    this.#text += this.#decoder.decode(part, { stream: true });
    const range = /Video: rawvideo \([^\n]*?yuvj?420p\b(?:\((\w+)|[^\n]*\n)/.exec(this.#text);
    if (!range) return;
    this.isFullRange = range[1] === "pc";
    const size = /Stream #0:\d+[^\n]*?: Video: [^\n]*?, (\d+)x(\d+)[, ]/.exec(this.#text);
    if (size) this.inputExtent = { width: Number(size[1]), height: Number(size[2]) };
    this.#text = null;
    this.#known.resolve();
  }
}

/** An ffmpeg that describes its output differently is taken for limited range, which nearly all video has. */
const DESCRIPTION_WAIT_MS = 200;
const ERROR_BYTES = 16 << 10;
