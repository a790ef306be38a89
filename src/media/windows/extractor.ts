/** Cuts bounded windows out of recorded media when they are needed: MP4 clips and WAV sound. Contract 12.3. */

import { join } from "node:path";
import { Gate } from "../../base/gate.ts";
import type { Metrics } from "../../base/metrics.ts";
import type { Tools } from "../../base/program_paths.ts";
import { Refusal } from "../../base/refusal.ts";
import type { World } from "../../base/world.ts";
import type { ImageCoordinates } from "../../model/frames/coordinates.ts";
import { LIMITS } from "../../model/limits.ts";
import { wavOf } from "../../model/sidecars/wav.ts";
import { firstFrameMs } from "./first_frame.ts";
import type { MediaInput } from "../input.ts";
import { reasonIn } from "../media_fault.ts";
import type { MediaInfo } from "../probe.ts";
import { type Outcome, run, type RunOptions } from "../process.ts";
import {
  type Approach,
  approach,
  pictureGraph,
  sampleCount,
  seconds,
  seekArgs,
  soundGraph,
  type SourceWindow,
  START_TOLERANCE_MS,
  TICKS_PER_SECOND,
} from "./window_filters.ts";

export interface ExtractorOptions {
  readonly tools: Tools;
  /** Holds the one file that ffmpeg writes for each clip; empty again after each. */
  readonly tempDir: string;
  readonly world: World;
  /** Extractions at once, at least 1. */
  readonly maxConcurrent: number;
  readonly metrics?: Metrics;
  /** For tests; LIMITS.localAudio.clipBytesMax unless told. */
  readonly clipBytesMax?: number;
}

export interface WindowRequest {
  readonly input: MediaInput;
  /** What `Decoder.probe` said of the input. The same object for all windows of a source lets its first frame be found once. */
  readonly info: MediaInfo;
  /** From the first video frame, as the times of frame signals. May be whole or exact milliseconds. */
  readonly startMs: number;
  /** Above 0; of a clip, up to LIMITS.mediaWindow.lengthMs.maximum. What lies behind the end of the source is left out. */
  readonly durationMs: number;
  readonly signal: AbortSignal;
}

export interface ClipRequest extends WindowRequest {
  /** The region of the picture that the clip shows; sound has no region. */
  readonly coordinates: ImageCoordinates;
  readonly withAudio: boolean;
}

export interface Clip {
  /** An MP4 file of at most LIMITS.localAudio.clipBytesMax, its index first. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Without the wait for a place. */
  readonly extractionMs: number;
  /** Of the source; null in a clip without sound. */
  readonly audioStreams: number | null;
  /** Of the first audio stream; null in a clip without sound. */
  readonly audioChannels: number | null;
  /** Whether the one mono track of the clip was more than one stream or channel; null in a clip without sound. */
  readonly audioMixed: boolean | null;
}

export interface WavWindow {
  /** Mono, 16 kHz, 16 bits, at most LIMITS.localAudio.wavBytesMax. */
  readonly bytes: Uint8Array<ArrayBuffer>;
  /** Of the samples. */
  readonly durationMs: number;
  /** Without the wait for a place. */
  readonly extractionMs: number;
}

/** Ends up as `media_extraction_failed:<reason>`. */
export type ExtractionFailure =
  /** The source is damaged there, or holds what ffmpeg cannot decode. */
  | "ffmpeg_failed"
  | "out_of_time"
  /** Above the bytes or the length that a clip or WAV may have. */
  | "too_large"
  | "no_video"
  | "no_audio"
  /** The window lies behind the end of the source, or has no length. */
  | "empty"
  /** A camera or a live playlist: it cannot be read twice. */
  | "not_seekable"
  /** Too many wait already, or the service is closing. */
  | "saturated";

/** A window that could not be cut. The message is for logs: it is short and names no path. */
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
 * An MP4 whose index comes first cannot be written into a pipe: hence the file, whose length the kernel bounds and which
 * is removed however the work ends. Both methods reject with {@link ExtractionFailed}, or with the reason of the signal.
 */
export class Extractor implements AsyncDisposable {
  readonly #options: ExtractorOptions;
  readonly #gate: Gate;
  readonly #closing = new AbortController();
  readonly #running = new Set<Promise<unknown>>();
  /** Sources whose first frame is known, for as long as somebody holds what their probe said. */
  readonly #firstFrames = new WeakMap<MediaInfo, number>();

  constructor(options: ExtractorOptions) {
    this.#options = options;
    this.#gate = new Gate({
      limit: options.maxConcurrent,
      waiterLimit: WAITERS_MAX,
      what: "extractions",
      refusal: "provider_saturated",
    });
  }

  /**
   * One clip: H.264 in 4:2:0 and, with `withAudio`, all audio streams mixed into one mono AAC track of the same length.
   * Without sound and crop, the video of a local file is copied where a copy is exactly the window; see `#copied`.
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
      if (error instanceof ExtractionFailed) {
        metrics?.add("service_pipeline_media_clip_extraction_failures_total");
      }
      throw error;
    }
  }

  /** All audio streams of a window, mixed, for local analysis. Silence where there is no sound. */
  async wav(request: WindowRequest): Promise<WavWindow> {
    const { metrics } = this.#options;
    const wav = await this.#admitted(request, (admitted) => this.#wav(admitted));
    metrics?.add("service_pipeline_local_audio_wav_bytes_total", wav.bytes.length);
    metrics?.observe("service_pipeline_local_audio_wav_extraction_latency_ms", wav.extractionMs);
    return wav;
  }

  /** Stops what is running, waits for it, and turns away who comes. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new ExtractionFailed("saturated", "the service is closing"));
    this.#gate.close();
    await Promise.allSettled(this.#running);
  }

  /** Runs `work` when there is a place, so that closing stops it and waits for it. */
  async #admitted<R extends WindowRequest, T extends object>(
    request: R,
    work: (request: R) => Promise<T>,
  ): Promise<T & { extractionMs: number }> {
    const signal = AbortSignal.any([request.signal, this.#closing.signal]);
    const running = (async () => {
      using _place = await this.#place(signal);
      const startedMs = this.#options.world.monotonicMs();
      const done = await work({ ...request, signal });
      return { ...done, extractionMs: this.#options.world.monotonicMs() - startedMs };
    })();
    this.#running.add(running);
    try {
      return await running;
    } finally {
      this.#running.delete(running);
    }
  }

  async #place(signal: AbortSignal): Promise<Disposable> {
    try {
      return await this.#gate.acquire({ signal });
    } catch (error) {
      if (error instanceof Refusal) throw new ExtractionFailed("saturated", error.message);
      throw error;
    }
  }

  async #clip(request: ClipRequest): Promise<Omit<Clip, "extractionMs">> {
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

  async #wav(request: WindowRequest): Promise<Omit<WavWindow, "extractionMs">> {
    const { input, info } = request;
    if (info.audioStreams === 0) throw new ExtractionFailed("no_audio", "it has no audio stream");
    const window = await this.#window(request);
    const samples = sampleCount(window.durationMs, WAV_SAMPLE_RATE_HZ);
    const bytes = samples * SAMPLE_BYTES + WAV_HEADER_BYTES;
    if (bytes > LIMITS.localAudio.wavBytesMax) throw tooLarge("the WAV", LIMITS.localAudio.wavBytesMax);
    const way = approach(window, input, info);
    const args = [
      ...inputArgs(input, way),
      ...["-filter_complex", soundGraph(info, way, window.durationMs, WAV_SAMPLE_RATE_HZ), "-map", "[a]"],
      ...["-c:a", "pcm_s16le", "-f", "s16le", "pipe:1"],
    ];
    const outcome = await this.#ffmpeg(args, {
      request,
      window,
      way,
      maxStdoutBytes: samples * SAMPLE_BYTES,
    });
    refuseFailure(outcome);
    const sound = new Int16Array(outcome.stdout.slice().buffer);
    if (sound.length === 0) throw new ExtractionFailed("ffmpeg_failed", "no sound of it can be decoded");
    return {
      bytes: wavOf(sound, WAV_SAMPLE_RATE_HZ),
      durationMs: sound.length / WAV_SAMPLE_RATE_HZ * 1000,
    };
  }

  /** The window, cut off at the end of the source. */
  async #window(request: WindowRequest): Promise<SourceWindow> {
    const { input, info, startMs, durationMs } = request;
    if (input.path === null && info.durationMs === null) {
      throw new ExtractionFailed("not_seekable", "it has no end and no past");
    }
    if (!(durationMs > 0 && startMs >= 0)) {
      throw new ExtractionFailed(
        "empty",
        `a window needs a start and a length: got ${startMs}, ${durationMs}`,
      );
    }
    const firstMs = await this.#firstFrameMs(request);
    const leftMs = info.durationMs === null ? durationMs : info.durationMs - firstMs - startMs;
    if (leftMs <= 0) throw new ExtractionFailed("empty", `it ends before ${startMs} ms`);
    return { startMs, durationMs: Math.min(durationMs, leftMs), firstFrameMs: firstMs };
  }

  /** 0 for a source without video, whose times count from its start. */
  async #firstFrameMs({ input, info, signal }: WindowRequest): Promise<number> {
    if (!info.video) return 0;
    const known = this.#firstFrames.get(info);
    if (known !== undefined) return known;
    const options = this.#runOptions(DEADLINE_START_MS, signal);
    const found = await firstFrameMs(input, info.video, options, this.#options.tools.ffmpeg);
    if (typeof found !== "number") {
      refuseFailure(found);
      throw new ExtractionFailed("ffmpeg_failed", "no frame of it can be decoded");
    }
    this.#firstFrames.set(info, found);
    return found;
  }

  /** H.264 at the least effort that x264 knows, as a clip is looked at once. */
  async #encoded(request: ClipRequest, window: SourceWindow): Promise<Uint8Array<ArrayBuffer>> {
    const { input, info, coordinates, withAudio } = request;
    const way = approach(window, input, info);
    const { durationMs } = window;
    const graphs = [pictureGraph(info, way, durationMs, coordinates)];
    if (withAudio) graphs.push(soundGraph(info, way, durationMs, LIMITS.mediaWindow.audioSampleRateHz));
    const { bytes } = await this.#written({ request, window, way }, (file) => [
      ...inputArgs(input, way),
      ...["-filter_complex", graphs.join(";"), "-map", "[v]", ...(withAudio ? ["-map", "[a]"] : [])],
      ...["-c:v", "libx264", "-preset", "ultrafast", "-bf", "0"],
      // Frames keep their own times, however unsteady.
      ...["-fps_mode", "vfr", "-enc_time_base", `1/${TICKS_PER_SECOND}`],
      ...["-video_track_timescale", String(TICKS_PER_SECOND)],
      // Only that of the last frame counts: it is shown to the end of the window.
      ...["-bsf:v", `setts=duration=${Math.max(1, Math.round(durationMs * TICKS_PER_SECOND / 1000))}-PTS`],
      ...(withAudio ? ["-c:a", "aac", "-b:a", String(AUDIO_BITS_PER_SECOND)] : []),
      ...this.#fileArgs(file),
    ]);
    return bytes;
  }

  /**
   * The packets of the window as they are, or null. A copy begins at a key picture and ends in coding order; where the
   * window begins elsewhere, an edit list would have to hide what comes before, which not every reader heeds, and where
   * pictures are coded out of order, it ends with some that are beyond the window. So the copy is listed while it is
   * made, and taken only if it is the window and nothing else; otherwise the caller encodes.
   */
  async #copied(request: ClipRequest, window: SourceWindow): Promise<Uint8Array<ArrayBuffer> | null> {
    const { input, info, coordinates } = request;
    if (!isCopyable(input, info, coordinates)) return null;
    // ffmpeg looks for the last key picture before the start: rounding must not put the start before it.
    const seekMs = window.firstFrameMs + window.startMs + START_TOLERANCE_MS;
    // ... and in coarse time bases must not bring the first frame of the next window into this one.
    const lengthMs = window.durationMs - 1.5 * START_TOLERANCE_MS;
    if (lengthMs <= 0) return null;
    const copy = ["-map", `0:${info.video!.streamIndex}`, "-c", "copy", "-t", seconds(lengthMs)];
    try {
      const { bytes, stdout } = await this.#written(
        { request, window, way: { seekMs, beginMs: seekMs }, maxStdoutBytes: PACKET_LIST_BYTES },
        (file) => [
          ...["-nostdin", "-v", "error", ...input.args, "-ss", seconds(seekMs), "-i", input.url],
          ...[...copy, "-bsf:v", "setts=pts=PTS-STARTPTS:dts=DTS-STARTPTS", ...this.#fileArgs(file)],
          ...[...copy, "-f", "framecrc", "pipe:1"],
        ],
      );
      return isExactly(new TextDecoder().decode(stdout), lengthMs) ? bytes : null;
    } catch (error) {
      // Too large, or nothing that an MP4 can hold: encoding may still succeed.
      if (error instanceof ExtractionFailed && error.reason !== "out_of_time") return null;
      throw error;
    }
  }

  /** What ffmpeg writes into a file of its own. */
  async #written(
    work: Omit<FfmpegRun, "maxStdoutBytes"> & { maxStdoutBytes?: number },
    args: (file: string) => string[],
  ): Promise<{ bytes: Uint8Array<ArrayBuffer>; stdout: Uint8Array }> {
    const { world, tempDir } = this.#options;
    await using file = new TempFile(join(tempDir, `clip-${world.randomBytes(12).toHex()}.mp4`));
    const outcome = await this.#ffmpeg(args(file.path), {
      maxStdoutBytes: 0,
      ...work,
      fileBytes: this.#clipBytesMax,
    });
    if (outcome.end === "out_of_space") throw tooLarge("the clip", this.#clipBytesMax);
    refuseFailure(outcome);
    const { size } = await Deno.stat(file.path);
    if (size > this.#clipBytesMax) throw tooLarge("the clip", this.#clipBytesMax);
    work.request.signal.throwIfAborted();
    return { bytes: await Deno.readFile(file.path), stdout: outcome.stdout };
  }

  get #clipBytesMax(): number {
    return this.#options.clipBytesMax ?? LIMITS.localAudio.clipBytesMax;
  }

  /** `-fs` ends a file that grows too long where there is no `prlimit` to do it. */
  #fileArgs(file: string): string[] {
    return [
      ...["-map_metadata", "-1", "-map_chapters", "-1", "-movflags", "+faststart"],
      ...["-fs", String(this.#clipBytesMax + FILE_SLACK_BYTES), "-f", "mp4", "-y", `file:${file}`],
    ];
  }

  #ffmpeg(args: readonly string[], run_: FfmpegRun): Promise<Outcome> {
    const { request, window, way, maxStdoutBytes, fileBytes } = run_;
    const readMs = way.beginMs - way.seekMs + window.durationMs;
    const deadlineMs = Math.min(DEADLINE_MAX_MS, DEADLINE_START_MS + Math.round(readMs * DEADLINE_PER_MEDIA));
    return run(this.#options.tools.ffmpeg, args, {
      ...this.#runOptions(deadlineMs, request.signal, fileBytes),
      maxStdoutBytes,
    });
  }

  #runOptions(
    deadlineMs: number,
    signal: AbortSignal,
    fileBytes?: number,
  ): Omit<RunOptions, "maxStdoutBytes"> {
    const { world, tools } = this.#options;
    const processors = navigator.hardwareConcurrency;
    return {
      world,
      signal,
      deadlineMs,
      maxStderrBytes: ERROR_BYTES,
      limits: {
        prlimit: tools.prlimit,
        cpuSeconds: deadlineMs / 1000 * processors,
        addressSpaceBytes: ADDRESS_SPACE_BYTES + processors * ADDRESS_SPACE_BYTES_PER_PROCESSOR,
        ...(fileBytes !== undefined && { fileBytes: fileBytes + 2 * FILE_SLACK_BYTES }),
      },
    };
  }
}

interface FfmpegRun {
  readonly request: WindowRequest;
  readonly window: SourceWindow;
  readonly way: Approach;
  readonly maxStdoutBytes: number;
  /** Absent for an ffmpeg that writes no file. */
  readonly fileBytes?: number;
}

/** Callers that may wait for a place: each is a chunk of an open request, and the service bounds those before. */
const WAITERS_MAX = 4096;
/** Contract 12.3. */
const WAV_SAMPLE_RATE_HZ = 16_000;
const AUDIO_BITS_PER_SECOND = 96_000;
const SAMPLE_BYTES = 2;
const WAV_HEADER_BYTES = 44;
/** Longest extraction: so many times the media that is read, plus a start; for slow and busy machines. */
const DEADLINE_PER_MEDIA = 10;
const DEADLINE_START_MS = 10_000;
const DEADLINE_MAX_MS = 1_800_000;
const ERROR_BYTES = 8 << 10;
/** A minute at 240 frames a second, 64 bytes a line. */
const PACKET_LIST_BYTES = 1 << 20;
/** ffmpeg writes a whole packet before it looks how long the file is; the kernel's bound lies above. */
const FILE_SLACK_BYTES = 64 << 10;
/** Decoding and encoding 4K take 1.5 GiB on two processors; each further one reserves stacks and arenas. */
const ADDRESS_SPACE_BYTES = 8 * 2 ** 30;
const ADDRESS_SPACE_BYTES_PER_PROCESSOR = 256 * 2 ** 20;

function inputArgs(input: MediaInput, way: Approach): string[] {
  return [
    ...["-nostdin", "-v", "error", ...input.args, ...seekArgs(way), "-i", input.url],
    ...["-filter_complex_threads", "1"],
  ];
}

/** What every reader of MP4 can decode, upright, in a file that can be read twice. */
function isCopyable(
  input: MediaInput,
  { formatName, video }: MediaInfo,
  coordinates: ImageCoordinates,
): boolean {
  const { resolved_region: region, source_extent: source } = coordinates;
  const isWhole = region.width === source.width && region.height === source.height;
  return input.path !== null && /^(mov|matroska)\b/.test(formatName) && isWhole && video!.rotation === 0 &&
    video!.codec === "h264" &&
    video!.pixelFormat === "yuv420p";
}

/**
 * Whether the packets of a list are those of a window: the first picture is shown at its start, none before, and none
 * after its end.
 */
function isExactly(list: string, lengthMs: number): boolean {
  const unit = /^#tb 0: (\d+)\/(\d+)$/m.exec(list);
  const times = [...list.matchAll(/^0, *-?\d+, *(-?\d+),.*$/gm)].map((line) => Number(line[1]));
  if (!unit || times.length === 0) return false;
  const unitMs = Number(unit[1]) / Number(unit[2]) * 1000;
  const [firstMs, lastMs] = [Math.min(...times) * unitMs, Math.max(...times) * unitMs];
  return firstMs >= -2 * START_TOLERANCE_MS && firstMs <= 0 && lastMs < lengthMs;
}

function refuseFailure(outcome: Outcome): void {
  if (outcome.end === "out_of_time") throw new ExtractionFailed("out_of_time", "it took too long");
  if (outcome.end === "out_of_space") throw new ExtractionFailed("too_large", "more came than was asked for");
  if (outcome.end === "killed") throw new ExtractionFailed("ffmpeg_failed", "ffmpeg broke down on it");
  if (outcome.code !== 0) throw new ExtractionFailed("ffmpeg_failed", reasonIn(outcome.stderr));
}

function tooLarge(what: string, bytesMax: number): ExtractionFailed {
  return new ExtractionFailed("too_large", `${what} would have more than ${bytesMax} bytes`);
}

/** A file that a program may make, and that is gone afterwards. */
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
