/** One ffmpeg that decodes a live input: it gives each frame as soon as it is decoded, with its exact time. */

import type { Tools } from "../../base/program_paths.ts";
import { hasEndedWithin } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { Extent } from "../../model/frames/coordinates.ts";
import { VIDEO_CLOCK_HZ } from "../formats/clock.ts";
import { type Outcome, type RunningTool, start } from "../process.ts";
import { SESSION_CPU_SECONDS, toolLimits } from "../tool_limits.ts";
import { type FramePixels, type FrameRing, RING_READ_BYTES } from "./frame_ring.ts";

export interface LiveFfmpegOptions {
  readonly tools: Pick<Tools, "ffmpeg" | "prlimit">;
  readonly world: World;
  /** The arguments up to and including `-i` and its value. */
  readonly input: readonly string[];
  /** ffmpeg's name of the stream that is decoded, such as `0:v:0`. */
  readonly stream: string;
  /** Whether the times of the input are kept; otherwise they begin at 0 and jumps are removed. */
  readonly keepsTimes: boolean;
  /** Frames of more pixels are scaled down. */
  readonly maxFrame: Extent;
  /** The size of the pictures as displayed, before scaling; where it is not known, what ffmpeg says of its input counts. */
  readonly sourceExtent?: Extent;
  /** A further output of ffmpeg, with its options and its target; none when absent. */
  readonly furtherOutput?: readonly string[];
  /** Whether the input comes through `write`. */
  readonly hasStdin: boolean;
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
    const { tools, signal, hasStdin } = options;
    const described = new StreamDescription();
    const tool = start(tools.ffmpeg, argsOf(options), {
      signal,
      hasStdin,
      hasStdout: true,
      maxStderrBytes: ERROR_BYTES,
      onStderr: (part) => described.read(part),
      limits: toolLimits("live", { prlimit: tools.prlimit, cpuSeconds: SESSION_CPU_SECONDS }),
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
/** Longer edges are scaled down: the limit of `LumaReducer`. */
const EDGE_MAX = 8192;

function argsOf({ input, stream, keepsTimes, maxFrame, furtherOutput = [] }: LiveFfmpegOptions): string[] {
  return [
    ...["-nostdin", "-hide_banner", "-nostats", "-v", "info", "-threads", "1", ...input],
    ...["-map", stream, "-an", "-sn", "-dn", "-map_metadata", "-1", "-map_chapters", "-1"],
    ...["-threads", "1", "-filter_threads", "1", ...(keepsTimes ? ["-copyts"] : [])],
    ...["-fps_mode", "passthrough", "-enc_time_base", "-1", "-vf", scaleFilter(maxFrame)],
    ...["-c:v", "rawvideo", "-flush_packets", "1", "-f", "nut", "-write_index", "0", "pipe:1"],
    ...furtherOutput,
  ];
}

/**
 * Passes frames of up to `width * height` pixels unchanged, whatever their shape, and scales larger ones down. Both ranges are
 * declared as full, so that the scaler does not stretch samples. See docs/frames.md#signals. If the size changes within one
 * stream, ffmpeg itself scales to the first size.
 */
function scaleFilter({ width, height }: Extent): string {
  const share = `min(1,min(sqrt(${width * height}/(iw*ih)),${EDGE_MAX}/max(iw,ih)))`;
  const edge = (name: string) => `if(lt(${share},1),max(2,2*trunc(${name}*${share}/2)),${name})`;
  const size = `w='${edge("iw")}':h='${edge("ih")}'`;
  return `scale=${size}:flags=area:in_range=full:out_range=full,format=yuv420p`;
}
