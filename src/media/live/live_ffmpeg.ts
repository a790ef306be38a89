/** One ffmpeg that turns a live input into raw pictures, each as soon as it is decoded and with its exact time. */

import type { Tools } from "../../base/program_paths.ts";
import type { World } from "../../base/world.ts";
import type { Extent } from "../../model/frames/coordinates.ts";
import { type FramePixels, FrameRing, READ_BYTES } from "./frame_ring.ts";
import { type Outcome, type RunningTool, start } from "../process.ts";

export interface LiveFfmpegOptions {
  readonly tools: Pick<Tools, "ffmpeg" | "prlimit">;
  readonly world: World;
  /** What stands before `-i` and behind it. */
  readonly input: readonly string[];
  /** ffmpeg's name of the stream that is decoded. */
  readonly stream: string;
  /** Whether times are those of the input, or count from 0 and pass over jumps. */
  readonly keepsTimes: boolean;
  /** Pictures of more pixels are scaled down. */
  readonly maxFrame: Extent;
  /** Whether bytes are written to it. */
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
 * One picture out for each unit in: one thread each for decoder, filter and "encoder" (threads hold pictures back), no
 * probing beyond the first bytes, every packet flushed.
 *
 * There is no useful limit of CPU time: a session may last for days, and the limit is there for a decoder that runs wild,
 * which the watchdogs of its owners see first. A child that uses up a month's worth is replaced like any that ends.
 */
export class LiveFfmpeg {
  /** How ffmpeg ended, with its first complaint; everything that it wrote was read. Never rejects. */
  readonly ended: Promise<Omit<Outcome, "stdout">>;

  readonly #tool: RunningTool;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array> | null;
  readonly #words = new TextDecoder();
  /** What it said, until it has said what its pictures are. */
  #told = "";
  #isFullRange = false;
  readonly #described = Promise.withResolvers<void>();

  constructor(options: LiveFfmpegOptions) {
    const { tools, signal, hasStdin } = options;
    this.#tool = start(tools.ffmpeg, argsOf(options), {
      signal,
      hasStdin,
      hasStdout: true,
      maxStderrBytes: ERROR_BYTES,
      onWords: (words) => this.#hear(words),
      limits: {
        prlimit: tools.prlimit,
        cpuSeconds: CPU_SECONDS,
        addressSpaceBytes: ADDRESS_SPACE_BYTES,
      },
    });
    this.#writer = this.#tool.stdin?.getWriter() ?? null;
    // A write that fails is told to whoever wrote; the end of the process to whoever waits for it.
    this.#writer?.closed.catch(() => {});
    this.ended = this.#finish(this.#read(options));
  }

  /** Resolves when ffmpeg's pipe has taken the bytes; rejects when it has ended. One write at a time. */
  write(bytes: Uint8Array): Promise<void> {
    return this.#writer!.write(bytes);
  }

  /** No more bytes follow: ffmpeg gives what it has and ends. */
  close(): void {
    this.#writer?.close().catch(() => {/* it has ended by itself */});
  }

  kill(): void {
    this.#tool.kill("killed");
  }

  async #finish(reading: Promise<void>): Promise<Omit<Outcome, "stdout">> {
    const broken = await reading.then(() => null, (error) => error instanceof Error ? error.message : "");
    if (broken !== null) this.kill();
    const ended = await this.#tool.ended;
    // A pipe that nobody reads any more keeps its descriptor until it is closed.
    await this.#writer?.abort().catch(() => {/* it was closed */});
    return broken === null ? ended : { ...ended, stderr: `${ended.stderr}\n${broken}` };
  }

  async #read({ ring, world, onPixels }: LiveFfmpegOptions): Promise<void> {
    ring.begin();
    const reader = this.#tool.stdout!.getReader({ mode: "byob" });
    let buffer = new Uint8Array(READ_BYTES);
    let isDescribed = false;
    try {
      for (;;) {
        const { value, done } = await reader.read(buffer);
        if (done) break;
        if (!isDescribed) await this.#hasDescribed(world);
        isDescribed = true;
        ring.push(value, this.#isFullRange, (pixels, { pts, numerator, denominator }) => {
          onPixels(pixels, Math.round(pts * numerator * TICKS_PER_SECOND / denominator));
        });
        buffer = new Uint8Array(value.buffer as ArrayBuffer);
      }
    } finally {
      // Where it ends early, nothing may wait for a pipe that is not read any more.
      await reader.cancel().catch(() => {/* it has ended */});
    }
  }

  /** ffmpeg describes its output before it gives the first picture, but in another pipe; NUT has no place for the range. */
  #hear(words: Uint8Array): void {
    if (this.#told === TOLD) return;
    this.#told += this.#words.decode(words, { stream: true });
    const range = /Video: rawvideo \([^\n]*?yuvj?420p\b(?:\((\w+)|[^\n]*\n)/.exec(this.#told);
    if (!range) return;
    this.#isFullRange = range[1] === "pc";
    this.#told = TOLD;
    this.#described.resolve();
  }

  async #hasDescribed(world: World): Promise<void> {
    const told = new AbortController();
    const patience = world.sleep(DESCRIPTION_MS, told.signal).catch(() => {/* it has told */});
    await Promise.race([this.#described.promise, patience]);
    told.abort();
    await patience;
  }
}

/** Stands for a description that was read. */
const TOLD = "\0";
/** An ffmpeg of other words means limited range, which nearly all video has. */
const DESCRIPTION_MS = 200;
/** RTP's clock of video. */
export const TICKS_PER_SECOND = 90_000;
const ERROR_BYTES = 16 << 10;
const CPU_SECONDS = 30 * 24 * 3600;
/** One thread: a 4K decoder takes 0.5 GiB. */
const ADDRESS_SPACE_BYTES = 4 * 2 ** 30;
/** Longer edges are scaled down: the reducer's bound. */
const EDGE_MAX = 8192;

function argsOf({ input, stream, keepsTimes, maxFrame }: LiveFfmpegOptions): string[] {
  return [
    ...["-nostdin", "-hide_banner", "-nostats", "-v", "info", "-threads", "1", ...input],
    ...["-map", stream, "-an", "-sn", "-dn", "-map_metadata", "-1", "-map_chapters", "-1"],
    ...["-threads", "1", "-filter_threads", "1", ...(keepsTimes ? ["-copyts"] : [])],
    ...["-fps_mode", "passthrough", "-enc_time_base", "-1", "-vf", fitted(maxFrame)],
    ...["-c:v", "rawvideo", "-flush_packets", "1", "-f", "nut", "-write_index", "0", "pipe:1"],
  ];
}

/**
 * Passes pictures of up to so many pixels as they are, whatever their shape. Both ranges are called full, which keeps the
 * scaler from stretching samples (D6). After a change of size within one stream ffmpeg itself keeps the first size.
 */
function fitted({ width, height }: Extent): string {
  const share = `min(1,min(sqrt(${width * height}/(iw*ih)),${EDGE_MAX}/max(iw,ih)))`;
  const edge = (name: string) => `if(lt(${share},1),max(2,2*trunc(${name}*${share}/2)),${name})`;
  const size = `w='${edge("iw")}':h='${edge("ih")}'`;
  return `scale=${size}:flags=area:in_range=full:out_range=full,format=yuv420p`;
}
