/** Recorded media in chunks: the signals of each chunk and JPEGs of the frames chosen in it, decoded on
 * demand.
 */

import type { ImageCoordinates, NormalizedRegion } from "../../model/frames/coordinates.ts";
import type { DetectedRange } from "../../model/frames/detected_range.ts";
import { chosenPositions } from "../../model/reason/chunks.ts";
import { expectedFps, type SamplingPlan, takesEveryFrame } from "../../model/frames/sampling.ts";
import type { SourceEnd } from "../../model/frames/ended_early.ts";
import type { SignalColumns } from "../../model/frames/signals.ts";
import { type DecodeSubject, subjectOf } from "../jobs/decode.ts";
import {
  decodeCpuSeconds,
  decodeDeadlineMs,
  endOf,
  framesToDecode,
  isEndless,
  refuseFailure,
} from "./decode_bounds.ts";
import { type DecodeHost, DecodeRun } from "./decode_run.ts";
import { type ChosenFrames, FrameChoice, type JpegSize, jpegSize } from "../jobs/parts/frame_choice.ts";
import { FrameJpegs } from "./frame_jpegs.ts";
import type { MediaInput } from "../input.ts";
import type { MediaInfo } from "../media_info.ts";
import type { FilmClock } from "./extractor.ts";
import { RowQueue } from "./row_queue.ts";
import { sourceClock } from "../jobs/parts/source_times.ts";
import type { RowBatch } from "./stream_order.ts";

export interface FrameStreamRequest {
  /** For whom the source is decoded; see `PermitQueue`. */
  readonly principalKey?: string | undefined;
  readonly input: MediaInput;
  readonly info: MediaInfo;
  readonly plan: SamplingPlan;
  /** Most sampled frames; the rest is not decoded. */
  readonly maxFrames: number;
  /** Region to analyse, as fractions of the displayed frame; absent is the whole frame. */
  readonly crop?: NormalizedRegion;
  /** Aborting ends the stream as disposing does; a pending `next` rejects with its reason. */
  readonly signal: AbortSignal;
  /** Why a part of the source did not come, asked when all has ended; absent for a file. */
  readonly sourceFault?: () => string | null;
  readonly chunks: ChunkRule;
  /** JPEGs for each chunk; only for chunks by count. */
  readonly images?: ChunkImageOptions;
}

/**
 * How the stream is divided. By count: `size` frames each; the last chunk may have fewer. By window: from the
 * first frame that is in no chunk yet, all frames less than `windowMs` later. See docs/reason.md#chunks.
 */
export type ChunkRule =
  | { readonly by: "count"; readonly size: number }
  | { readonly by: "window"; readonly windowMs: number };

export interface ChunkImageOptions {
  /** JPEGs of each chunk, at least 1. */
  readonly perChunk: number;
  /** Longest edge in pixels; null keeps the size of the region. Nothing is ever enlarged. */
  readonly maxEdge: number | null;
  /** JPEG quality, 1 to 100; default 80. */
  readonly quality?: number;
}

export interface DecodedChunk {
  /** Number of the chunk, from 0. */
  readonly index: number;
  /** Number of its first frame among all sampled frames. */
  readonly firstFrame: number;
  /** Signals of this chunk only; `ptsMs` counts from the first frame of the medium. */
  readonly signals: SignalColumns;
  /** JPEGs of the chosen frames, ascending; empty without `images` in the request. */
  readonly images: readonly ChunkImage[];
}

export interface ChunkImage {
  readonly frameIndex: number;
  readonly ptsMs: number;
  /** The JPEG file: baseline, 4:2:0, full range, of even width and height, at most 4 MiB. */
  readonly jpeg: Uint8Array<ArrayBuffer>;
}

/**
 * One ffmpeg decodes the medium once: reduced frames for the signals, and JPEGs of the frames whose positions
 * are known in advance. Which frames the last, short chunk has may be known only at the end of the medium. If
 * there are no JPEGs of its chosen frames, a second ffmpeg decodes these few by their exact times, and their
 * signals prove that they are the same frames. The same is done for the rest of a medium that changes its
 * format on the way, because ffmpeg then counts frames anew.
 *
 * Where the decoder tells of damage, another ffmpeg with one thread decodes from the beginning, and its rows
 * follow those that have come: what several threads make of damage is another picture each time.
 *
 * An endless source cannot be read twice: if it ends by its deadline, the last chunk may lack JPEGs.
 *
 * Memory: the rows and JPEGs of the current chunk and of `#readAhead` more rows, and what ffmpeg itself uses.
 */
export class FrameStream implements AsyncDisposable {
  readonly coordinates: ImageCoordinates;
  /** Width in pixels as displayed, before the crop. */
  readonly width: number;
  readonly height: number;
  /** Pixel format of the source, by ffmpeg's name. */
  readonly pixelFormat: string;
  /** Resolves when all resources are released: after the end, a failure, or disposing. */
  readonly closed: Promise<void>;

  /** Whether `maxFrames` ended the decode, and not the source; true with the last chunk at the earliest. */
  isTruncated = false;

  /** What is known of the times of the film, for windows of it; it grows with the stream. */
  get clock(): FilmClock {
    const rows = this.#rows;
    const run = this.#run;
    const { sourceFps, sampleFps } = this.#request.plan;
    const intervalMs = 1000 / (sourceFps ?? sampleFps);
    return {
      isSteady: rows.isSteady,
      endMs: run.outcome && !run.isDamaged && !this.isTruncated ? run.length.endMs : null,
      knownMs: rows.end > 0 ? rows.knownMs + intervalMs : 0,
      framesIn: (startMs, endMs) => rows.framesIn(startMs, endMs, intervalMs),
    };
  }

  /** How the source ended; whole when `next` has given null. */
  get end(): SourceEnd {
    const { outcome, length } = this.#run;
    if (outcome === null || this.isTruncated) return {};
    return endOf(this.#request, { outcome, length, sourceFault: this.#request.sourceFault?.() ?? null });
  }

  /** The times of all cuts, rising; whole when `next` has given null. */
  get cutsMs(): readonly number[] {
    return this.#run.cutsMs;
  }

  /** What the detectors found in all frames, sorted by start; whole when `next` has given null. */
  get ranges(): readonly DetectedRange[] {
    return this.#run.ranges;
  }

  readonly #host: DecodeHost;
  readonly #request: FrameStreamRequest;
  readonly #subject: DecodeSubject;
  readonly #size: JpegSize | null;
  readonly #choice: FrameChoice | null;
  #run: DecodeRun;
  #byOneThread: boolean;
  readonly #stop = new AbortController();
  readonly #signal: AbortSignal;
  readonly #closed = Promise.withResolvers<void>();
  readonly #rows = new RowQueue();
  /** JPEGs that have come; null for a stream without JPEGs. */
  readonly #jpegs: FrameJpegs | null;
  #chunks = 0;
  /** The call of `next` that came last: calls take turns. */
  #turn: Promise<unknown> = Promise.resolve();
  #isOver = false;
  #failure: { readonly error: unknown } | null = null;

  private constructor(
    host: DecodeHost,
    request: FrameStreamRequest,
    parts: {
      subject: DecodeSubject;
      size: JpegSize | null;
      choice: FrameChoice | null;
      run: DecodeRun;
      stop: AbortController;
      signal: AbortSignal;
    },
  ) {
    const video = request.info.video!;
    this.coordinates = parts.subject.coordinates;
    this.width = video.width;
    this.height = video.height;
    this.pixelFormat = video.pixelFormat;
    this.closed = this.#closed.promise;
    this.#host = host;
    this.#request = request;
    this.#subject = parts.subject;
    this.#size = parts.size;
    this.#choice = parts.choice;
    this.#jpegs = parts.choice && new FrameJpegs(this.#rows);
    this.#run = parts.run;
    this.#byOneThread = isEndless(request);
    this.#stop = parts.stop;
    this.#signal = parts.signal;
    const onAbort = () => void this[Symbol.asyncDispose]();
    this.#signal.addEventListener("abort", onAbort, { once: true });
    this.closed.then(() => this.#signal.removeEventListener("abort", onAbort));
    this.#run.grant(this.#readAhead);
  }

  /** Starts ffmpeg. Throws a RangeError for a request that no input of a caller can cause. */
  static async open(
    host: DecodeHost,
    request: FrameStreamRequest,
    coordinates: ImageCoordinates,
  ): Promise<FrameStream> {
    checkRequest(request);
    const subject = { ...request, coordinates };
    const size = request.images ? jpegSize(coordinates, request.images) : null;
    const choice = size && frameChoice(request, size);
    const stop = new AbortController();
    const signal = AbortSignal.any([request.signal, stop.signal]);
    const parts = { subject, size, choice, signal };
    const run = await startRun(host, request, { ...parts, byOneThread: isEndless(request) });
    return new FrameStream(host, request, { ...parts, run, stop });
  }

  /**
   * The next chunk, or null after the last. Rejects with a Refusal (422 `source_uri`) where the medium gives
   * no frame or exceeds a limit; a medium that is damaged later ends with what was decoded. Concurrent calls
   * run one after the other.
   */
  next(): Promise<DecodedChunk | null> {
    const chunk = this.#turn.then(async () => {
      try {
        return await this.#next();
      } catch (error) {
        this.#failure ??= { error };
        await this.#release();
        throw error;
      }
    });
    this.#turn = chunk.catch(() => {});
    return chunk;
  }

  /** Ends ffmpeg and releases everything, at any moment; a pending `next` rejects. */
  async [Symbol.asyncDispose](): Promise<void> {
    const reason = new Error("the stream of frames was closed");
    if (!this.#isOver) {
      this.#failure ??= { error: this.#request.signal.aborted ? this.#request.signal.reason : reason };
    }
    this.#stop.abort(reason);
    await this.#turn;
    await this.#release();
  }

  async #next(): Promise<DecodedChunk | null> {
    for (;;) {
      if (this.#failure) throw this.#failure.error;
      if (this.#isOver) return null;
      this.#signal.throwIfAborted();
      this.#collect();
      if (this.#run.isDamaged) await this.#decodeByOneThread();
      const rows = this.#rowsOfNext();
      if (rows === 0) await this.#release();
      else if (rows !== null && this.#hasJpegs(rows)) return await this.#cutChunk(rows);
      else {
        this.#run.grant(this.#rows.end + this.#readAhead);
        await this.#run.wait();
      }
    }
  }

  async #decodeByOneThread(): Promise<void> {
    await this.#run[Symbol.asyncDispose]();
    this.#collect();
    this.#rows.restart();
    this.#jpegs?.restart();
    this.#byOneThread = true;
    this.#run = await startRun(this.#host, this.#request, {
      ...{ subject: this.#subject, size: this.#size, choice: this.#choice },
      ...{ byOneThread: true, signal: this.#signal },
    });
    this.#run.grant(this.#rows.first + this.#readAhead);
  }

  /** How many frames the next chunk has; null while that is not known, 0 after the last. */
  #rowsOfNext(): number | null {
    const { first, end } = this.#rows;
    const { chunks, maxFrames } = this.#request;
    const queued = end - first;
    if (chunks.by === "count" && queued >= chunks.size) return chunks.size;
    if (chunks.by === "window" && queued > 0) {
      const startMs = this.#rows.ptsMs(first);
      const after = this.#rows.firstAtOrAfter(startMs + chunks.windowMs, first + 1);
      if (after !== null) return after - first;
    }
    if (end >= maxFrames) return queued;
    if (!this.#run.outcome) return null;
    refuseFailure(this.#run.outcome, end, {
      scope: this.#request,
      late: "decoding came to a halt or took more time than is allowed",
    });
    return queued;
  }

  /** Whether the JPEGs of the next `rows` frames are here, or no longer expected from this ffmpeg. */
  #hasJpegs(rows: number): boolean {
    const jpegs = this.#jpegs;
    if (!jpegs || this.#run.outcome) return true;
    // JPEGs of what comes then are chosen by numbers that begin anew.
    if (this.#rows.beginnings.length > 1 && !isEndless(this.#request)) return true;
    const { first, end } = this.#rows;
    return end >= first + rows + this.#jpegDelayMax || this.#chosen(rows).every((frame) => jpegs.has(frame));
  }

  #chosen(rows: number): number[] {
    const perChunk = this.#request.images?.perChunk ?? 0;
    return chosenPositions(rows, perChunk).map((position) => this.#rows.first + position);
  }

  async #cutChunk(count: number): Promise<DecodedChunk> {
    const firstFrame = this.#rows.first;
    const chosen = this.#chosen(count);
    if (this.#rows.end >= this.#request.maxFrames) await this.#endRun();
    if (this.#jpegs) await this.#decodeAgain(this.#jpegs, chosen);
    const signals = this.#rows.take(count);
    const images = chosen.flatMap((frame) => {
      const jpeg = this.#jpegs?.get(frame);
      return jpeg ? [{ frameIndex: frame, ptsMs: signals.ptsMs[frame - firstFrame]!, jpeg }] : [];
    });
    this.#jpegs?.dropTaken();
    this.#run.grant(this.#rows.first + this.#readAhead);
    return { index: this.#chunks++, firstFrame, signals, images };
  }

  /**
   * Ends the run after the last row: lets ffmpeg come to the frame after it, which shows whether the source
   * goes on.
   */
  async #endRun(): Promise<void> {
    while (!this.#run.outcome && !isEndless(this.#request) && !this.#signal.aborted) {
      await this.#run.wait();
      this.#collect();
    }
    this.isTruncated = this.#run.hasMore || isEndless(this.#request);
    this.#run.stop("killed");
  }

  /** Takes over what has come from ffmpeg. */
  #collect(): void {
    const { rows, jpegs, outcome } = this.#run;
    for (const batch of rows.splice(0)) this.#rows.push(batch);
    this.#jpegs?.add(jpegs.splice(0), outcome !== null);
  }

  /**
   * Decodes a part again for the chosen frames whose JPEGs the first pass did not make, or made too large.
   */
  async #decodeAgain(jpegs: FrameJpegs, chosen: readonly number[]): Promise<void> {
    const missing = chosen.filter((frame) => !jpegs.has(frame));
    if (missing.length === 0 || isEndless(this.#request)) return;
    if (this.#run.outcome) await this.#run[Symbol.asyncDispose]();
    const timesS = missing.map((frame) => this.#rows.sourceTimeS(frame));
    const near = { select: { by: "times" as const, timesS }, seekS: Math.max(0, timesS[0]! - SEEK_MARGIN_S) };
    const isSame = (frame: number, batch: RowBatch, row: number) => this.#isSame(frame, batch, row);
    // Of a clock that has jumped, no time tells where a frame is.
    if (this.#rows.isSteady && await this.#decodeFrames(jpegs, missing, near, isSame)) return;
    // The medium cannot be read from there, or decodes differently from there. From its start it decodes as
    // before.
    const select: ChosenFrames = this.#rows.beginnings.length > 1
      ? { by: "times", timesS }
      : { by: "frames", frames: missing.map((frame) => this.#rows.frameOf(frame)) };
    await this.#decodeFrames(
      jpegs,
      missing,
      { select, seekS: 0 },
      select.by === "frames" ? () => true : isSame,
    );
  }

  /** Decodes some frames again. Returns whether all of them were found; keeps no JPEG otherwise. */
  async #decodeFrames(
    jpegs: FrameJpegs,
    frames: readonly number[],
    { select, seekS }: { select: ChosenFrames; seekS: number },
    isSame: (frame: number, batch: RowBatch, row: number) => boolean,
  ): Promise<boolean> {
    const subject = this.#subject;
    const size = jpegs.hasOversize ? smaller(this.#size!) : this.#size!;
    const maxFrames = frames.length;
    const deadlineMs = decodeDeadlineMs(this.#request);
    await using run = await DecodeRun.start(this.#host, {
      job: (pipe) => ({
        kind: "decode",
        hardware: null,
        byOneThread: this.#byOneThread,
        subject: subjectOf(subject),
        seekS,
        planes: { pipe, maxFrames, select },
        jpegs: { maxFrames, select, size, threads: 1 },
        cpuSeconds: decodeCpuSeconds(this.#request),
      }),
      sampling: null,
      clock: sourceClock(subject.info),
      region: subject.coordinates.resolved_region,
      hasReports: false,
      stopsAtDamage: false,
      looksAhead: false,
      batchRows: maxFrames,
      maxRows: maxFrames,
      deadlineMs,
      stallMs: deadlineMs,
      signal: this.#signal,
    });
    const batches: RowBatch[] = [];
    const found: Uint8Array<ArrayBuffer>[] = [];
    while (!run.outcome) {
      await run.wait();
      batches.push(...run.rows.splice(0));
      found.push(...run.jpegs.splice(0).map(({ jpeg }) => jpeg));
    }
    this.#signal.throwIfAborted();
    const rows = batches.flatMap((batch) =>
      Array.from({ length: batch.count }, (_, row) => ({ batch, row }))
    );
    const areAllFound = found.length === maxFrames && rows.length === maxFrames &&
      rows.every(({ batch, row }, i) => isSame(frames[i]!, batch, row));
    if (areAllFound) frames.forEach((frame, i) => jpegs.set(frame, found[i]!));
    return areAllFound;
  }

  /**
   * Whether a frame that was decoded again is the queued one: the signals that need no frame before it must
   * be equal.
   */
  #isSame(frame: number, again: RowBatch, row: number): boolean {
    const { batch, row: queued } = this.#rows.locate(frame);
    return batch.perceptualHash[queued] === again.perceptualHash[row] &&
      batch.lumaMean[queued] === again.lumaMean[row] &&
      batch.noiseVarianceScore[queued] === again.noiseVarianceScore[row];
  }

  async #release(): Promise<void> {
    this.#isOver = true;
    this.#jpegs?.clear();
    await this.#run[Symbol.asyncDispose]();
    this.#closed.resolve();
  }

  /** Rows that may be decoded before the consumer asks for them. */
  get #readAhead(): number {
    const { chunks } = this.#request;
    return chunks.by === "count" ? Math.min(READ_AHEAD_MAX, Math.max(64, 2 * chunks.size)) : READ_AHEAD_MAX;
  }

  /**
   * Rows after which a JPEG is no longer waited for: the encoder delays each by two others at most, and both
   * pipes are short.
   */
  get #jpegDelayMax(): number {
    return this.#request.chunks.by === "count" ? 4 * this.#request.chunks.size + 64 : 0;
  }
}

const BATCH_ROWS = 64;
const READ_AHEAD_MAX = 512;
/**
 * Seconds that a seek goes back further: frames that refer to frames before the key frame of their own group
 * decode correctly from the group before it.
 */
const SEEK_MARGIN_S = 1;
/**
 * Longer edge in pixels for a JPEG that was too large, and below it the quantizer: pure noise of this size
 * has 2 MiB.
 */
const SMALLER_EDGE = 2048;
const SMALLER_QUANTIZER = 31;
/** Pixels that the candidates of a chunk may have together: 32 frames of 1080p, some 10 MB of JPEG. */
const CANDIDATE_PIXELS = 32 * 1920 * 1080;
/**
 * How wrong the length in the container may be, besides two frames: sound often ends a little later than
 * video.
 */
const LENGTH_TOLERANCE_S = 0.1;
/**
 * Longest time without output of an ffmpeg that is waited for. One frame in five seconds of a 4K video that
 * decodes at three frames a second takes 100 s; a network connection without data ends after 10 s by itself.
 */
const STALL_MS = 120_000;

/** Starts an ffmpeg that decodes all of the medium. */
function startRun(
  host: DecodeHost,
  request: FrameStreamRequest,
  { subject, size, choice, byOneThread, signal }: {
    readonly subject: DecodeSubject;
    readonly size: JpegSize | null;
    readonly choice: FrameChoice | null;
    readonly byOneThread: boolean;
    readonly signal: AbortSignal;
  },
): Promise<DecodeRun> {
  const isLive = isEndless(request);
  return DecodeRun.start(host, {
    job: (pipe) => ({
      kind: "decode",
      hardware: null,
      byOneThread,
      subject: subjectOf(subject),
      seekS: 0,
      planes: { pipe, maxFrames: framesToDecode(request), select: null },
      jpegs: choice && {
        maxFrames: choice.total,
        select: choice.selection,
        size: size!,
        // A camera leaves the encoder enough time, and a JPEG must not wait for the next frame; nor may it
        // where ffmpeg is ended after the last row.
        threads: isLive || !takesEveryFrame(request.plan) ? 1 : 2,
      },
      cpuSeconds: decodeCpuSeconds(request),
    }),
    sampling: request.plan,
    clock: sourceClock(request.info),
    region: subject.coordinates.resolved_region,
    hasReports: true,
    stopsAtDamage: !byOneThread,
    looksAhead: !isLive,
    batchRows: request.chunks.by === "count" ? Math.min(request.chunks.size, BATCH_ROWS) : BATCH_ROWS,
    maxRows: request.maxFrames,
    deadlineMs: isLive ? decodeDeadlineMs(request) : null,
    stallMs: STALL_MS,
    signal,
  });
}

function checkRequest({ chunks, images, maxFrames }: FrameStreamRequest): void {
  const isCount = (value: number) => Number.isInteger(value) && value >= 1;
  if (!isCount(maxFrames)) throw new RangeError(`Cannot stream ${maxFrames} frames`);
  if (chunks.by === "count" && !isCount(chunks.size)) {
    throw new RangeError(`Cannot make chunks of ${chunks.size} frames`);
  }
  if (chunks.by === "window" && !(chunks.windowMs > 0)) {
    throw new RangeError(`Cannot make windows of ${chunks.windowMs} ms`);
  }
  if (images && chunks.by === "window") throw new RangeError("Cannot give images of windows");
  if (images && !isCount(images.perChunk)) {
    throw new RangeError(`Cannot choose ${images.perChunk} frames of a chunk`);
  }
}

function frameChoice(request: FrameStreamRequest, size: JpegSize): FrameChoice | null {
  const { chunks, images, maxFrames } = request;
  if (chunks.by !== "count" || !images) return null;
  const { perChunk } = images;
  return new FrameChoice({
    size: chunks.size,
    perChunk,
    maxFrames,
    candidatesFrom: candidatesFrom(request, chunks.size, size),
  });
}

/**
 * From which frame on every frame becomes a JPEG: from the chunk in which the medium ends, as its container
 * says. That costs less than a second ffmpeg; if the container is wrong, a second ffmpeg is needed. Any chunk
 * of an endless source may be its last.
 */
function candidatesFrom(request: FrameStreamRequest, chunkSize: number, size: JpegSize): number | null {
  if (chunkSize * size.width * size.height > CANDIDATE_PIXELS) return null;
  if (isEndless(request)) return 0;
  const { info: { durationMs }, plan } = request;
  if (durationMs === null) return null;
  const fps = expectedFps(plan);
  const frames = durationMs / 1000 * fps - Math.max(2, LENGTH_TOLERANCE_S * fps);
  return Math.max(0, Math.floor(frames / chunkSize)) * chunkSize;
}

function smaller({ width, height }: JpegSize): JpegSize {
  const share = Math.min(1, SMALLER_EDGE / Math.max(width, height));
  const even = (edge: number) => Math.max(2, Math.floor(edge * share / 2) * 2);
  return { width: even(width), height: even(height), quantizer: SMALLER_QUANTIZER };
}
