/** Recorded media chunk by chunk: the signals of each and pictures of the frames chosen in it, decoded as they are asked for. */

import type { ImageCoordinates, NormalizedRegion } from "../../model/frames/coordinates.ts";
import { chosenPositions } from "../../model/reason/chunks.ts";
import type { SamplingPlan } from "../../model/frames/sampling.ts";
import type { SignalColumns } from "../../model/frames/signals.ts";
import { type DecodeSubject, inputArgs, jpegOutput, type JpegSize, planeOutput } from "./decode_args.ts";
import { decodeCpuSeconds, decodeDeadlineMs, isEndless, refuseFailure } from "./decode_bounds.ts";
import { type DecodeHost, DecodeRun } from "./decode_run.ts";
import { FrameChoice, jpegSize, selectFrames, selectTimes } from "./frame_choice.ts";
import type { MediaInput } from "../input.ts";
import type { TimedJpeg } from "../formats/jpeg_stream.ts";
import type { MediaInfo } from "../probe.ts";
import { RowQueue } from "./row_queue.ts";
import type { RowBatch } from "./stream_order.ts";

export interface FrameStreamRequest {
  readonly input: MediaInput;
  readonly info: MediaInfo;
  readonly plan: SamplingPlan;
  /** Sampled frames; what follows is not decoded. */
  readonly maxFrames: number;
  /** Fractions of the displayed picture; absent is the whole of it. */
  readonly crop?: NormalizedRegion;
  /** Aborting ends the stream as disposing does; a pending `next` rejects with its reason. */
  readonly signal: AbortSignal;
  readonly chunks: ChunkRule;
  /** Only for chunks by count, contract 6.2. */
  readonly images?: ChunkImageOptions;
}

/**
 * Contract 6.2. By count: `size` frames each, the last may have fewer. By window: from the first frame that is in no chunk
 * yet, all that are shown less than `windowMs` later; a window that would start at `endMs` or later ends the stream.
 */
export type ChunkRule =
  | { readonly by: "count"; readonly size: number }
  | { readonly by: "window"; readonly windowMs: number; readonly endMs: number | null };

export interface ChunkImageOptions {
  /** JPEGs of each chunk, at least 1. */
  readonly perChunk: number;
  /** Pixels of the longer edge that are not passed; null keeps the size of the region. Nothing is ever enlarged. */
  readonly maxEdge: number | null;
  /** JPEG quality, 1 to 100; 80 unless told. */
  readonly quality?: number;
}

export interface DecodedChunk {
  /** From 0. */
  readonly index: number;
  /** Number of its first frame among all sampled frames. */
  readonly firstFrame: number;
  /** Of this chunk only; `ptsMs` still counts from the first frame of the medium. */
  readonly signals: SignalColumns;
  /** Of the chosen frames, ascending; empty unless asked for. */
  readonly images: readonly ChunkImage[];
}

export interface ChunkImage {
  readonly frameIndex: number;
  readonly ptsMs: number;
  /** Baseline, 4:2:0, full range, of even width and height, at most 4 MiB. */
  readonly jpeg: Uint8Array<ArrayBuffer>;
}

/**
 * One ffmpeg decodes once: the planes for the signals, and JPEGs of the frames whose positions are known beforehand. Where
 * it turns out only at the end of the medium which frames the last, short chunk has, and its frames are not among the
 * pictures, a second, short ffmpeg fetches these few by their exact times and proves by their signals that they are the
 * same frames. So it is, too, for the rest of a medium that changes its format on the way, as ffmpeg then counts anew.
 *
 * An endless source cannot be asked twice: the last chunk of one that ends by its deadline may lack pictures.
 *
 * Held at most: the rows and pictures of the chunk at hand and of `#readAhead` rows, and what ffmpeg itself holds.
 */
export class FrameStream implements AsyncDisposable {
  readonly coordinates: ImageCoordinates;
  /** Pixels, as displayed, before the crop. */
  readonly width: number;
  readonly height: number;
  /** The source's, in ffmpeg's words. */
  readonly pixelFormat: string;
  /** Resolves when nothing of it is left: after its end, a failure, or disposing. */
  readonly closed: Promise<void>;

  readonly #host: DecodeHost;
  readonly #request: FrameStreamRequest;
  readonly #subject: DecodeSubject;
  readonly #size: JpegSize | null;
  readonly #choice: FrameChoice | null;
  readonly #run: DecodeRun;
  readonly #stop = new AbortController();
  readonly #signal: AbortSignal;
  readonly #closed = Promise.withResolvers<void>();
  readonly #rows = new RowQueue();
  /** Pictures whose frame is not certain yet, with their place in the order of arrival. */
  #arrived: { readonly picture: TimedJpeg; readonly order: number }[] = [];
  #arrivals = 0;
  readonly #jpegs = new Map<number, Uint8Array<ArrayBuffer>>();
  /** ffmpeg has counted anew: pictures are known by their times alone. */
  #isOrderLost = false;
  #hasLargePicture = false;
  #chunks = 0;
  /** Calls of `next` take turns. */
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
    this.#run = parts.run;
    this.#stop = parts.stop;
    this.#signal = parts.signal;
    const onAbort = () => void this[Symbol.asyncDispose]();
    this.#signal.addEventListener("abort", onAbort, { once: true });
    this.closed.then(() => this.#signal.removeEventListener("abort", onAbort));
    this.#run.grant(this.#readAhead);
  }

  /** Throws a RangeError for a request that no caller's input can make; ffmpeg is under way when it returns. */
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
    const isLive = isEndless(request);
    const run = await DecodeRun.start(host, {
      args: (fifoPath) => [
        ...inputArgs(subject),
        ...(choice
          ? jpegOutput(subject, {
            maxFrames: choice.total,
            select: choice.select,
            size: size!,
            // At the pace of a camera the encoder has all the time there is, and a picture must not wait for the next.
            threads: isLive ? 1 : 2,
          })
          : []),
        ...planeOutput(subject, { maxFrames: request.maxFrames, fifoPath }),
      ],
      hasPictures: choice !== null,
      batchRows: request.chunks.by === "count" ? Math.min(request.chunks.size, BATCH_ROWS) : BATCH_ROWS,
      maxRows: request.maxFrames,
      cpuSeconds: decodeCpuSeconds(request),
      deadlineMs: isLive ? decodeDeadlineMs(request) : null,
      stallMs: STALL_MS,
      signal,
    });
    return new FrameStream(host, request, { subject, size, choice, run, stop, signal });
  }

  /**
   * The next chunk, or null after the last. Rejects with a Refusal (422 `source_uri`) where the medium gives no frame or
   * breaks a limit; a medium that is damaged later ends with what was decoded. Calls take turns.
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

  /** Ends ffmpeg and gives everything back, at any moment; a pending `next` rejects. */
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
      const rows = this.#rowsOfNext();
      if (rows === 0) await this.#release();
      else if (rows !== null && this.#hasPictures(rows)) return await this.#cut(rows);
      else {
        this.#run.grant(this.#rows.end + this.#readAhead);
        await this.#run.wait();
      }
    }
  }

  /** Frames of the next chunk; null while that is not known, 0 after the last. */
  #rowsOfNext(): number | null {
    const { first, end } = this.#rows;
    const { chunks, maxFrames } = this.#request;
    const queued = end - first;
    if (chunks.by === "count" && queued >= chunks.size) return chunks.size;
    if (chunks.by === "window" && queued > 0) {
      const startMs = this.#rows.ptsMs(first);
      if (chunks.endMs !== null && startMs >= chunks.endMs) return 0;
      const after = this.#rows.firstAtOrAfter(startMs + chunks.windowMs, first + 1);
      if (after !== null) return after - first;
    }
    if (end >= maxFrames) return queued;
    if (!this.#run.outcome) return null;
    refuseFailure(this.#run.outcome, end, {
      isEndless: isEndless(this.#request),
      limit: "decoding came to a halt or took more time than is allowed",
    });
    return queued;
  }

  /** Whether the pictures of the next `rows` frames are here, as far as this ffmpeg gives them. */
  #hasPictures(rows: number): boolean {
    if (!this.#choice || this.#isOrderLost || this.#run.outcome) return true;
    const { first, end } = this.#rows;
    return end >= first + rows + this.#patience ||
      this.#chosen(rows).every((frame) => this.#jpegs.has(frame));
  }

  #chosen(rows: number): number[] {
    const perChunk = this.#request.images?.perChunk ?? 0;
    return chosenPositions(rows, perChunk).map((position) => this.#rows.first + position);
  }

  async #cut(count: number): Promise<DecodedChunk> {
    const firstFrame = this.#rows.first;
    const chosen = this.#chosen(count);
    if (this.#rows.end >= this.#request.maxFrames) this.#run.stop("killed");
    await this.#fetch(chosen.filter((frame) => !this.#jpegs.has(frame)));
    const signals = this.#rows.take(count);
    const images = chosen.filter((frame) => this.#jpegs.has(frame)).map((frame) => ({
      frameIndex: frame,
      ptsMs: signals.ptsMs[frame - firstFrame]!,
      jpeg: this.#jpegs.get(frame)!,
    }));
    for (const frame of this.#jpegs.keys()) if (frame < this.#rows.first) this.#jpegs.delete(frame);
    this.#run.grant(this.#rows.first + this.#readAhead);
    return { index: this.#chunks++, firstFrame, signals, images };
  }

  /** Takes over what has come, and finds out of which frame each picture is. */
  #collect(): void {
    const { rows, pictures, outcome } = this.#run;
    for (const batch of rows.splice(0)) this.#rows.push(batch);
    for (const picture of pictures.splice(0)) this.#arrived.push({ picture, order: this.#arrivals++ });
    this.#arrived = this.#arrived.filter(({ picture, order }) => {
      const frame = this.#frameOf(picture, order);
      if (frame === null) return !outcome;
      if (picture.jpeg.length > PICTURE_BYTES_MAX) this.#hasLargePicture = true;
      else if (frame >= this.#rows.first) this.#jpegs.set(frame, picture.jpeg);
      return false;
    });
  }

  /**
   * The frame that a picture shows; null while the rows up to it are not here. Pictures come in the order of the choice. One
   * that has the time of another frame says that ffmpeg counts anew; one that has the time of none says nothing, as ffmpeg
   * moves times that go back, and does so in each output by itself.
   */
  #frameOf({ timeS }: TimedJpeg, order: number): number | null {
    const { first, end, startS } = this.#rows;
    const timeMs = (timeS - startS) * 1000;
    const expected = this.#choice!.frameOf(order);
    const isShown = (frame: number) => Math.abs(this.#rows.ptsMs(frame) - timeMs) < TIME_TOLERANCE_MS;
    if (!this.#isOrderLost) {
      if (expected >= end) return null;
      if (expected < first || isShown(expected)) return expected;
    }
    const shown = end > first ? this.#rows.firstAtOrAfter(timeMs - TIME_TOLERANCE_MS) : null;
    if (shown === null) return this.#isOrderLost ? null : expected;
    if (isShown(shown)) {
      this.#isOrderLost = true;
      return shown;
    }
    return this.#isOrderLost ? PASSED : expected;
  }

  /** Decodes a part again for pictures that the first pass could not know of or that are too large. */
  async #fetch(missing: readonly number[]): Promise<void> {
    if (missing.length === 0 || isEndless(this.#request)) return;
    if (this.#run.outcome) await this.#run[Symbol.asyncDispose]();
    const timesS = missing.map((frame) => this.#rows.startS + this.#rows.ptsMs(frame) / 1000);
    const near = { select: selectTimes(timesS), seekS: Math.max(0, timesS[0]! - SEEK_MARGIN_S) };
    if (await this.#fetchBy(near, missing, (frame, batch, row) => this.#isSame(frame, batch, row))) return;
    // It cannot be entered there, or decodes otherwise from there: from the start it decodes as it did.
    const select = this.#isOrderLost ? selectTimes(timesS) : selectFrames(missing);
    await this.#fetchBy({ select, seekS: 0 }, missing, () => true);
  }

  /** Returns whether all of them were found; keeps none otherwise. */
  async #fetchBy(
    { select, seekS }: { select: string; seekS: number },
    frames: readonly number[],
    isSame: (frame: number, batch: RowBatch, row: number) => boolean,
  ): Promise<boolean> {
    const subject = this.#subject;
    const size = this.#hasLargePicture ? smaller(this.#size!) : this.#size!;
    const maxFrames = frames.length;
    const deadlineMs = decodeDeadlineMs(this.#request);
    await using run = await DecodeRun.start(this.#host, {
      args: (fifoPath) => [
        ...inputArgs(subject, seekS),
        ...jpegOutput(subject, { maxFrames, select, size, threads: 1 }),
        ...planeOutput(subject, { maxFrames, select, fifoPath }),
      ],
      hasPictures: true,
      batchRows: maxFrames,
      maxRows: maxFrames,
      cpuSeconds: decodeCpuSeconds(this.#request),
      deadlineMs,
      stallMs: deadlineMs,
      signal: this.#signal,
    });
    const batches: RowBatch[] = [];
    const jpegs: Uint8Array<ArrayBuffer>[] = [];
    while (!run.outcome) {
      await run.wait();
      batches.push(...run.rows.splice(0));
      jpegs.push(...run.pictures.splice(0).map(({ jpeg }) => jpeg));
    }
    this.#signal.throwIfAborted();
    const rows = batches.flatMap((batch) =>
      Array.from({ length: batch.count }, (_, row) => ({ batch, row }))
    );
    const isFound = jpegs.length === maxFrames && rows.length === maxFrames &&
      rows.every(({ batch, row }, i) => isSame(frames[i]!, batch, row));
    if (isFound) frames.forEach((frame, i) => this.#jpegs.set(frame, jpegs[i]!));
    return isFound;
  }

  /** Whether a frame that was decoded again is the queued one: what does not depend on the frame before must agree. */
  #isSame(frame: number, again: RowBatch, row: number): boolean {
    const { batch, row: queued } = this.#rows.locate(frame);
    return batch.perceptualHash[queued] === again.perceptualHash[row] &&
      batch.lumaMean[queued] === again.lumaMean[row] &&
      batch.noiseVarianceScore[queued] === again.noiseVarianceScore[row];
  }

  async #release(): Promise<void> {
    this.#isOver = true;
    this.#jpegs.clear();
    this.#arrived = [];
    await this.#run[Symbol.asyncDispose]();
    this.#closed.resolve();
  }

  /** Rows that may be decoded before anyone asks for them. */
  get #readAhead(): number {
    const { chunks } = this.#request;
    return chunks.by === "count" ? Math.min(READ_AHEAD_MAX, Math.max(64, 2 * chunks.size)) : READ_AHEAD_MAX;
  }

  /** Rows after which a picture is no longer waited for: the encoder has two others in hand, and both pipes are short. */
  get #patience(): number {
    return this.#request.chunks.by === "count" ? 4 * this.#request.chunks.size + 64 : 0;
  }
}

/** A frame that no longer matters. */
const PASSED = -1;
const BATCH_ROWS = 64;
const READ_AHEAD_MAX = 512;
/** Far below the distance of any two frames, far above what a double loses. */
const TIME_TOLERANCE_MS = 0.1;
/** Frames that lean on ones before the key frame of their own group are decoded right from the group before. */
const SEEK_MARGIN_S = 1;
/** What a model endpoint takes of one picture, with room. Only noise beyond 1080p reaches it. */
const PICTURE_BYTES_MAX = 4 * 2 ** 20;
/** Longer edge and quantizer of a picture that was larger: sheer noise of this size has 2 MiB. */
const SMALLER_EDGE = 2048;
const SMALLER_QUANTIZER = 31;
/** Pixels that the candidates of a chunk may have together: 32 frames of 1080p, some 10 MB of JPEG. */
const CANDIDATE_PIXELS = 32 * 1920 * 1080;
/** How far the length that the container says may be off, beside two frames: sound often ends a little later. */
const LENGTH_TOLERANCE_S = 0.1;
/**
 * Longest silence of an ffmpeg that is waited for. One frame in five seconds of 4K that decodes at three frames a second
 * takes 100 s; a network that is silent ends after 10 s by itself.
 */
const STALL_MS = 120_000;

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
 * From where on every frame becomes a picture: from the chunk in which the medium ends, as its container says. That costs
 * less than a second ffmpeg, and a container that errs costs only that. Any chunk of an endless source may be its last.
 */
function candidatesFrom(request: FrameStreamRequest, chunkSize: number, size: JpegSize): number | null {
  if (chunkSize * size.width * size.height > CANDIDATE_PIXELS) return null;
  if (isEndless(request)) return 0;
  const { info: { durationMs }, plan: { sampleFps } } = request;
  if (durationMs === null) return null;
  const frames = durationMs / 1000 * sampleFps - Math.max(2, LENGTH_TOLERANCE_S * sampleFps);
  return Math.max(0, Math.floor(frames / chunkSize)) * chunkSize;
}

function smaller({ width, height }: JpegSize): JpegSize {
  const share = Math.min(1, SMALLER_EDGE / Math.max(width, height));
  const even = (edge: number) => Math.max(2, Math.floor(edge * share / 2) * 2);
  return { width: even(width), height: even(height), quantizer: SMALLER_QUANTIZER };
}
