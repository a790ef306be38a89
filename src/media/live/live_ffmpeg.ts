/** One ffmpeg that decodes a live input: it gives each frame as soon as it is decoded, with its exact time.
 */

import { hasEndedWithin, pause } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { Extent } from "../../model/frames/coordinates.ts";
import { VIDEO_CLOCK_HZ } from "../containers/clock.ts";
import { NutError } from "../containers/nut.ts";
import type { Outcome, RunningTool } from "../process.ts";
import { newReports, ReportReader } from "../frame_reports.ts";
import type { JobOf } from "../jobs/jobs.ts";
import type { ToolRunner } from "../jobs/runner.ts";
import type { FrameRoom } from "./frame_room.ts";
import { PictureSizes } from "./picture_sizes.ts";
import { type FramePixels, type FrameRing, RING_READ_BYTES } from "./frame_ring.ts";

export interface LiveFfmpegOptions {
  readonly runner: ToolRunner;
  readonly world: World;
  /** The job to run. The input of a `live_decode` comes through `write`. */
  readonly job: JobOf<"live_decode" | "live_pull">;
  /**
   * The size of the first pictures as displayed, before scaling; where it is not known, what ffmpeg says of
   * its input counts.
   */
  readonly sourceExtent?: Extent;
  readonly ring: FrameRing;
  readonly room: FrameRoom;
  /**
   * Called while the output is read, so it must not wait. `rtpTimestamp` is the time in units of 1/90000 s,
   * `report` what the decoder says of the frame: bits of `REPORT`.
   */
  readonly onPixels: (pixels: FramePixels, rtpTimestamp: number, report: number) => void;
  readonly signal: AbortSignal;
}

/**
 * ```
 *   stdin ─IVF→ ffmpeg ─NUT→ stdout ─read in 64 KiB─→ FrameRing ─→ onPixels
 * ```
 *
 * One frame out for each unit in, without delay: one thread each for decoder, filter and "encoder", because
 * more threads delay frames; no probing beyond the first bytes; every packet is flushed.
 */
export class LiveFfmpeg {
  /** How ffmpeg ended, with its error output; all its output was read. Never rejects. */
  readonly ended: Promise<LiveEnd>;

  readonly #tool: RunningTool;
  readonly #described: StreamDescription;
  readonly #reports: ReportReader;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array> | null;

  private constructor(
    tool: RunningTool,
    { described, reports }: { described: StreamDescription; reports: SharedArrayBuffer },
    options: LiveFfmpegOptions,
  ) {
    this.#tool = tool;
    this.#described = described;
    this.#reports = new ReportReader(reports);
    this.#writer = tool.stdin?.getWriter() ?? null;
    // A failed write rejects for the caller of `write`, and the end of the process is in `ended`.
    this.#writer?.closed.catch(() => {});
    this.ended = this.#finish(this.#read(options));
  }

  /** Throws when ffmpeg cannot be started. */
  static start(options: LiveFfmpegOptions): LiveFfmpeg {
    const { runner, job, signal } = options;
    const described = new StreamDescription();
    const reports = newReports();
    const tool = runner.start(job, {
      signal,
      reports,
      maxStderrBytes: ERROR_BYTES,
      onStderr: (part) => described.read(part),
    });
    return new LiveFfmpeg(tool, { described, reports }, options);
  }

  /** Resolves when ffmpeg's pipe has taken the bytes; rejects when ffmpeg has ended. One write at a time. */
  write(bytes: Uint8Array): Promise<void> {
    return this.#writer!.write(bytes);
  }

  /** Ends the input: ffmpeg gives its last frames and ends. */
  close(): void {
    this.#writer?.close().catch(() => {/* it has ended by itself */});
  }

  kill(): void {
    this.#tool.kill("killed");
  }

  async #finish(reading: Promise<void>): Promise<LiveEnd> {
    const failure = await reading.then(() => null, (error) => error instanceof Error ? error : new Error(""));
    if (failure !== null) this.kill();
    const ended = await this.#tool.ended;
    // The descriptor of a pipe without a reader stays open until it is closed here.
    await this.#writer?.abort().catch(() => {/* it was closed */});
    const noRoomFor = failure instanceof NoRoom ? failure.picture : null;
    const stderr = failure === null ? ended.stderr : `${ended.stderr}\n${failure.message}`;
    const notUnderstood = failure instanceof NutError ? failure.message : null;
    return { ...ended, stderr, noRoomFor, notUnderstood };
  }

  /**
   * What the decoder says of a frame comes before its bytes, but through another pipe. False if it does not
   * come in time.
   */
  async #isReported(world: World, signal: AbortSignal): Promise<boolean> {
    for (let ms = 0; ms < REPORT_WAIT_MS && this.#reports.isAwaited; ms += REPORT_POLL_MS) {
      await pause(world, REPORT_POLL_MS, signal);
    }
    return !this.#reports.isAwaited;
  }

  async #read({ ring, room, world, sourceExtent, onPixels, signal }: LiveFfmpegOptions): Promise<void> {
    ring.reset();
    const reader = this.#tool.stdout!.getReader({ mode: "byob" });
    let buffer = new Uint8Array(RING_READ_BYTES);
    let isDescribed = false;
    let isLate = false;
    /** Whether the log does not come to the frames in time: then it is not waited for again until it does. */
    let isSilent = false;
    let frames = 0;
    /** Bytes that are read at once: few enough to end no more than one frame. */
    let pieceBytes = PIECE_BYTES;
    const described = this.#described, reports = this.#reports;
    try {
      for (;;) {
        const { value, done } = await reader.read(buffer);
        if (done) break;
        // The description comes before the first frame, but through another pipe.
        if (!isDescribed) await hasEndedWithin(world, DESCRIPTION_WAIT_MS, described.known);
        isDescribed = true;
        const sizeOf = (pts: number, first: Extent, fits: (frame: Extent) => boolean) => {
          // A change of which the bytes say nothing is in the log, which comes before the frame, but through
          // another pipe.
          const isTold = reports.filtered > frames && described.sizes.saidSizes >= reports.scaled;
          if (isTold) isSilent = false;
          else if (!isSilent) return null;
          const source = sourceExtent ?? described.inputExtent ?? first;
          return described.sizes.of(pts, (frame) => fits(frame ?? first)) ?? { frame: first, source };
        };
        const stream = { isFullRange: described.isFullRange, sizeOf };
        for (let at = 0; at < value.length;) {
          if (reports.isAwaited && !isLate) isLate = !await this.#isReported(world, signal);
          else isLate &&= reports.isAwaited;
          const piece = value.subarray(at, at + pieceBytes);
          at += piece.length;
          const push = (bytes: Uint8Array) =>
            ring.push(bytes, stream, (pixels, { pts, numerator, denominator }) => {
              frames++;
              pieceBytes = Math.max(PIECE_BYTES, pixels.width * pixels.height);
              onPixels(pixels, Math.round(pts * numerator * VIDEO_CLOCK_HZ / denominator), reports.takeNow());
            });
          let waitedMs = 0;
          for (let waits = push(piece); waits; waits = push(NOTHING)) {
            if (waits.size) {
              if (!await room.takeFor(waits.size)) throw new NoRoom(waits.size.source);
              ring.resize(waits.size.frame);
            } else if (!isSilent && waitedMs >= REPORT_WAIT_MS) isSilent = true;
            else if (waitedMs < SIZE_WAIT_MS) {
              await pause(world, REPORT_POLL_MS, signal);
              waitedMs += REPORT_POLL_MS;
            } else throw new NutError("a frame of another size than ffmpeg says");
          }
        }
        buffer = new Uint8Array(value.buffer as ArrayBuffer);
      }
    } finally {
      // If reading ends early, ffmpeg must not block on a pipe that is no longer read.
      await reader.cancel().catch(() => {/* it has ended */});
    }
  }
}

/**
 * How an ffmpeg ended. `noRoomFor` is the size of the pictures for which there was no memory, `notUnderstood`
 * says what in ffmpeg's output could not be read; each is null where that was not why it ended.
 */
export type LiveEnd = Omit<Outcome, "stdout"> & {
  readonly noRoomFor: Extent | null;
  readonly notUnderstood: string | null;
};

class NoRoom extends Error {
  override readonly name = "NoRoom";

  constructor(readonly picture: Extent) {
    super("there is no memory for its pictures");
  }
}

/**
 * What NUT has no field for, read from what ffmpeg says of its input and its output: colour range, size
 * before scaling.
 */
class StreamDescription {
  isFullRange = false;
  /** Size of the first video stream of the input; null where ffmpeg does not say. */
  inputExtent: Extent | null = null;
  readonly sizes = new PictureSizes();
  /** The beginning of a line whose end has not come. */
  #line = "";
  readonly #known = Promise.withResolvers<void>();
  readonly #decoder = new TextDecoder();
  /**
   * ffmpeg's output until it has described its video stream, or has said too much else; null from then on.
   */
  #text: string | null = "";

  get known(): Promise<void> {
    return this.#known.promise;
  }

  /** Takes the next part of stderr. */
  read(part: Uint8Array): void {
    const text = this.#decoder.decode(part, { stream: true });
    const lines = `${this.#line}${text}`.split("\n");
    this.#line = lines.pop()!.slice(-LINE_MAX);
    for (const line of lines) this.sizes.read(line);
    if (this.#text === null) return;
    this.#text += text;
    const range = /Video: rawvideo[^\n]*?yuvj?420p\b(?:\((\w+)|[^\n]*\n)/.exec(this.#text);
    if (!range) {
      if (this.#text.length > ERROR_BYTES) this.#text = null;
      return;
    }
    this.isFullRange = range[1] === "pc";
    const size = /Stream #0:\d+[^\n]*?: Video: [^\n]*?, (\d+)x(\d+)[, ]/.exec(this.#text);
    if (size) this.inputExtent = { width: Number(size[1]), height: Number(size[2]) };
    this.#text = null;
    this.#known.resolve();
  }
}

/** Longest wait for a report; a late one is not waited for again until it has come. */
const REPORT_WAIT_MS = 60;
const REPORT_POLL_MS = 2;
/** Bytes that are read at once at first: a frame of 32x32 is longer. */
const PIECE_BYTES = 1024;
/**
 * Longest wait for ffmpeg's description of its output, milliseconds. Without one, limited range is assumed,
 * which nearly all video has.
 */
const DESCRIPTION_WAIT_MS = 200;
const ERROR_BYTES = 16 << 10;
const LINE_MAX = 4 << 10;
/** Longest wait until the log says which size a frame has, milliseconds: a busy machine may read it late. */
const SIZE_WAIT_MS = 2_000;
const NOTHING = new Uint8Array();
