/** Decodes recorded media into signals: ffmpeg writes reduced frames into a pipe, and a decode Worker reads
 * them.
 */

import { type Permit, PermitQueue } from "../../sharing/permit_queue.ts";
import type { DecodeBackend, HardwareDecoder } from "../../base/program_paths.ts";
import type { RunningWork } from "../../sharing/running_work.ts";
import { inSpan } from "../../base/tracing.ts";
import type { World } from "../../base/world.ts";
import {
  croppedFrame,
  fullFrame,
  type ImageCoordinates,
  type NormalizedRegion,
} from "../../model/frames/coordinates.ts";
import type { DetectedRange } from "../../model/frames/detected_range.ts";
import type { FieldOrder } from "../../model/frames/field_order.ts";
import type { SamplingPlan } from "../../model/frames/sampling.ts";
import type { SourceEnd } from "../../model/frames/ended_early.ts";
import type { SignalColumns } from "../../model/frames/signals.ts";
import { Fifo } from "../jobs/fifo.ts";
import { newReports } from "../frame_reports.ts";
import type { MediaInput } from "../input.ts";
import { mediaFault, reasonIn } from "../media_fault.ts";
import { type MediaSize, mediaSizeOf } from "../media_memory.ts";
import type { MemoryBudget } from "../memory_budget.ts";
import type { MediaInfo, VideoStream } from "../media_info.ts";
import { probeMedia } from "./probe.ts";
import { ProbedFiles } from "./probed_files.ts";
import type { Outcome } from "../process.ts";
import { fileFacts } from "./source.ts";
import { niced, type ToolRunner } from "../jobs/runner.ts";
import type { NeededAbilities, NeededAbility } from "./needed_abilities.ts";
import { type DecodeSubject, subjectOf } from "../jobs/decode.ts";
import { sourceClock } from "../jobs/parts/source_times.ts";
import type { DecodeOrder } from "./decode_worker.ts";
import {
  DECODE_ERROR_BYTES,
  decodeCpuSeconds,
  decodeDeadlineMs,
  type DecodeScope,
  endOf,
  framesToDecode,
  isEndless,
  refuseFailure,
} from "./decode_bounds.ts";
import type { Hardware } from "./hardware.ts";
import { FrameStream, type FrameStreamRequest } from "./frame_stream.ts";
import { type DecodeWorker, DecodeWorkerPool, type ReadRows } from "./worker_pool.ts";

export interface DecoderOptions {
  readonly runner: ToolRunner;
  /** Folder for named pipes; empty again after each decode. */
  readonly tempDir: string;
  readonly world: World;
  /** Decodes at the same time, at least 1; more than there are processors only makes each slower. */
  readonly maxConcurrent: number;
  /** Whether the service has several principals; false unless given. */
  readonly isShared?: boolean;
  /** What decodes sources that have an end, where it can; the CPU alone when absent. */
  readonly hardware?: Hardware;
  /** Lowers the priority of work that a principal has on top of other work; all work is equal without it. */
  readonly work?: RunningWork;
  /** Memory of all work on media together; without it all is taken as it comes. */
  readonly memory?: MemoryBudget;
  /**
   * Refuses (503 `decoder_unusable`) what this machine's ffmpeg cannot do; everything is tried without it.
   */
  readonly trials?: NeededAbilities;
}

export interface ProbeOptions {
  /** For whom the source is probed; see `PermitQueue`. */
  readonly principalKey?: string;
  readonly deadlineMs?: number;
  /** Whether the source is a live one that will be watched, see `ProbeContext`. */
  readonly isWatched?: boolean;
  readonly videoStream?: number | null | undefined;
}

export interface DecodeRequest {
  /** For whom the source is decoded; see `PermitQueue`. */
  readonly principalKey?: string | undefined;
  readonly input: MediaInput;
  readonly info: MediaInfo;
  readonly plan: SamplingPlan;
  /** Most sampled frames; the rest is not decoded. */
  readonly maxFrames: number;
  /** Region to analyse, as fractions of the displayed frame; absent is the whole frame. */
  readonly crop?: NormalizedRegion;
  /** Why a part of the source did not come, asked when all has ended; absent for a file. */
  readonly sourceFault?: () => string | null;
  /** Made by `newProgress`; says how far the decode is. */
  readonly progress?: SharedArrayBuffer;
  readonly signal: AbortSignal;
}

export interface DecodedSignals {
  /**
   * Signals of the rows, at least one. Times are exact, in milliseconds from the first frame, not rounded.
   */
  readonly signals: SignalColumns;
  /** What the detectors found, sorted by start. */
  readonly ranges: readonly DetectedRange[];
  /** Times of all cuts, rising, milliseconds from the first frame. */
  readonly cutsMs: readonly number[];
  /** Whether `maxFrames` ended the decode, and not the source. */
  readonly isTruncated: boolean;
  /** Width in pixels as displayed, before the crop. */
  readonly width: number;
  readonly height: number;
  /** Pixel format of the source, by ffmpeg's name. */
  readonly pixelFormat: string;
  /** Order of the fields; absent where the source declares none. */
  readonly fieldOrder?: FieldOrder;
  readonly coordinates: ImageCoordinates;
  readonly decodeBackend: DecodeBackend;
  /** How the source ended; nothing where `isTruncated`. */
  readonly end: SourceEnd;
}

/**
 * ```
 *   probe:          ffprobe ─JSON→ MediaInfo
 *   decodeSignals:  [permit queue] → ffmpeg ─NUT→ named pipe ─readSync→ Worker: FrameAnalyser → SignalColumns
 *   streamFrames:   the same in chunks, with JPEGs of chosen frames; ffmpeg waits for the consumer
 * ```
 *
 * Faults of the medium are 422 `source_uri`, those of the machine's ffmpeg 503 `decoder_unusable`. A damaged
 * file gives the frames that can be decoded.
 */
export class Decoder implements AsyncDisposable {
  readonly #options: DecoderOptions;
  readonly #decodes: PermitQueue;
  readonly #probes: PermitQueue;
  /**
   * Permits for probes of cameras and playlists: a silent one waits for nearly as long as a probe may take,
   * and takes no CPU time.
   */
  readonly #streamProbes: PermitQueue;
  /**
   * Permits for endless sources and for streams. These are as fast as their source or consumer: long, but
   * with little CPU time.
   */
  readonly #streams: PermitQueue;
  readonly #pool: DecodeWorkerPool;
  readonly #known: ProbedFiles<MediaInfo>;
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<unknown>>();

  /** Makes a decoder, whose Workers start with the first decode and end some time after the last one. */
  constructor(options: DecoderOptions) {
    this.#options = options;
    this.#pool = new DecodeWorkerPool([options.tempDir], options.world);
    this.#known = new ProbedFiles(options.world);
    const { maxConcurrent, isShared = false } = options;
    const common = { waiterLimit: WAITERS_MAX, refusal: "provider_saturated", isShared } as const;
    this.#decodes = new PermitQueue({ ...common, limit: maxConcurrent, what: "decodes" });
    this.#streams = new PermitQueue({
      ...common,
      limit: maxConcurrent * STREAMS_PER_DECODE,
      what: "streams",
    });
    this.#probes = new PermitQueue({ ...common, limit: maxConcurrent * PROBES_PER_DECODE, what: "probes" });
    this.#streamProbes = new PermitQueue({ ...common, limit: STREAM_PROBES, what: "probes of streams" });
  }

  /**
   * What the input contains; refuses what is no media container. A file that has not changed is looked into
   * once.
   */
  probe(
    input: MediaInput,
    signal: AbortSignal,
    { principalKey, deadlineMs, isWatched = false, videoStream }: ProbeOptions = {},
  ): Promise<MediaInfo> {
    return this.#track(signal, async (either) => {
      const { runner, world, work, trials } = this.#options;
      await trials?.require("probe");
      const queue = input.path === null ? this.#streamProbes : this.#probes;
      using _place = await queue.acquire({ principalKey, signal: either });
      const isStream = input.path === null;
      using _memory = await this.#options.memory?.reserve({
        ...{ principalKey, signal: either },
        ...{ work: isStream ? "stream_probe" : "probe", size: isStream ? null : await fileSize(input.path) },
      });
      using piece = work?.begin(principalKey);
      return await probeMedia(input, {
        runner: niced(runner, piece?.nice ?? 0),
        world,
        signal: either,
        known: this.#known,
        isWatched,
        ...(videoStream != null && { videoStream }),
        ...(deadlineMs !== undefined && { deadlineMs }),
      });
    });
  }

  /** Waits for its turn and decodes. Leaves no process, pipe or file behind, however it ends. */
  decodeSignals(request: DecodeRequest): Promise<DecodedSignals> {
    return inSpan(this.#options.world.tracing, "decode", {}, async (span) => {
      const decoded = await this.#decodeSignals(request);
      span.set({ "service.frames": decoded.signals.count });
      return decoded;
    });
  }

  #decodeSignals(request: DecodeRequest): Promise<DecodedSignals> {
    return this.#track(request.signal, async (signal) => {
      const video = videoOf(request.info);
      const coordinates = request.crop
        ? croppedFrame(video, request.crop)
        : fullFrame(video.width, video.height);
      await this.#require(video.codec, "decode");
      const gate = isEndless(request) ? this.#streams : this.#decodes;
      using _place = await gate.acquire({ principalKey: request.principalKey, signal });
      using _memory = await this.#reserve(request, signal);
      using piece = this.#options.work?.begin(request.principalKey);
      const runner = niced(this.#options.runner, piece?.nice ?? 0);
      const { signals, ranges, cutsMs, hasMore, decodeBackend, end } = await this.#decode(
        runner,
        { ...request, coordinates },
        signal,
      );
      const isTruncated = hasMore || (isEndless(request) && signals.count >= request.maxFrames);
      return {
        signals,
        ranges,
        cutsMs,
        isTruncated,
        width: video.width,
        height: video.height,
        pixelFormat: video.pixelFormat,
        ...(video.fieldOrder && { fieldOrder: video.fieldOrder }),
        coordinates,
        decodeBackend,
        end: isTruncated ? {} : end,
      };
    });
  }

  /**
   * Decodes on demand, chunk by chunk. The stream keeps its permit until its end or until it is disposed. A
   * stream with a slow consumer uses little CPU time, so there are four times as many permits, and they are
   * not those of `decodeSignals`. Refuses as `decodeSignals` does; failures of ffmpeg come from `next`.
   */
  async streamFrames(request: FrameStreamRequest): Promise<FrameStream> {
    const span = this.#options.world.tracing.child("decode");
    try {
      const stream = await this.#streamFrames(request);
      stream.closed.then(() => span[Symbol.dispose]());
      return stream;
    } catch (error) {
      span.failed(error instanceof Error ? error.name : "error");
      span[Symbol.dispose]();
      throw error;
    }
  }

  #streamFrames(request: FrameStreamRequest): Promise<FrameStream> {
    return this.#track(request.signal, async (signal) => {
      const video = videoOf(request.info);
      const coordinates = request.crop
        ? croppedFrame(video, request.crop)
        : fullFrame(video.width, video.height);
      await this.#require(video.codec, "decode", ...(request.images ? ["jpegs" as const] : []));
      const place = await this.#streams.acquire({
        principalKey: request.principalKey,
        signal,
        within: { world: this.#options.world, timeoutMs: STREAM_WAIT_MS },
      });
      const piece = this.#options.work?.begin(request.principalKey);
      let memory: Permit | undefined;
      const release = () => {
        memory?.release();
        piece?.[Symbol.dispose]();
        place.release();
      };
      try {
        memory = await this.#reserve(request, signal, request.images ? PROGRAMS_WITH_JPEGS : 1);
        const { runner, tempDir, world } = this.#options;
        const host = { runner: niced(runner, piece?.nice ?? 0), tempDir, world, pool: this.#pool };
        const stream = await FrameStream.open(host, { ...request, signal }, coordinates);
        this.#running.add(stream.closed);
        stream.closed.then(() => {
          this.#running.delete(stream.closed);
          release();
        });
        return stream;
      } catch (error) {
        release();
        throw error;
      }
    });
  }

  /** Stops what is running and ends the workers. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new Error("the decoder is closing"));
    // A call that was just starting may have become a stream, so the set is looked at again.
    while (this.#running.size > 0) await Promise.allSettled(this.#running);
    this.#decodes.close();
    this.#streams.close();
    this.#probes.close();
    this.#streamProbes.close();
    this.#pool[Symbol.dispose]();
  }

  /**
   * Decodes a source. What the hardware cannot decode to its end without an error, the CPU decodes from the
   * beginning. A damaged source is decoded by one thread: what several threads make of damage depends on
   * their number, and on which of them is faster.
   */
  async #decode(
    runner: ToolRunner,
    subject: SubjectInScope,
    signal: AbortSignal,
  ): Promise<ReadRows & { decodeBackend: DecodeBackend; end: SourceEnd }> {
    const { hardware } = this.#options;
    const device = isEndless(subject) ? null : await hardware?.for(subject.info) ?? null;
    const sourceFault = () => subject.sourceFault?.() ?? null;
    const decode = (device: HardwareDecoder | null, byOneThread: boolean) =>
      this.#decodeOn({ device, byOneThread }, runner, subject, signal);
    let byOneThread = isEndless(subject);
    if (hardware && device !== null) {
      const read = await decode(device, byOneThread);
      if (read === null) byOneThread = true;
      else {
        const { outcome, ...rows } = read;
        if (
          rows.signals.count > 0 && (outcome === null || (outcome.end === "exited" && outcome.code === 0))
        ) {
          hardware.worked();
          const end = outcome
            ? endOf(subject, { outcome, length: rows.length, sourceFault: sourceFault() })
            : {};
          return { ...rows, decodeBackend: device, end };
        }
        hardware.failed(device, reasonIn(outcome?.stderr ?? ""));
      }
    }
    const { outcome, ...rows } = await decode(null, byOneThread) ?? (await decode(null, true))!;
    const late = `decoding took longer than ${decodeDeadlineMs(subject) / 1000} s`;
    if (outcome) refuseFailure(outcome, rows.signals.count, { scope: subject, late });
    const end = outcome ? endOf(subject, { outcome, length: rows.length, sourceFault: sourceFault() }) : {};
    return { ...rows, decodeBackend: "cpu-ffmpeg", end };
  }

  /**
   * Decodes a source on the given device; null where the decoder told of damage, unless it has one thread.
   * Each attempt has all of the time, as one thread needs more of it.
   */
  async #decodeOn(
    { device, byOneThread }: DecodeOptions,
    runner: ToolRunner,
    subject: SubjectInScope,
    signal: AbortSignal,
  ): Promise<DecodedRows | null> {
    const { tempDir, world } = this.#options;
    const worker = await this.#pool.take();
    try {
      await using fifo = await Fifo.make({ runner, directory: tempDir, world, signal });
      const reports = newReports();
      const job = {
        kind: "decode" as const,
        subject: subjectOf(subject),
        seekS: 0,
        hardware: device,
        byOneThread,
        planes: { pipe: fifo.path, maxFrames: framesToDecode(subject), select: null },
        jpegs: null,
        cpuSeconds: decodeCpuSeconds(subject),
      };
      return await readWhile(
        worker,
        fifo,
        {
          sampling: subject.plan,
          fps: subject.plan.sourceFps,
          clock: sourceClock(subject.info),
          region: subject.coordinates.resolved_region,
          maxRows: subject.maxFrames,
          looksAhead: !isEndless(subject),
          reports,
          stopsAtDamage: !byOneThread,
          progress: subject.progress,
        },
        (workerEnded) =>
          runner.run(job, {
            world,
            signal: AbortSignal.any([signal, workerEnded]),
            deadlineMs: decodeDeadlineMs(subject),
            maxStdoutBytes: 0,
            maxStderrBytes: DECODE_ERROR_BYTES,
            reports,
          }),
      );
    } finally {
      this.#pool.giveBack(worker);
    }
  }

  async #reserve(
    { principalKey, info }: Pick<DecodeRequest, "principalKey" | "info">,
    signal: AbortSignal,
    programs = 1,
  ): Promise<Permit | undefined> {
    const size = mediaSizeOf(info);
    return await this.#options.memory?.reserve({ principalKey, signal, work: "decode", size, programs });
  }

  async #require(codec: string, ...abilities: readonly NeededAbility[]): Promise<void> {
    await this.#options.trials?.require(...abilities);
    await this.#options.trials?.requireDecoder(codec);
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

type SubjectInScope = DecodeSubject & DecodeScope & Pick<DecodeRequest, "progress" | "sourceFault">;

interface DecodeOptions {
  /** The hardware that decodes; null for the CPU. */
  readonly device: HardwareDecoder | null;
  readonly byOneThread: boolean;
}

/** What a decode gave. The outcome is null where the worker had all rows before ffmpeg ended. */
type DecodedRows = ReadRows & { outcome: Outcome | null };

/** Probes at the same time for each decode: they are short and wait for the disk more than they compute. */
const PROBES_PER_DECODE = 2;
/**
 * Probes of streams at the same time: as many silent cameras delay neither another one nor a file. Each has a
 * process of some 50 MB meanwhile.
 */
const STREAM_PROBES = 32;
/** Streams for each decode: as many cameras at 25 frames a second as one processor decodes easily. */
const STREAMS_PER_DECODE = 4;
/**
 * Programs of a stream with JPEGs: one decodes the medium, and one decodes single frames again, see
 * `FrameStream`.
 */
const PROGRAMS_WITH_JPEGS = 2;
/**
 * Longest wait for a permit: the streams that have one wait for their consumers, which may wait for a slow
 * model.
 */
const STREAM_WAIT_MS = 30_000;
/**
 * Callers that may wait for a permit. Each is an open request, and the service bounds the number of those
 * earlier.
 */
const WAITERS_MAX = 4096;

/** Refuses what has no video, or video of which neither the container nor its first packets tell the size. */
function videoOf({ video }: MediaInfo): VideoStream {
  if (!video) throw mediaFault("it has no video stream");
  if (video.width === 0 || video.height === 0) {
    throw mediaFault("nothing in it tells the size of its pictures");
  }
  return video;
}

/** The size of a file of which nothing else is known; null where the file is gone. */
async function fileSize(path: string): Promise<MediaSize | null> {
  const sizeBytes = (await fileFacts(path))?.size;
  return sizeBytes === undefined ? null : { width: 0, height: 0, pixelFormat: "unknown", sizeBytes };
}

/**
 * Lets `worker` read from the pipe while `write` writes into it; both have ended when this returns or throws.
 */
async function readWhile(
  worker: DecodeWorker,
  fifo: Fifo,
  order: Omit<DecodeOrder, "fifoPath">,
  write: (workerEnded: AbortSignal) => Promise<Outcome>,
): Promise<DecodedRows | null> {
  const reading = worker.read({ ...order, fifoPath: fifo.path });
  // If the guard were closed before the worker has opened the pipe, the worker would wait for a writer for
  // ever.
  await reading.opened;
  const workerEnded = new AbortController();
  const hasAllRows = new Error("the worker has all rows");
  reading.finished.then(() => workerEnded.abort(hasAllRows), (error) => workerEnded.abort(error));
  try {
    const outcome = await write(workerEnded.signal).catch((error) => {
      if (error !== hasAllRows) throw error;
      return null;
    });
    fifo.closeGuard();
    const rows = await reading.finished;
    return rows && { ...rows, outcome };
  } finally {
    fifo.closeGuard();
    await reading.finished.catch(() => {/* already reported through `workerEnded` */});
  }
}
