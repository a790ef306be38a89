/** Cuts bounded windows out of recorded media on demand: MP4 clips and WAV sound. See
 * docs/reason.md#media-windows.
 */

import { join } from "node:path";
import { PermitQueue } from "../../sharing/permit_queue.ts";
import type { RunningWork } from "../../sharing/running_work.ts";
import type { Metrics } from "../../contract/metrics.ts";
import { Refusal } from "../../contract/refusal.ts";
import type { World } from "../../base/world.ts";
import type { ImageCoordinates } from "../../model/frames/coordinates.ts";
import { LIMITS } from "../../contract/limits.ts";
import { SAMPLE_BYTES, SIDECAR_SAMPLE_RATE_HZ, WAV_HEADER_BYTES, wavOf } from "../../model/sidecars/wav.ts";
import { clockFalls } from "../containers/clock_falls.ts";
import { boxesIn, bytesOf } from "../containers/mp4_boxes.ts";
import { readTracks } from "../containers/mp4_samples.ts";
import { firstFrameMs } from "./first_frame.ts";
import type { MediaInput } from "../input.ts";
import { reasonIn } from "../media_fault.ts";
import { mediaSizeOf } from "../media_memory.ts";
import type { MemoryBudget } from "../memory_budget.ts";
import type { MediaInfo } from "../media_info.ts";
import type { Outcome } from "../process.ts";
import type { JobOf } from "../jobs/jobs.ts";
import { sampleCount } from "../jobs/wav.ts";
import { type JobOptions, niced, type ToolRunner } from "../jobs/runner.ts";
import {
  copyRange,
  isCopyable,
  isListed,
  isRange,
  type PacketList,
  packetList,
  partFor,
} from "./window_copy.ts";
import { type CountedFrames, type SeekPlan, seekPlan, type SourceWindow } from "../jobs/parts/window_seek.ts";

export interface ExtractorOptions {
  readonly runner: ToolRunner;
  /** Folder for the one file that ffmpeg writes for each clip; empty again after each. */
  readonly tempDir: string;
  readonly world: World;
  /** Extractions at the same time, at least 1. */
  readonly maxConcurrent: number;
  /** Whether the service has several principals; false unless given. */
  readonly isShared?: boolean;
  /** Lowers the priority of work that a principal has on top of other work; all work is equal without it. */
  readonly work?: RunningWork;
  /** Memory of all work on media together; without it all is taken as it comes. */
  readonly memory?: MemoryBudget;
  readonly metrics?: Metrics;
  /** Most bytes of a clip, for tests; default LIMITS.localAudio.clipBytesMax. */
  readonly clipBytesMax?: number;
}

/** What a decode knows of a film's times. */
export interface FilmClock {
  /** Whether all frames so far are in the source at the times that they have. */
  readonly isSteady: boolean;
  /** When the film ends; null while that is not known. */
  readonly endMs: number | null;
  /** Time up to which frames are known, milliseconds. */
  readonly knownMs: number;
  /** The frames from the one at a time up to another time; null where none begins there. */
  framesIn(startMs: number, endMs: number): CountedFrames | null;
}

export interface WindowRequest {
  /** For whom the window is cut; see `PermitQueue`. */
  readonly principalKey?: string | undefined;
  readonly input: MediaInput;
  /**
   * What `Decoder.probe` gave. If all windows of a source pass the same object, its first frame is searched
   * only once.
   */
  readonly info: MediaInfo;
  /**
   * Start of the window in milliseconds from the first video frame, like the times of frame signals; rounded
   * or exact.
   */
  readonly startMs: number;
  /** What is known of the times of its frames; absent where they are those of the source. */
  readonly clock?: FilmClock;
  /**
   * Length of the window in milliseconds, above 0; of a clip, up to LIMITS.mediaWindow.lengthMs.maximum. The
   * window is cut off at the end of the source.
   */
  readonly durationMs: number;
  readonly signal: AbortSignal;
}

export interface ClipRequest extends WindowRequest {
  /** The region of the frame that the clip shows. */
  readonly coordinates: ImageCoordinates;
  readonly withAudio: boolean;
}

export interface Clip {
  /** An MP4 file of at most LIMITS.localAudio.clipBytesMax, with its index at the start. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Milliseconds that the work took, without the wait for a permit. */
  readonly extractionMs: number;
  /** Number of the source's audio streams; null in a clip without sound. */
  readonly audioStreams: number | null;
  /** Channels of the first audio stream; null in a clip without sound. */
  readonly audioChannels: number | null;
  /**
   * Whether the mono track of the clip was mixed from several streams or channels; null in a clip without
   * sound.
   */
  readonly audioMixed: boolean | null;
}

export interface WavWindow {
  /** A WAV file: mono, 16 kHz, 16 bits, at most LIMITS.localAudio.wavBytesMax. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Length of the samples, milliseconds. */
  readonly durationMs: number;
  /** Milliseconds that the work took, without the wait for a permit. */
  readonly extractionMs: number;
}

/** Why a window could not be cut out, reported as `media_extraction_failed:<reason>`. */
export type ExtractionFailure =
  /** The source is damaged there, or contains what ffmpeg cannot decode. */
  | "ffmpeg_failed"
  | "out_of_time"
  /** More bytes or a longer duration than a clip or WAV may have. */
  | "too_large"
  | "no_video"
  | "no_audio"
  /** The window is after the end of the source, or has no length. */
  | "empty"
  /** The source is a camera or a live playlist, which cannot be read twice. */
  | "not_seekable"
  /** Too many callers wait already, or the service is closing. */
  | "saturated";

/** Says that a window could not be cut out. The message is for logs: it is short and names no path. */
export class ExtractionFailed extends Error {
  override readonly name = "ExtractionFailed";

  constructor(readonly reason: ExtractionFailure, why: string) {
    super(`Cannot cut a window out of the source as ${why}`);
  }
}

/**
 * ```
 *   clip:  [gate] → ffmpeg ─MP4→ file in tempDir ─read, removed→ bytes
 *   wav:   [gate] → ffmpeg ─samples→ pipe ─────────────────────→ bytes
 * ```
 *
 * An MP4 with its index at the start cannot be written into a pipe, so ffmpeg writes a file. The kernel
 * limits its length, and it is removed however the work ends. Both methods reject with {@link
 * ExtractionFailed}, or with the reason of the signal.
 */
export class Extractor implements AsyncDisposable {
  readonly #options: ExtractorOptions;
  readonly #permits: PermitQueue;
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<unknown>>();
  /** The time of the first frame of a source, for as long as the result of its probe is in use. */
  readonly #firstFrames = new WeakMap<MediaInfo, number>();
  /** Whether the clock of a source falls. */
  readonly #falls = new WeakMap<MediaInfo, Promise<boolean>>();
  /** The part of a source that was listed last. */
  readonly #packetLists = new WeakMap<MediaInfo, PacketList>();

  constructor(options: ExtractorOptions) {
    this.#options = options;
    this.#permits = new PermitQueue({
      limit: options.maxConcurrent,
      waiterLimit: WAITERS_MAX,
      what: "extractions",
      refusal: "provider_saturated",
      isShared: options.isShared ?? false,
    });
  }

  /**
   * Cuts out a clip: H.264 in 4:2:0 and, with `withAudio`, all audio streams mixed into one mono AAC track of
   * the same length. Without sound and crop, the video of a local file is copied if a copy is exactly the
   * window; see `#copied`.
   */
  async clip(request: ClipRequest): Promise<Clip> {
    const { metrics } = this.#options;
    try {
      const clip = await this.#admitted(request, (admitted) => this.#clip(admitted));
      metrics?.add("service_pipeline_media_clips_extracted_total");
      metrics?.add("service_pipeline_media_clip_bytes_total", clip.bytes.length);
      metrics?.observe("service_pipeline_media_extraction_latency_ms", clip.extractionMs);
      return clip;
    } catch (error) {
      if (!request.signal.aborted) metrics?.add("service_pipeline_media_clip_extraction_failures_total");
      throw error;
    }
  }

  /**
   * Cuts out the sound of a window: all audio streams, mixed, for local audio analysis. Gaps are filled with
   * silence.
   */
  async wav(request: WindowRequest): Promise<WavWindow> {
    const { metrics } = this.#options;
    try {
      const wav = await this.#admitted(request, (admitted) => this.#wav(admitted));
      metrics?.add("service_pipeline_local_audio_wav_bytes_total", wav.bytes.length);
      metrics?.observe("service_pipeline_local_audio_wav_extraction_latency_ms", wav.extractionMs);
      return wav;
    } catch (error) {
      if (!request.signal.aborted) {
        const isSaturated = error instanceof ExtractionFailed && error.reason === "saturated";
        const reason = isSaturated ? "overloaded" : "decode";
        metrics?.add("service_pipeline_local_audio_analysis_failures_total");
        metrics?.add("service_pipeline_local_audio_failures_total", { reason });
      }
      throw error;
    }
  }

  /** Stops what is running, waits for it, and refuses later calls. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new ExtractionFailed("saturated", "the service is closing"));
    this.#permits.close();
    await Promise.allSettled(this.#running);
  }

  /** Runs `work` with a permit, so that closing stops it and waits for it. */
  async #admitted<R extends WindowRequest, T extends object>(
    request: R,
    work: (request: Admitted<R>) => Promise<T>,
  ): Promise<T & { extractionMs: number }> {
    const signal = AbortSignal.any([request.signal, this.#closing.signal]);
    const running = (async () => {
      using _place = await this.#place(request.principalKey, signal);
      using _memory = await this.#memory(request, signal);
      using piece = this.#options.work?.begin(request.principalKey);
      const runner = niced(this.#options.runner, piece?.nice ?? 0);
      const startedMs = this.#options.world.monotonicMs();
      const done = await work({ ...request, signal, runner });
      return { ...done, extractionMs: this.#options.world.monotonicMs() - startedMs };
    })();
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  async #place(principalKey: string | undefined, signal: AbortSignal): Promise<Disposable> {
    try {
      return await this.#permits.acquire({ principalKey, signal });
    } catch (error) {
      if (error instanceof Refusal) throw new ExtractionFailed("saturated", error.message);
      throw error;
    }
  }

  async #memory({ principalKey, info }: WindowRequest, signal: AbortSignal): Promise<Disposable | undefined> {
    try {
      const size = mediaSizeOf(info);
      return await this.#options.memory?.reserve({ principalKey, signal, work: "window", size });
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      throw new ExtractionFailed(error.status === 422 ? "too_large" : "saturated", error.message);
    }
  }

  async #clip(request: Admitted<ClipRequest>): Promise<Omit<Clip, "extractionMs">> {
    const { info, withAudio, durationMs } = request;
    const { maximum } = LIMITS.mediaWindow.lengthMs;
    if (durationMs > maximum) {
      throw new ExtractionFailed("too_large", `a clip is at most ${maximum} ms long: got ${durationMs}`);
    }
    if (!info.video) throw new ExtractionFailed("no_video", "it has no video stream");
    if (withAudio && info.audioStreams === 0) {
      throw new ExtractionFailed("no_audio", "it has no audio stream");
    }
    const window = await this.#window(request);
    if (!withAudio) {
      const bytes = await this.#copied(request, window) ?? await this.#encoded(request, window);
      return { bytes, audioStreams: null, audioChannels: null, audioMixed: null };
    }
    return {
      bytes: await this.#encoded(request, window),
      audioStreams: info.audioStreams,
      audioChannels: info.audioChannels,
      audioMixed: info.audioStreams > 1 || info.audioChannels > 1,
    };
  }

  async #wav(request: Admitted<WindowRequest>): Promise<Omit<WavWindow, "extractionMs">> {
    const { input, info } = request;
    if (info.audioStreams === 0) throw new ExtractionFailed("no_audio", "it has no audio stream");
    const window = await this.#window(request);
    const samples = sampleCount(window.durationMs, SIDECAR_SAMPLE_RATE_HZ);
    const bytes = samples * SAMPLE_BYTES + WAV_HEADER_BYTES;
    if (bytes > LIMITS.localAudio.wavBytesMax) throw tooLarge("the WAV", LIMITS.localAudio.wavBytesMax);
    const seek = seekPlan(window, input, info);
    const deadlineMs = deadlineOf(window, seek);
    const outcome = await request.runner.run(
      { kind: "wav", input, info, durationMs: window.durationMs, seek, deadlineMs },
      this.#jobOptions(deadlineMs, request.signal, samples * SAMPLE_BYTES),
    );
    refuseFailure(outcome);
    const sound = new Int16Array(outcome.stdout.slice().buffer);
    if (sound.length === 0) throw new ExtractionFailed("ffmpeg_failed", "no sound of it can be decoded");
    return {
      bytes: wavOf(sound, SIDECAR_SAMPLE_RATE_HZ),
      durationMs: sound.length / SIDECAR_SAMPLE_RATE_HZ * 1000,
    };
  }

  /** The window, cut off at the end of the source. */
  async #window(request: Admitted<WindowRequest>): Promise<SourceWindow> {
    const { input, info, startMs, durationMs, clock } = request;
    if (input.path === null && info.durationMs === null) {
      throw new ExtractionFailed("not_seekable", "it has no end and no past");
    }
    if (!(durationMs > 0 && startMs >= 0)) {
      throw new ExtractionFailed(
        "empty",
        `a window needs a start and a length: got ${startMs}, ${durationMs}`,
      );
    }
    const firstFrameMs = await this.#firstFrameMs(request);
    const leftMs = leftOf(request, firstFrameMs);
    if (leftMs <= 0) throw new ExtractionFailed("empty", `it ends before ${startMs} ms`);
    const window = { startMs, durationMs: Math.min(durationMs, leftMs), firstFrameMs };
    if (!clock || clock.isSteady) {
      return { ...window, counted: null, isAmbiguous: await this.#isAmbiguous(request) };
    }
    const counted = clock.framesIn(startMs, startMs + window.durationMs);
    if (counted === null) throw new ExtractionFailed("empty", `no frame of it begins at ${startMs} ms`);
    return { ...window, counted, isAmbiguous: true };
  }

  /**
   * Whether a time may be that of two moments: where the clock of the film is not known to its end, its file
   * tells.
   */
  async #isAmbiguous({ input, info, clock }: Admitted<WindowRequest>): Promise<boolean> {
    if (input.path === null || (clock && clock.endMs !== null)) return false;
    let falls = this.#falls.get(info);
    if (falls === undefined) {
      falls = clockFalls(input.path, info.formatName, info.video?.streamIndex ?? 0);
      this.#falls.set(info, falls);
    }
    return await falls;
  }

  /**
   * Time of the first frame on the container's clock; 0 for a source without video, because its times count
   * from its start.
   */
  async #firstFrameMs({ input, info, signal, runner }: Admitted<WindowRequest>): Promise<number> {
    if (!info.video) return 0;
    const known = this.#firstFrames.get(info);
    if (known !== undefined) return known;
    const options = this.#jobOptions(DEADLINE_START_MS, signal);
    const found = await firstFrameMs(input, info, options, runner);
    if (typeof found !== "number") {
      refuseFailure(found);
      throw new ExtractionFailed("ffmpeg_failed", "no frame of it can be decoded");
    }
    this.#firstFrames.set(info, found);
    return found;
  }

  async #encoded(request: Admitted<ClipRequest>, window: SourceWindow): Promise<Uint8Array<ArrayBuffer>> {
    const { input, info, coordinates, withAudio } = request;
    const seek = seekPlan(window, input, info);
    const { durationMs } = window;
    const deadlineMs = deadlineOf(window, seek);
    const { bytes } = await this.#written(request, (file) => ({
      ...{ kind: "encode_clip", input, info, coordinates, withAudio, seek, durationMs, deadlineMs },
      ...{ file, clipBytesMax: this.#clipBytesMax },
    }));
    if (!hasPictures(bytes)) throw new ExtractionFailed("empty", "no frame of it lies in the window");
    return bytes;
  }

  /**
   * A clip with the packets of the window without encoding, or null. They are listed while they are copied,
   * and the copy is used only if they are the expected ones; otherwise the caller encodes.
   */
  async #copied(
    request: Admitted<ClipRequest>,
    window: SourceWindow,
  ): Promise<Uint8Array<ArrayBuffer> | null> {
    const { input, info, coordinates } = request;
    if (window.counted || window.isAmbiguous || !isCopyable(input, info, coordinates)) return null;
    const range = copyRange(window, await this.#packetList(request, window));
    if (range === null) return null;
    const { seekMs, packets } = range;
    const deadlineMs = deadlineOf(window, { seekMs, beginMs: seekMs, counted: null });
    try {
      const { bytes, stdout } = await this.#written(
        request,
        (file) => ({
          ...{ kind: "copy_clip", input, info, range: { seekMs, packets }, deadlineMs, file },
          clipBytesMax: this.#clipBytesMax,
        }),
        PACKET_LIST_BYTES,
      );
      return isRange(new TextDecoder().decode(stdout), range, info) ? bytes : null;
    } catch (error) {
      // Too large, or not allowed in an MP4: encoding may still succeed.
      if (error instanceof ExtractionFailed && error.reason !== "out_of_time") return null;
      throw error;
    }
  }

  /**
   * The list of packets around a window. A list that fails is an empty one, so that its windows are encoded
   * and it is not tried again for each.
   */
  async #packetList(
    { input, info, signal, runner }: Admitted<ClipRequest>,
    window: SourceWindow,
  ): Promise<PacketList> {
    const known = this.#packetLists.get(info);
    if (known && isListed(window, known)) return known;
    const part = partFor(window, info);
    const deadlineMs = DEADLINE_START_MS;
    const outcome = await runner.run(
      {
        ...{ kind: "list_packets", input, streamIndex: info.video!.streamIndex, deadlineMs },
        ...(info.ignoresEdits && { ignoresEdits: info.ignoresEdits }),
        size: mediaSizeOf(info),
        part: { fromMs: part.fromMs + (info.startMs ?? 0), toMs: part.toMs + (info.startMs ?? 0) },
      },
      this.#jobOptions(deadlineMs, signal, PACKET_LIST_BYTES),
    );
    const isGood = outcome.end === "exited" && outcome.code === 0;
    const list = packetList(isGood ? new TextDecoder().decode(outcome.stdout) : "", part, info);
    this.#packetLists.set(info, list);
    return list;
  }

  /** Runs a job that writes into a file of its own; gives the bytes of the file and of stdout. */
  async #written(
    { signal, runner }: Admitted<ClipRequest>,
    jobOf: (file: string) => JobOf<"encode_clip" | "copy_clip">,
    maxStdoutBytes = 0,
  ): Promise<{ bytes: Uint8Array<ArrayBuffer>; stdout: Uint8Array }> {
    const { world, tempDir } = this.#options;
    await using file = new TempFile(join(tempDir, `clip-${world.randomBytes(12).toHex()}.mp4`));
    const job = jobOf(file.path);
    const outcome = await runner.run(job, this.#jobOptions(job.deadlineMs, signal, maxStdoutBytes));
    if (outcome.end === "out_of_space") throw tooLarge("the clip", this.#clipBytesMax);
    refuseFailure(outcome);
    const { size } = await Deno.stat(file.path);
    if (size > this.#clipBytesMax) throw tooLarge("the clip", this.#clipBytesMax);
    signal.throwIfAborted();
    return { bytes: await Deno.readFile(file.path), stdout: outcome.stdout };
  }

  get #clipBytesMax(): number {
    return this.#options.clipBytesMax ?? LIMITS.localAudio.clipBytesMax;
  }

  #jobOptions(deadlineMs: number, signal: AbortSignal, maxStdoutBytes = 0): JobOptions {
    const { world } = this.#options;
    return { world, signal, deadlineMs, maxStdoutBytes, maxStderrBytes: ERROR_BYTES };
  }
}

/**
 * How much of the source is behind the start of a window: by its container, and by its frames where these say
 * something else.
 */
function leftOf({ info, clock, startMs, durationMs }: WindowRequest, firstFrameMs: number): number {
  if (clock && clock.endMs !== null && !clock.isSteady) return clock.endMs - startMs;
  if (info.durationMs === null || clock?.isSteady === false) return durationMs;
  return Math.max(info.durationMs - firstFrameMs, clock?.knownMs ?? 0) - startMs;
}

/** A request that has its permit, and the runner with its priority. */
type Admitted<R extends WindowRequest> = R & { readonly runner: ToolRunner };

function deadlineOf(window: SourceWindow, seek: SeekPlan): number {
  const readMs = seek.beginMs - seek.seekMs + window.durationMs;
  return Math.min(DEADLINE_MAX_MS, DEADLINE_START_MS + Math.round(readMs * DEADLINE_PER_MEDIA));
}

/**
 * Most callers that may wait for a permit. Each is a chunk of an open request, and the service bounds the
 * number of those earlier.
 */
const WAITERS_MAX = 4096;
/**
 * Longest extraction: the length of the media that is read times this, plus a start. It is long for the sake
 * of slow and busy machines.
 */
const DEADLINE_PER_MEDIA = 10;
const DEADLINE_START_MS = 60_000;
const DEADLINE_MAX_MS = 1_800_000;
const ERROR_BYTES = 8 << 10;
/** Most bytes of a list of packets: two minutes at 120 frames a second, 72 bytes a line. */
const PACKET_LIST_BYTES = 1 << 20;

function refuseFailure(outcome: Outcome): void {
  if (outcome.end === "out_of_time" || outcome.end === "out_of_cpu") {
    throw new ExtractionFailed("out_of_time", "it took too long");
  }
  if (outcome.end === "out_of_space") throw new ExtractionFailed("too_large", "more came than was asked for");
  if (outcome.end === "killed") throw new ExtractionFailed("ffmpeg_failed", "ffmpeg broke down on it");
  if (outcome.code !== 0) throw new ExtractionFailed("ffmpeg_failed", reasonIn(outcome.stderr));
}

/** Whether a clip shows anything: ffmpeg makes one without frames, too. */
function hasPictures(mp4: Uint8Array): boolean {
  const moov = boxesIn(mp4).find(({ type }) => type === "moov");
  return moov !== undefined &&
    readTracks(bytesOf(mp4, moov)).some(({ isVideo, sizes }) => isVideo && sizes.length > 0);
}

function tooLarge(what: string, bytesMax: number): ExtractionFailed {
  return new ExtractionFailed("too_large", `${what} would have more than ${bytesMax} bytes`);
}

/** A path at which ffmpeg may write a file, which is removed afterwards. */
class TempFile implements AsyncDisposable {
  constructor(readonly path: string) {}

  async [Symbol.asyncDispose](): Promise<void> {
    try {
      await Deno.remove(this.path);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
  }
}
