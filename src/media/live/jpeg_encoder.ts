/** Encodes single frames as JPEGs with little delay: for each frame size, an ffmpeg runs and waits for the
 * next frame.
 */

import { Deadline, OutOfTime, pause, unlessAborted } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { Extent, Region } from "../../model/frames/coordinates.ts";
import { LIMITS } from "../../contract/limits.ts";
import { readJpegs } from "../containers/jpeg_stream.ts";
import type { RunningTool } from "../process.ts";
import type { ToolRunner } from "../jobs/runner.ts";
import type { FramePixels } from "./frame_ring.ts";

export interface JpegEncoderPoolOptions {
  readonly runner: ToolRunner;
  readonly world: World;
  /** ffmpegs at the same time, one for each size and range in use; default 4. Each takes about 50 MB. */
  readonly maxEncoders?: number;
}

/** A JPEG could not be made. A later one may succeed. */
export class JpegFailed extends Error {
  override readonly name = "JpegFailed";
}

const ENCODERS_DEFAULT = 4;
/** Frames that may wait in all encoders together; for each there is a copy of its pixels. */
const WAITING_MAX = 16;
const DEADLINE_MS = 2_000;
/**
 * Longest wait for the first JPEG of an ffmpeg, milliseconds. On a busy machine it may need longer to start
 * than a frame may wait, and started anew it would need as long again.
 */
const START_MS = 10_000;
const IDLE_MS = 30_000;
const ERROR_BYTES = 4 << 10;

/**
 * The encoders, one for each size and range. If all are in use and another size is needed, the idle encoder
 * that was not used for longest is replaced.
 */
export class JpegEncoderPool implements AsyncDisposable {
  readonly #options: JpegEncoderPoolOptions;
  readonly #encoders = new Map<string, JpegEncoder>();
  /** The `ended` of every encoder that has not ended yet. */
  readonly #ending = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #waiting = 0;

  constructor(options: JpegEncoderPoolOptions) {
    this.#options = options;
  }

  /**
   * A JPEG of `region` (pixels, even position and size) of the frame; null when it would have more than
   * LIMITS.live.jpegBytesMax. The pixels are copied before this returns. Rejects with JpegFailed, after two
   * seconds at the latest, and for a region of 2x2.
   */
  async encode(frame: FramePixels, region: Region): Promise<Uint8Array<ArrayBuffer> | null> {
    if (this.#closing.signal.aborted) throw new JpegFailed("the encoders are closed");
    if (this.#waiting >= WAITING_MAX) throw new JpegFailed(`${WAITING_MAX} frames are waiting already`);
    const shape = { width: region.width, height: region.height, isFullRange: frame.isFullRange };
    // Such a frame has 6 bytes, and ffmpeg waits for more before it encodes.
    if (shape.width * shape.height < 8) throw new JpegFailed("a frame of 2x2 pixels cannot be encoded");
    const pixels = cutOut(frame, region);
    this.#waiting++;
    using deadline = new Deadline(this.#options.world, DEADLINE_MS);
    // An encoder that starts holds the pixels longer than this waits.
    const encoded = this.#encoded(shape, pixels, deadline.signal).finally(() => this.#waiting--);
    try {
      const jpeg = await unlessAborted(encoded, deadline.signal);
      return jpeg.length > LIMITS.live.jpegBytesMax ? null : jpeg;
    } catch (error) {
      throw error instanceof OutOfTime ? new JpegFailed("it took too long") : error;
    }
  }

  /**
   * Starts the ffmpeg for regions of this size in advance; does nothing where there are `maxEncoders`
   * already.
   */
  prepare({ width, height }: Extent, isFullRange = false): void {
    const shape = { width, height, isFullRange };
    const isNew = !this.#closing.signal.aborted && !this.#encoders.has(keyOf(shape));
    if (isNew && this.#encoders.size < this.#encodersMax) this.#startEncoder(keyOf(shape), shape);
  }

  /** Ends all encoders; waiting calls of `encode` reject. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new JpegFailed("the encoders are closed"));
    for (const encoder of this.#encoders.values()) encoder.end();
    while (this.#ending.size > 0) await Promise.all(this.#ending);
  }

  /** An encoder that ends during the encoding is replaced once. */
  async #encoded(shape: Shape, pixels: Uint8Array, deadline: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    for (let isSecond = false;; isSecond = true) {
      const encoder = await this.#encoderFor(shape, deadline);
      // An encoder that has started and gives no result in time hangs, so the next frame gets another one.
      const onDeadline = () => encoder.isStarting || encoder.end();
      deadline.addEventListener("abort", onDeadline, { once: true });
      try {
        return await encoder.encode(pixels);
      } catch (error) {
        if (isSecond || deadline.aborted || this.#closing.signal.aborted) throw error;
      } finally {
        deadline.removeEventListener("abort", onDeadline);
      }
    }
  }

  async #encoderFor(shape: Shape, deadline: AbortSignal): Promise<JpegEncoder> {
    const key = keyOf(shape);
    for (;;) {
      this.#closing.signal.throwIfAborted();
      deadline.throwIfAborted();
      const known = this.#encoders.get(key);
      if (known && !known.isEnding) return known;
      if (!known && this.#encoders.size < this.#encodersMax) {
        return this.#startEncoder(key, shape);
      }
      const others = [...this.#encoders.values()];
      if (!others.some((encoder) => encoder.isEnding)) {
        const idle = others.filter((encoder) => encoder.isIdle);
        idle.toSorted((one, other) => one.lastUsedMs - other.lastUsedMs)[0]?.end();
      }
      await Promise.race(others.map((encoder) => encoder.change));
    }
  }

  get #encodersMax(): number {
    return this.#options.maxEncoders ?? ENCODERS_DEFAULT;
  }

  #startEncoder(key: string, shape: Shape): JpegEncoder {
    const encoder = JpegEncoder.start({
      ...this.#options,
      shape,
      signal: this.#closing.signal,
      onGone: () => this.#encoders.delete(key),
    });
    this.#encoders.set(key, encoder);
    this.#ending.add(encoder.ended);
    encoder.ended.finally(() => this.#ending.delete(encoder.ended));
    return encoder;
  }
}

interface Shape {
  readonly width: number;
  readonly height: number;
  readonly isFullRange: boolean;
}

function keyOf({ width, height, isFullRange }: Shape): string {
  return `${width}x${height} ${isFullRange}`;
}

interface EncoderOptions extends JpegEncoderPoolOptions {
  readonly shape: Shape;
  readonly signal: AbortSignal;
  /** Called when it has ended, before waiting calls reject, so that they find its place free. */
  readonly onGone: () => void;
}

/** One ffmpeg: raw frames in, JPEGs out in the same order. */
class JpegEncoder {
  readonly ended: Promise<void>;
  lastUsedMs: number;
  /** Whether it is ending or has ended. */
  isEnding = false;
  /** Whether it has given no JPEG yet, and may still take its time. */
  isStarting = true;

  readonly #world: World;
  readonly #tool: RunningTool;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #waiting: PromiseWithResolvers<Uint8Array<ArrayBuffer>>[] = [];
  readonly #gone = new AbortController();
  #change = Promise.withResolvers<void>();

  private constructor(tool: RunningTool, { world, onGone }: EncoderOptions) {
    this.#world = world;
    this.lastUsedMs = world.monotonicMs();
    this.#tool = tool;
    this.#writer = tool.stdin!.getWriter();
    this.#writer.closed.catch(() => {/* see `ended` */});
    this.ended = this.#finish(onGone);
    this.#endWhenIdle();
    this.#limitStart();
  }

  /** Throws when ffmpeg cannot be started. */
  static start(options: EncoderOptions): JpegEncoder {
    const { runner, shape, signal } = options;
    const tool = runner.start({ kind: "encode_jpegs", ...shape }, { signal, maxStderrBytes: ERROR_BYTES });
    return new JpegEncoder(tool, options);
  }

  get isIdle(): boolean {
    return this.#waiting.length === 0;
  }

  /** Resolves when it has become idle or has ended. */
  get change(): Promise<void> {
    return this.#change.promise;
  }

  encode(pixels: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
    const made = Promise.withResolvers<Uint8Array<ArrayBuffer>>();
    this.#waiting.push(made);
    this.lastUsedMs = this.#world.monotonicMs();
    this.#writer.write(pixels).catch(() => {/* it has ended, and `#finish` rejects the promise */});
    return made.promise;
  }

  end(): void {
    this.isEnding = true;
    this.#tool.kill("killed");
  }

  async #finish(onGone: () => void): Promise<void> {
    await readJpegs(this.#tool.stdout!, {
      bytes: () => {},
      jpeg: ({ jpeg }) => {
        this.isStarting = false;
        this.#waiting.shift()?.resolve(jpeg);
        if (this.isIdle) this.#notify();
      },
    }).catch(() => this.end());
    this.isEnding = true;
    await this.#tool.ended;
    onGone();
    // The descriptor of a pipe without a reader stays open until it is closed here.
    await this.#writer.abort().catch(() => {/* it was closed */});
    this.#gone.abort();
    for (const made of this.#waiting.splice(0)) made.reject(new JpegFailed("the encoder has ended"));
    this.#notify();
  }

  async #endWhenIdle(): Promise<void> {
    while (await pause(this.#world, IDLE_MS, this.#gone.signal)) {
      if (this.isIdle && this.#world.monotonicMs() - this.lastUsedMs >= IDLE_MS) this.end();
    }
  }

  /**
   * Ends the encoder if its start takes too long: frames that have waited since the start would wait for ever
   * in one that hangs.
   */
  async #limitStart(): Promise<void> {
    if (!await pause(this.#world, START_MS, this.#gone.signal)) return;
    if (this.isStarting && !this.isIdle) this.end();
    this.isStarting = false;
  }

  #notify(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers();
  }
}

/** A copy of the region's pixels, the planes one after the other. */
function cutOut(frame: FramePixels, { x, y, width, height }: Region): Uint8Array<ArrayBuffer> {
  const { bytes } = frame;
  if (width === frame.width && height === frame.height) return bytes.slice();
  const pixels = new Uint8Array(width * height * 3 / 2);
  const chroma = { width: Math.ceil(frame.width / 2), height: Math.ceil(frame.height / 2) };
  const lumaBytes = frame.width * frame.height;
  let at = 0;
  const copy = (
    plane: number,
    stride: number,
    [left, top, columns, rows]: [number, number, number, number],
  ) => {
    for (let row = top; row < top + rows; row++) {
      const start = plane + row * stride + left;
      pixels.set(bytes.subarray(start, start + columns), at);
      at += columns;
    }
  };
  copy(0, frame.width, [x, y, width, height]);
  for (const plane of [lumaBytes, lumaBytes + chroma.width * chroma.height]) {
    copy(plane, chroma.width, [x / 2, y / 2, width / 2, height / 2]);
  }
  return pixels;
}
