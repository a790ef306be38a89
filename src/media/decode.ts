/** Decodes recorded media into signals: ffmpeg writes reduced luma planes into a pipe, a media Worker reads them. */

import { Gate } from "../base/gate.ts";
import type { Tools } from "../base/places.ts";
import type { World } from "../base/world.ts";
import {
  croppedFrame,
  fullFrame,
  type ImageCoordinates,
  type NormalizedRegion,
} from "../model/coordinates.ts";
import { type SamplingPlan, takesEveryFrame } from "../model/sampling.ts";
import type { SignalColumns } from "../model/signals.ts";
import { DecodePool, type DecodeWorker } from "./decode_pool.ts";
import { Fifo } from "./fifo.ts";
import { PLANE_HEIGHT, PLANE_WIDTH } from "./filter.ts";
import { mediaFault, reasonIn } from "./media_fault.ts";
import { fileInput, type MediaInput } from "./input.ts";
import { type MediaInfo, probeMedia } from "./probe.ts";
import { type Outcome, type ResourceLimits, run } from "./process.ts";

export interface DecoderOptions {
  readonly tools: Tools;
  /** For named pipes; empty again after each decode. */
  readonly tempDir: string;
  readonly world: World;
  /** Decodes at once, at least 1; more than there are processors only makes each slower. */
  readonly maxConcurrent: number;
}

export interface DecodeRequest {
  /** A real path that `resolveLocalSource` gave, or an input of another kind. */
  readonly path: string | MediaInput;
  readonly info: MediaInfo;
  readonly plan: SamplingPlan;
  /** Sampled frames; what follows is not decoded. */
  readonly maxFrames: number;
  /** Fractions of the displayed picture; absent is the whole of it. */
  readonly crop?: NormalizedRegion;
  readonly signal: AbortSignal;
}

export interface DecodedSignals {
  /** At least one frame. Times are exact, in milliseconds from the first frame, not rounded. */
  readonly signals: SignalColumns;
  /** Pixels, as displayed, before the crop. */
  readonly width: number;
  readonly height: number;
  /** The source's, in ffmpeg's words. */
  readonly pixelFormat: string;
  readonly coordinates: ImageCoordinates;
}

/**
 * ```
 *   probe:          ffprobe ─JSON→ MediaInfo
 *   decodeSignals:  [gate, FIFO order] → ffmpeg ─NUT→ named pipe ─readSync→ Worker: FrameFilter → SignalColumns
 * ```
 *
 * Faults of the medium are 422 `source_uri`. A file that is damaged in places gives the frames that can be decoded.
 */
export class Decoder implements AsyncDisposable {
  readonly #options: DecoderOptions;
  readonly #decodes: Gate;
  readonly #probes: Gate;
  /** Endless sources arrive at their own pace: they hold a place for minutes and use little of a processor. */
  readonly #streams: Gate;
  readonly #pool: DecodePool;
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<unknown>>();

  private constructor(options: DecoderOptions) {
    this.#options = options;
    this.#pool = new DecodePool([options.tempDir]);
    const { maxConcurrent } = options;
    const common = { waiterLimit: WAITERS_MAX, refusal: "provider_saturated" } as const;
    this.#decodes = new Gate({ ...common, limit: maxConcurrent, what: "decodes" });
    this.#streams = new Gate({ ...common, limit: maxConcurrent * STREAMS_PER_DECODE, what: "streams" });
    this.#probes = new Gate({ ...common, limit: maxConcurrent * PROBES_PER_DECODE, what: "probes" });
  }

  /** Starts a first worker, so that a machine where none can run says so now. */
  static async open(options: DecoderOptions): Promise<Decoder> {
    const decoder = new Decoder(options);
    decoder.#pool.giveBack(await decoder.#pool.take());
    return decoder;
  }

  /** What the file, or another input, holds; refuses what is no media container. */
  probe(path: string | MediaInput, signal: AbortSignal, deadlineMs?: number): Promise<MediaInfo> {
    return this.#track(signal, async (either) => {
      const { tools, world } = this.#options;
      using _place = await this.#probes.acquire({ signal: either });
      return await probeMedia(path, {
        tools,
        world,
        signal: either,
        ...(deadlineMs !== undefined && { deadlineMs }),
        limits: this.#limits(PROBE_CPU_SECONDS),
      });
    });
  }

  /** Waits its turn, decodes, and leaves no process, pipe or file behind however it ends. */
  decodeSignals(request: DecodeRequest): Promise<DecodedSignals> {
    return this.#track(request.signal, async (signal) => {
      const { video } = request.info;
      if (!video) throw mediaFault("it has no video stream");
      const coordinates = request.crop
        ? croppedFrame(video, request.crop)
        : fullFrame(video.width, video.height);
      const gate = isEndless(request) ? this.#streams : this.#decodes;
      using _place = await gate.acquire({ signal });
      const signals = await this.#decode(
        request,
        filterChain(request.info, request.plan, coordinates),
        signal,
      );
      return {
        signals,
        width: video.width,
        height: video.height,
        pixelFormat: video.pixelFormat,
        coordinates,
      };
    });
  }

  /** Stops what is running and ends the workers. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("the decoder is closing"));
    await Promise.allSettled(this.#running);
    this.#decodes.close();
    this.#streams.close();
    this.#probes.close();
    this.#pool[Symbol.dispose]();
  }

  async #decode(request: DecodeRequest, filters: string, signal: AbortSignal): Promise<SignalColumns> {
    const { tools, tempDir, world } = this.#options;
    const worker = await this.#pool.take();
    try {
      await using fifo = await Fifo.make({ mkfifo: tools.mkfifo, directory: tempDir, world, signal });
      const deadlineMs = decodeDeadlineMs(request);
      const { signals, outcome } = await readWhile(
        worker,
        fifo,
        (workerFailed) =>
          run(tools.ffmpeg, ffmpegArgs(request, filters, fifo.path), {
            world,
            signal: AbortSignal.any([signal, workerFailed]),
            deadlineMs,
            maxStdoutBytes: 0,
            maxStderrBytes: DECODE_ERROR_BYTES,
            limits: this.#limits(deadlineMs / 1000 * processors()),
          }),
      );
      refuseFailure(outcome, signals.count, { deadlineMs, isEndless: isEndless(request) });
      return signals;
    } finally {
      this.#pool.giveBack(worker);
    }
  }

  #limits(cpuSeconds: number): ResourceLimits {
    return {
      prlimit: this.#options.tools.prlimit,
      cpuSeconds,
      addressSpaceBytes: ADDRESS_SPACE_BYTES + processors() * ADDRESS_SPACE_BYTES_PER_PROCESSOR,
    };
  }

  /** Runs `work` so that closing the decoder stops it and waits for it. */
  async #track<T>(signal: AbortSignal, work: (either: AbortSignal) => Promise<T>): Promise<T> {
    const running = work(AbortSignal.any([signal, this.#closing.signal]));
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }
}

/** Probes are short and wait for the disk more than they compute. */
const PROBES_PER_DECODE = 2;
/** Cameras at 25 frames a second that a processor decodes with ease. */
const STREAMS_PER_DECODE = 4;
/** Callers that may wait for a decode; each is an open request, and the service bounds those before. */
const WAITERS_MAX = 4096;
/** Twice the wall-clock limit: ffprobe decodes the first frames on all processors. */
const PROBE_CPU_SECONDS = 20;
const DECODE_ERROR_BYTES = 8 << 10;
/** What a pipe holds on Linux. */
const PIPE_BYTES = 64 * 1024;

/** Decoding 4K takes 0.7 GiB on two processors; each further one reserves a stack and an allocation arena. */
const ADDRESS_SPACE_BYTES = 8 * 2 ** 30;
const ADDRESS_SPACE_BYTES_PER_PROCESSOR = 256 * 2 ** 20;

/** Longest decode: so many times the length of the medium, plus a start, within bounds; for slow and busy machines. */
const DEADLINE_PER_MEDIA = 10;
const DEADLINE_START_MS = 60_000;
const DEADLINE_MAX_MS = 1_800_000;
/** A caller waits for the answer all the while. */
const ENDLESS_DEADLINE_MAX_MS = 600_000;
/** For media of unknown length: the bytes of one millisecond of 0.8 Mbit/s video. */
const BYTES_PER_MS = 100;

function decodeDeadlineMs(request: DecodeRequest): number {
  const { info, maxFrames, plan } = request;
  if (isEndless(request)) {
    return Math.min(
      ENDLESS_DEADLINE_MAX_MS,
      DEADLINE_START_MS + Math.round(maxFrames / plan.sampleFps * 1000),
    );
  }
  const mediaMs = info.durationMs ?? info.sizeBytes / BYTES_PER_MS;
  return Math.min(DEADLINE_MAX_MS, DEADLINE_START_MS + Math.round(mediaMs * DEADLINE_PER_MEDIA));
}

/**
 * A camera or a live playlist: it gives frames at the pace of the clock and does not end. Who asks for frames of one gets
 * `maxFrames`, or as many as have come by the deadline.
 */
function isEndless({ path, info }: DecodeRequest): boolean {
  return typeof path !== "string" && path.path === null && info.durationMs === null;
}

function processors(): number {
  return navigator.hardwareConcurrency;
}

/** Lets `worker` read the pipe while `write` writes into it; both have ended when this returns or throws. */
async function readWhile(
  worker: DecodeWorker,
  fifo: Fifo,
  write: (workerFailed: AbortSignal) => Promise<Outcome>,
): Promise<{ signals: SignalColumns; outcome: Outcome }> {
  const reading = worker.read({ fifoPath: fifo.path });
  // Before the worker has the pipe open, closing the guard would leave it waiting for a writer for ever.
  await reading.opened;
  const workerFailed = new AbortController();
  reading.finished.catch((error) => workerFailed.abort(error));
  try {
    const outcome = await write(workerFailed.signal);
    fifo.closeGuard();
    return { signals: await reading.finished, outcome };
  } finally {
    fifo.closeGuard();
    await reading.finished.catch(() => {/* already reported through `workerFailed` */});
  }
}

/** Some frames and an unhappy end are a damaged file; no frame, or our own limits, are a refusal. */
function refuseFailure(
  outcome: Outcome,
  frames: number,
  { deadlineMs, isEndless }: { deadlineMs: number; isEndless: boolean },
): void {
  if (outcome.end === "out_of_time" && isEndless && frames > 0) return;
  if (outcome.end === "out_of_time") throw mediaFault(`decoding took longer than ${deadlineMs / 1000} s`);
  if (outcome.end === "killed") throw mediaFault("the decoder broke down on it");
  if (frames > 0) return;
  throw mediaFault(outcome.stderr === "" ? "no frame of it can be decoded" : reasonIn(outcome.stderr));
}

function ffmpegArgs(request: DecodeRequest, filters: string, fifoPath: string): string[] {
  const { path, info, plan, maxFrames } = request;
  const input = typeof path === "string" ? fileInput(path) : path;
  return [
    ...["-nostdin", "-v", "error", ...input.args, "-i", input.url],
    ...["-map", `0:${info.video!.streamIndex}`, "-an", "-sn", "-dn"],
    ...["-map_metadata", "-1", "-map_chapters", "-1", "-frames:v", String(maxFrames)],
    // The planes are too small to share among threads: two threads cost a fifth more CPU in all at 720p.
    ...["-filter_threads", "1", "-vf", filters],
    // Every frame as it is; in the source's own time base, so that its time is exact.
    ...["-fps_mode", "passthrough", ...(takesEveryFrame(plan) ? ["-enc_time_base", "-1"] : [])],
    // One thread, as the raw "encoder" only copies, and writes as large as the pipe, not one a frame: together they save
    // 5 % of a decode's wall at 1080p. Without an index ffmpeg's memory does not grow with the number of frames.
    ...["-c:v", "rawvideo", "-threads", "1", "-f", "nut", "-write_index", "0", "-flush_packets", "0"],
    ...["-blocksize", String(PIPE_BYTES), "-y", `file:${fifoPath}`],
  ];
}

/**
 * Drops frames first, then pixels outside the crop; the scaler then reads no other plane than luma. Saying that both
 * sides are full range keeps it from stretching what was written as 16..235: the samples stay as they are (D6).
 */
function filterChain(info: MediaInfo, plan: SamplingPlan, coordinates: ImageCoordinates): string {
  const video = info.video!;
  const { width, height, x, y } = coordinates.resolved_region;
  const isWhole = width === video.width && height === video.height;
  return [
    ...(takesEveryFrame(plan) ? [] : [steadyRate(info, plan.sampleFps)]),
    ...(HAS_LUMA_PLANE.test(video.pixelFormat) ? [] : ["format=gray"]),
    // Exact where chroma is coarser than the crop: chroma is not looked at.
    ...(isWhole ? [] : [`crop=${width}:${height}:${x}:${y}:exact=1`]),
    `scale=${PLANE_WIDTH}:${PLANE_HEIGHT}:flags=area:in_range=full:out_range=full`,
    "format=gray",
  ].join(",");
}

/**
 * Contract 2.3. The end of the medium is rounded to a whole number of samples, which would be none for a medium below
 * half a sampling period: two frames at 23 frames a second, sampled at 2, last 0.17 periods.
 */
function steadyRate(info: MediaInfo, sampleFps: number): string {
  const isShort = info.durationMs !== null && info.durationMs * sampleFps < 1000;
  return `fps=${sampleFps.toFixed(3)}${isShort ? ":eof_action=pass" : ""}`;
}

/** Pixel formats from which luma can be taken as it is; the others (RGB, palettes) have to be converted. */
const HAS_LUMA_PLANE = /^(yuv|yuyv|uyvy|yvyu|nv\d|p[024]1\d|gray(?!f)|ya\d)/;
