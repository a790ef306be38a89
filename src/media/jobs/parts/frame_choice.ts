/** Which frames of a stream become JPEGs, as an expression for ffmpeg's `select` filter, and how large they
 * are.
 */

import * as z from "zod";
import type { ImageCoordinates } from "../../../model/frames/coordinates.ts";
import { chosenPositions } from "../../../model/reason/chunks.ts";
import { oneToInt32, upToInt32 } from "./job_fields.ts";

/** Longest list of single frames: a chunk has fewer. */
const FRAMES_MAX = 1024;

/** Frames of a decode as data. */
export const chosenFrames = z.discriminatedUnion("by", [
  z.strictObject({ by: z.literal("frames"), frames: z.array(upToInt32).min(1).max(FRAMES_MAX).readonly() }),
  z.strictObject({
    by: z.literal("times"),
    timesS: z.array(z.number().min(-1e9).max(1e9)).min(1).max(FRAMES_MAX).readonly(),
  }),
  z.strictObject({
    by: z.literal("chunks"),
    size: oneToInt32.max(FRAMES_MAX),
    perChunk: oneToInt32.max(FRAMES_MAX),
    maxFrames: oneToInt32,
    candidatesFrom: upToInt32.nullable(),
  }),
]);

export type ChosenFrames = z.infer<typeof chosenFrames>;

/**
 * The chosen frames of all chunks. See docs/reason.md#chunks. They are known in advance for full chunks and
 * for the chunk that `maxFrames` cuts short, but not for a chunk in which the medium ends. From
 * `candidatesFrom` on, a multiple of `size`, every frame becomes a JPEG, so that the right ones exist
 * wherever the last chunk ends.
 *
 * ```
 *   size 5, two a chunk, maxFrames 13      0...4 5...9 0.2        0 4 5 9 10 12
 *   the same, candidatesFrom 10            0...4 5...9 xxx        0 4 5 9 10 11 12
 * ```
 */
export class FrameChoice {
  /** ffmpeg's expression over the frame number n, true for the frames of this choice. */
  readonly select: string;
  /** The choice of `select` as data. */
  readonly selection: ChosenFrames;
  /** The number of JPEGs up to `maxFrames`. */
  readonly total: number;

  readonly #size: number;
  readonly #positions: readonly number[];
  /**
   * The first frame of the part that does not repeat, and which frames are chosen there; null is all of them.
   */
  readonly #restFrom: number;
  readonly #rest: readonly number[] | null;

  constructor(options: { size: number; perChunk: number; maxFrames: number; candidatesFrom: number | null }) {
    const { size, perChunk, maxFrames, candidatesFrom } = options;
    this.selection = { by: "chunks", size, perChunk, maxFrames, candidatesFrom };
    this.#size = size;
    this.#positions = chosenPositions(size, perChunk);
    const hasCandidates = candidatesFrom !== null && candidatesFrom < maxFrames;
    this.#restFrom = hasCandidates ? candidatesFrom : maxFrames - maxFrames % size;
    this.#rest = hasCandidates
      ? null
      : chosenPositions(maxFrames % size, perChunk).map((position) => this.#restFrom + position);
    const repeated = isOneOf(`mod(n,${size})`, this.#positions);
    const rest = this.#rest === null ? "1" : isOneOf("n", this.#rest);
    // The first frame tells that ffmpeg has begun to count anew, whichever frames are chosen.
    this.select = `if(lt(n,${this.#restFrom}),max(not(n),${repeated}),${rest})`;
    this.total = this.#repeatedTotal + (this.#rest?.length ?? maxFrames - this.#restFrom) +
      (this.#restFrom > 0 && this.#positions[0] !== 0 ? 1 : 0);
  }

  get #repeatedTotal(): number {
    return this.#restFrom / this.#size * this.#positions.length;
  }
}

/** Frames of a decode as an expression for ffmpeg's `select` filter. */
export function selectText(selection: ChosenFrames): string {
  switch (selection.by) {
    case "frames":
      return selectFrames(selection.frames);
    case "times":
      return selectTimes(selection.timesS);
    case "chunks":
      return new FrameChoice(selection).select;
  }
}

/** The frame numbers of a list, as an expression. */
function selectFrames(frames: readonly number[]): string {
  return isOneOf("n", frames);
}

/** The frames at these times on the clock of the decode, as an expression. */
function selectTimes(timesS: readonly number[]): string {
  const ranges = timesS.toSorted((left, right) => left - right).map((timeS) =>
    [
      (timeS - EPSILON_S).toFixed(9),
      (timeS + EPSILON_S).toFixed(9),
    ] as const
  );
  return isInOneOf("t", ranges);
}

/** Whether a value is one of some whole numbers, which rise, as an expression. */
function isOneOf(value: string, numbers: readonly number[]): string {
  const ranges: [number, number][] = [];
  for (const number of numbers) {
    const range = ranges.at(-1);
    if (range && number <= range[1] + 1) range[1] = number;
    else ranges.push([number, number]);
  }
  return isInOneOf(value, ranges);
}

/**
 * Whether a value is in one of some ranges, which rise, as an expression. ffmpeg takes no more than some
 * hundred terms in a row, so it is a tree, which is also faster.
 */
function isInOneOf<Bound extends number | string>(
  value: string,
  ranges: readonly (readonly [Bound, Bound])[],
): string {
  if (ranges.length === 0) return "0";
  if (ranges.length === 1) return `between(${value},${ranges[0]![0]},${ranges[0]![1]})`;
  const middle = ranges.length >> 1;
  const [lower, upper] = [ranges.slice(0, middle), ranges.slice(middle)];
  return `if(lt(${value},${upper[0]![0]}),${isInOneOf(value, lower)},${isInOneOf(value, upper)})`;
}

/**
 * Tolerance of times, seconds: smaller than the finest tick of any container, larger than the rounding error
 * of a double.
 */
const EPSILON_S = 2e-6;

/** Size and quality of JPEGs; width and height are even. */
export interface JpegSize {
  readonly width: number;
  readonly height: number;
  /** Quantizer of ffmpeg's MJPEG encoder, 2 (best) to 31. */
  readonly quantizer: number;
}

/**
 * The size of the JPEGs: that of the analysed region, scaled down where its longer edge is above `maxEdge`,
 * never enlarged, both edges even. `quality` is on the usual JPEG scale, 1 to 100.
 */
export function jpegSize(
  { resolved_region: { width, height } }: ImageCoordinates,
  { maxEdge, quality = DEFAULT_QUALITY }: { readonly maxEdge: number | null; readonly quality?: number },
): JpegSize {
  const share = Math.min(1, (maxEdge ?? Infinity) / Math.max(width, height));
  const even = (edge: number) => Math.max(2, Math.floor(edge * share / 2 + ROUNDING) * 2);
  return { width: even(width), height: even(height), quantizer: quantizerOf(quality) };
}

/** ffmpeg's quantizer, 2 to 31, for a quality on the usual JPEG scale, 1 to 100. */
export function quantizerOf(quality: number): number {
  const standardScale = quality < 50 ? 50 / quality : (200 - 2 * quality) / 100;
  return Math.min(31, Math.max(2, Math.round(QUANTIZER_PER_SCALE * standardScale)));
}

const DEFAULT_QUALITY = 80;
/** ffmpeg's quantizer for the standard tables without scaling, which is quality 50. */
const QUANTIZER_PER_SCALE = 10;
/**
 * What is added before rounding down, so that 1920 * (640 / 1920) is 640 and not a little less in binary
 * arithmetic.
 */
const ROUNDING = 1e-9;
