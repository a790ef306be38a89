/** Decodes recorded media into signals: ffmpeg writes reduced luma planes into a pipe, a media Worker reads them. */

import { Gate } from "../../base/gate.ts";
import type { Tools } from "../../base/program_paths.ts";
import type { World } from "../../base/world.ts";
import {
  croppedFrame,
  fullFrame,
  type ImageCoordinates,
  type NormalizedRegion,
} from "../../model/frames/coordinates.ts";
import type { SamplingPlan } from "../../model/frames/sampling.ts";
import type { SignalColumns } from "../../model/frames/signals.ts";
import { type DecodeSubject, inputArgs, planeOutput } from "./decode_args.ts";
import {
  DECODE_ERROR_BYTES,
  decodeCpuSeconds,
  decodeDeadlineMs,
  type DecodeScope,
  isEndless,
  processors,
  refuseFailure,
} from "./decode_bounds.ts";
import { type DecodeWorker, DecodeWorkerPool } from "./worker_pool.ts";
import { Fifo } from "../fifo.ts";
import { mediaFault } from "../media_fault.ts";
import { FrameStream, type FrameStreamRequest } from "./frame_stream.ts";
import type { MediaInput } from "../input.ts";
import { type MediaInfo, probeMedia } from "../probe.ts";
import { type Outcome, type ResourceLimits, run } from "../process.ts";

export interface DecoderOptions {
  readonly tools: Tools;
  /** For named pipes; empty again after each decode. */
  readonly tempDir: string;
  readonly world: World;
  /** Decodes at once, at least 1; more than there are processors only makes each slower. */
  readonly maxConcurrent: number;
}

export interface DecodeRequest {
  readonly input: MediaInput;
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
 *   streamFrames:   the same chunk by chunk, with JPEGs of chosen frames; ffmpeg waits for the consumer
 * ```
 *
 * Faults of the medium are 422 `source_uri`. A file that is damaged in places gives the frames that can be decoded.
 */
export class Decoder implements AsyncDisposable {
  readonly #options: DecoderOptions;
  readonly #decodes: Gate;
  readonly #probes: Gate;
  /** Endless sources and streams go at the pace of others: they hold a place for minutes and use little of a processor. */
  readonly #streams: Gate;
  readonly #pool: DecodeWorkerPool;
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<unknown>>();

  private constructor(options: DecoderOptions) {
    this.#options = options;
    this.#pool = new DecodeWorkerPool([options.tempDir]);
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
  probe(input: MediaInput, signal: AbortSignal, deadlineMs?: number): Promise<MediaInfo> {
    return this.#track(signal, async (either) => {
      const { tools, world } = this.#options;
      using _place = await this.#probes.acquire({ signal: either });
      return await probeMedia(input, {
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
      const signals = await this.#decode({ ...request, coordinates }, signal);
      return {
        signals,
        width: video.width,
        height: video.height,
        pixelFormat: video.pixelFormat,
        coordinates,
      };
    });
  }

  /**
   * Decodes as its chunks are asked for; the stream holds its place until its end or until it is disposed. A stream whose
   * consumer is slow uses little of a processor, so there are places for four times as many, and none is taken from
   * `decodeSignals`. Refuses as `decodeSignals` does; what ffmpeg has to say comes from `next`.
   */
  streamFrames(request: FrameStreamRequest): Promise<FrameStream> {
    return this.#track(request.signal, async (signal) => {
      const { video } = request.info;
      if (!video) throw mediaFault("it has no video stream");
      const coordinates = request.crop
        ? croppedFrame(video, request.crop)
        : fullFrame(video.width, video.height);
      const place = await this.#streams.acquire({
        signal,
        within: { world: this.#options.world, timeoutMs: STREAM_WAIT_MS },
      });
      try {
        const { tools, tempDir, world } = this.#options;
        const host = { tools, tempDir, world, pool: this.#pool, limits: (cpu: number) => this.#limits(cpu) };
        const stream = await FrameStream.open(host, { ...request, signal }, coordinates);
        this.#running.add(stream.closed);
        stream.closed.then(() => {
          this.#running.delete(stream.closed);
          place.release();
        });
        return stream;
      } catch (error) {
        place.release();
        throw error;
      }
    });
  }

  /** Stops what is running and ends the workers. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("the decoder is closing"));
    // What was just starting may have become a stream.
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
    this.#decodes.close();
    this.#streams.close();
    this.#probes.close();
    this.#pool[Symbol.dispose]();
  }

  async #decode(subject: DecodeSubject & DecodeScope, signal: AbortSignal): Promise<SignalColumns> {
    const { tools, tempDir, world } = this.#options;
    const worker = await this.#pool.take();
    try {
      await using fifo = await Fifo.make({ mkfifo: tools.mkfifo, directory: tempDir, world, signal });
      const deadlineMs = decodeDeadlineMs(subject);
      const args = [
        ...inputArgs(subject),
        ...planeOutput(subject, { maxFrames: subject.maxFrames, fifoPath: fifo.path }),
      ];
      const { signals, outcome } = await readWhile(
        worker,
        fifo,
        (workerFailed) =>
          run(tools.ffmpeg, args, {
            world,
            signal: AbortSignal.any([signal, workerFailed]),
            deadlineMs,
            maxStdoutBytes: 0,
            maxStderrBytes: DECODE_ERROR_BYTES,
            limits: this.#limits(decodeCpuSeconds(subject)),
          }),
      );
      const limit = `decoding took longer than ${deadlineMs / 1000} s`;
      refuseFailure(outcome, signals.count, { isEndless: isEndless(subject), limit });
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
/** Streams wait for their readers, who may wait for a slow model: nobody waits for them without an end. */
const STREAM_WAIT_MS = 30_000;
/** Callers that may wait for a decode; each is an open request, and the service bounds those before. */
const WAITERS_MAX = 4096;
/** Twice the wall-clock limit: ffprobe decodes the first frames on all processors. */
const PROBE_CPU_SECONDS = 20;
/** Decoding 4K takes 0.7 GiB on two processors; each further one reserves a stack and an allocation arena. */
const ADDRESS_SPACE_BYTES = 8 * 2 ** 30;
const ADDRESS_SPACE_BYTES_PER_PROCESSOR = 256 * 2 ** 20;

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
