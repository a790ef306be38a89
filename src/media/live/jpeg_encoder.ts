/** JPEGs of raw pictures with little delay: an ffmpeg for each size of picture that waits for the next one. */

import type { Tools } from "../../base/program_paths.ts";
import type { World } from "../../base/world.ts";
import type { Extent, Region } from "../../model/frames/coordinates.ts";
import { LIMITS } from "../../model/limits.ts";
import { quantizerOf } from "../recorded/frame_choice.ts";
import { readJpegs } from "../formats/jpeg_stream.ts";
import type { FramePixels } from "./frame_ring.ts";
import { type RunningTool, start } from "../process.ts";

export interface JpegEncodersOptions {
  readonly tools: Pick<Tools, "ffmpeg" | "prlimit">;
  readonly world: World;
  /** ffmpegs at once, one for each size and range in use; default 4. Each takes about 50 MB. */
  readonly maxEncoders?: number;
}

/** No JPEG could be made; the next one may be. */
export class JpegFailed extends Error {
  override readonly name = "JpegFailed";
}

const ENCODERS_MAX = 4;
/** Pictures that wait, in all; each is a copy of its pixels. */
const WAITING_MAX = 16;
const DEADLINE_MS = 2_000;
const IDLE_MS = 30_000;
const ERROR_BYTES = 4 << 10;
const CPU_SECONDS = 30 * 24 * 3600;
const ADDRESS_SPACE_BYTES = 2 * 2 ** 30;

/** A place for a new ffmpeg is made by ending the one that was not used for longest; a busy one is waited for. */
export class JpegEncoders implements AsyncDisposable {
  readonly #options: JpegEncodersOptions;
  readonly #encoders = new Map<string, JpegEncoder>();
  /** Ended, or about to be, until they are gone. */
  readonly #ending = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #waiting = 0;

  constructor(options: JpegEncodersOptions) {
    this.#options = options;
  }

  /**
   * A JPEG of `region` (even position and size, pixels) of the picture, whose bytes are copied before this returns; null
   * when it would have more than 2 MiB. A region of 2x2 has none either. Rejects with JpegFailed after two seconds at the latest.
   */
  async encode(picture: FramePixels, region: Region): Promise<Uint8Array<ArrayBuffer> | null> {
    if (this.#closing.signal.aborted) throw new JpegFailed("the encoders are closed");
    if (this.#waiting >= WAITING_MAX) throw new JpegFailed(`${WAITING_MAX} pictures are waiting already`);
    const shape = { width: region.width, height: region.height, isFullRange: picture.isFullRange };
    // ffmpeg waits for more than the 6 bytes that such a picture has.
    if (shape.width * shape.height < 8) throw new JpegFailed("a picture of 2x2 pixels shows nothing");
    const pixels = cutOut(picture, region);
    this.#waiting++;
    const deadline = new AbortController();
    try {
      const jpeg = await Promise.race([
        this.#encoded(shape, pixels, deadline.signal),
        this.#options.world.sleep(DEADLINE_MS, deadline.signal).then(() => {
          throw new JpegFailed("it took too long");
        }),
      ]);
      return jpeg.length > LIMITS.live.jpegBytesMax ? null : jpeg;
    } finally {
      this.#waiting--;
      deadline.abort(new JpegFailed("it took too long"));
    }
  }

  /** Starts the ffmpeg for pictures of this size while nobody waits for it yet; does nothing where all places are taken. */
  prepare({ width, height }: Extent): void {
    const shape = { width, height, isFullRange: false };
    const isFree = !this.#closing.signal.aborted && !this.#encoders.has(keyOf(shape));
    if (isFree && this.#encoders.size < this.#encodersMax) this.#begin(keyOf(shape), shape);
  }

  /** Ends all of them; what waits is rejected. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#closing.abort(new JpegFailed("the encoders are closed"));
    for (const encoder of this.#encoders.values()) encoder.end();
    while (this.#ending.size > 0) await Promise.all(this.#ending);
  }

  /** An encoder that ended by itself, or was just being ended, is replaced once. */
  async #encoded(shape: Shape, pixels: Uint8Array, deadline: AbortSignal): Promise<Uint8Array<ArrayBuffer>> {
    for (let isSecond = false;; isSecond = true) {
      const encoder = await this.#encoderFor(shape, deadline);
      // One that has not answered in time is stuck: the next picture gets another.
      const onDeadline = () => encoder.end();
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
        return this.#begin(key, shape);
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
    return this.#options.maxEncoders ?? ENCODERS_MAX;
  }

  #begin(key: string, shape: Shape): JpegEncoder {
    const encoder = new JpegEncoder({
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

/** One ffmpeg: raw pictures in, JPEGs out in the same order. */
class JpegEncoder {
  readonly ended: Promise<void>;
  lastUsedMs: number;
  /** It was told to end, or has. */
  isEnding = false;

  readonly #world: World;
  readonly #tool: RunningTool;
  readonly #writer: WritableStreamDefaultWriter<Uint8Array>;
  readonly #waiting: PromiseWithResolvers<Uint8Array<ArrayBuffer>>[] = [];
  readonly #gone = new AbortController();
  #change = Promise.withResolvers<void>();

  constructor(
    options: JpegEncodersOptions & {
      readonly shape: Shape;
      readonly signal: AbortSignal;
      /** Called when it is gone, before those who wait are told, so that they find its place free. */
      readonly onGone: () => void;
    },
  ) {
    const { tools, world, shape, signal } = options;
    this.#world = world;
    this.lastUsedMs = world.monotonicMs();
    this.#tool = start(tools.ffmpeg, argsOf(shape), {
      signal,
      hasStdin: true,
      hasStdout: true,
      maxStderrBytes: ERROR_BYTES,
      limits: {
        prlimit: tools.prlimit,
        cpuSeconds: CPU_SECONDS,
        addressSpaceBytes: ADDRESS_SPACE_BYTES,
      },
    });
    this.#writer = this.#tool.stdin!.getWriter();
    this.#writer.closed.catch(() => {/* `ended` tells */});
    this.ended = this.#finish(options.onGone);
    this.#endWhenIdle();
  }

  get isIdle(): boolean {
    return this.#waiting.length === 0;
  }

  /** Settles when it has become idle or has ended. */
  get change(): Promise<void> {
    return this.#change.promise;
  }

  encode(pixels: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
    const made = Promise.withResolvers<Uint8Array<ArrayBuffer>>();
    this.#waiting.push(made);
    this.lastUsedMs = this.#world.monotonicMs();
    this.#writer.write(pixels).catch(() => {/* it has ended, and whoever waits is told then */});
    return made.promise;
  }

  end(): void {
    this.isEnding = true;
    this.#tool.kill("killed");
  }

  async #finish(onGone: () => void): Promise<void> {
    await readJpegs(this.#tool.stdout!, {
      bytes: () => {},
      picture: ({ jpeg }) => {
        this.#waiting.shift()?.resolve(jpeg);
        if (this.isIdle) this.#notify();
      },
    }).catch(() => this.end());
    this.isEnding = true;
    await this.#tool.ended;
    onGone();
    // A pipe that nobody reads any more keeps its descriptor until it is closed.
    await this.#writer.abort().catch(() => {/* it was closed */});
    this.#gone.abort();
    for (const made of this.#waiting.splice(0)) made.reject(new JpegFailed("the encoder has ended"));
    this.#notify();
  }

  async #endWhenIdle(): Promise<void> {
    const { signal } = this.#gone;
    while (!signal.aborted) {
      await this.#world.sleep(IDLE_MS, signal).catch(() => {/* it has ended */});
      if (this.isIdle && this.#world.monotonicMs() - this.lastUsedMs >= IDLE_MS) this.end();
    }
  }

  #notify(): void {
    this.#change.resolve();
    this.#change = Promise.withResolvers();
  }
}

/** JPEG is full range, video mostly is not; sizes stay, so the quickest method of the scaler is exact. */
function argsOf({ width, height, isFullRange }: Shape): string[] {
  const range = `scale=in_range=${isFullRange ? "full" : "limited"}:out_range=full:flags=neighbor`;
  return [
    ...["-nostdin", "-v", "error", "-threads", "1", "-probesize", "32"],
    ...["-f", "rawvideo", "-pixel_format", "yuv420p", "-video_size", `${width}x${height}`, "-i", "pipe:0"],
    ...["-map", "0:v:0", "-threads", "1", "-filter_threads", "1", "-fps_mode", "passthrough"],
    ...["-vf", `${range},format=yuvj420p,setsar=1`],
    ...[
      "-c:v",
      "mjpeg",
      "-q:v",
      String(quantizerOf(LIMITS.live.jpegQuality)),
      "-huffman",
      "default",
      "-flags:v",
      "+bitexact",
    ],
    ...["-flush_packets", "1", "-f", "nut", "-write_index", "0", "pipe:1"],
  ];
}

/** A copy of the region's pixels, planes one behind the other. */
function cutOut(picture: FramePixels, { x, y, width, height }: Region): Uint8Array<ArrayBuffer> {
  const { bytes } = picture;
  if (width === picture.width && height === picture.height) return bytes.slice();
  const pixels = new Uint8Array(width * height * 3 / 2);
  const chroma = { width: Math.ceil(picture.width / 2), height: Math.ceil(picture.height / 2) };
  const lumaBytes = picture.width * picture.height;
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
  copy(0, picture.width, [x, y, width, height]);
  for (const plane of [lumaBytes, lumaBytes + chroma.width * chroma.height]) {
    copy(plane, chroma.width, [x / 2, y / 2, width / 2, height / 2]);
  }
  return pixels;
}
