/** Which frames of a stream become pictures, in words for ffmpeg's `select` and in frame numbers for us. */

import type { ImageCoordinates } from "../../model/frames/coordinates.ts";
import { chosenPositions } from "../../model/reason/chunks.ts";
import type { JpegSize } from "./decode_args.ts";

/**
 * The chosen frames of all chunks (contract 6.2). They are known beforehand for full chunks and for the chunk that
 * `maxFrames` cuts short; where the medium ends within a chunk, nobody knows before. From `candidatesFrom` on, a multiple
 * of `size`, every frame becomes a picture, so that the right ones are there however the last chunk ends.
 *
 * ```
 *   size 5, two a chunk, maxFrames 13      0...4 5...9 0.2        0 4 5 9 10 12
 *   the same, candidatesFrom 10            0...4 5...9 xxx        0 4 5 9 10 11 12
 * ```
 */
export class FrameChoice {
  /** ffmpeg's expression over the frame number n, true for the frames of this choice. */
  readonly select: string;
  /** Pictures up to `maxFrames`. */
  readonly total: number;

  readonly #size: number;
  readonly #positions: readonly number[];
  /** The first frame of the part that does not repeat, and which frames are chosen there; null is every one. */
  readonly #restFrom: number;
  readonly #rest: readonly number[] | null;

  constructor(options: { size: number; perChunk: number; maxFrames: number; candidatesFrom: number | null }) {
    const { size, perChunk, maxFrames, candidatesFrom } = options;
    this.#size = size;
    this.#positions = chosenPositions(size, perChunk);
    const hasCandidates = candidatesFrom !== null && candidatesFrom < maxFrames;
    this.#restFrom = hasCandidates ? candidatesFrom : maxFrames - maxFrames % size;
    this.#rest = hasCandidates
      ? null
      : chosenPositions(maxFrames % size, perChunk).map((position) => this.#restFrom + position);
    const repeated = this.#positions.map((position) => `eq(mod(n,${size}),${position})`).join("+");
    const rest = this.#rest === null ? "1" : this.#rest.map((frame) => `eq(n,${frame})`).join("+") || "0";
    this.select = `if(lt(n,${this.#restFrom}),${repeated},${rest})`;
    this.total = this.#repeatedTotal + (this.#rest?.length ?? maxFrames - this.#restFrom);
  }

  /** The number of the frame that becomes picture `index`, counting from 0. */
  frameOf(index: number): number {
    const inRest = index - this.#repeatedTotal;
    if (inRest >= 0) return this.#rest?.[inRest] ?? this.#restFrom + inRest;
    const perChunk = this.#positions.length;
    return Math.floor(index / perChunk) * this.#size + this.#positions[index % perChunk]!;
  }

  get #repeatedTotal(): number {
    return this.#restFrom / this.#size * this.#positions.length;
  }
}

/** The frame numbers of a list, as an expression. */
export function selectFrames(frames: readonly number[]): string {
  return frames.map((frame) => `eq(n,${frame})`).join("+");
}

/** The frames shown at these times of the decode's clock, as an expression. */
export function selectTimes(timesS: readonly number[]): string {
  return timesS.map((timeS) =>
    `between(t,${(timeS - EPSILON_S).toFixed(9)},${(timeS + EPSILON_S).toFixed(9)})`
  )
    .join("+");
}

/** Below the finest tick of any container, above the rounding of a double. */
const EPSILON_S = 2e-6;

/**
 * The size of the pictures: the region that is looked at, shrunk so that its longer edge is at most `maxEdge`, never
 * enlarged, both edges even. `quality` is that of the JPEG world, 1 to 100.
 */
export function jpegSize(
  { resolved_region: { width, height } }: ImageCoordinates,
  { maxEdge, quality = DEFAULT_QUALITY }: { readonly maxEdge: number | null; readonly quality?: number },
): JpegSize {
  const share = Math.min(1, (maxEdge ?? Infinity) / Math.max(width, height));
  const even = (edge: number) => Math.max(2, Math.floor(edge * share / 2 + ROUNDING) * 2);
  return { width: even(width), height: even(height), quantizer: quantizerOf(quality) };
}

/** ffmpeg's quantizer, 2 to 31, for a quality of the JPEG world, 1 to 100. */
export function quantizerOf(quality: number): number {
  const standardScale = quality < 50 ? 50 / quality : (200 - 2 * quality) / 100;
  return Math.min(31, Math.max(2, Math.round(QUANTIZER_PER_SCALE * standardScale)));
}

const DEFAULT_QUALITY = 80;
/** ffmpeg's quantizer 10 is about the standard tables as they are, quality 50. */
const QUANTIZER_PER_SCALE = 10;
/** So that 1920 * (640 / 1920) is 640 in spite of binary fractions. */
const ROUNDING = 1e-9;
