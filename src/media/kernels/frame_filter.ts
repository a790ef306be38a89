/** FrameFilter, the hot path: computes the signals of each reduced frame. Allocates nothing per frame. */

import type { Region } from "../../model/frames/coordinates.ts";
import { CUT_SCORE_THRESHOLD } from "../../model/frames/signals.ts";
import { FRAME_BYTES } from "./frame_planes.ts";
import { CELLS, LUMA_CELLS, PROFILE_VALUES } from "./history_kernel.ts";
import { call, type ExportsOf, loadKernel } from "./load_kernel.ts";

/** Samples of the largest blocks whose borders are looked for. */
const BLOCK_SIZE = 16;

/**
 * One frame's signals. The caller owns the object and `readRow` fills it again, so that reading allocates
 * nothing.
 */
export interface FrameSignals {
  ptsMs: number;
  /** The 64-bit hash in two halves: a BigInt would be an object per frame. */
  hashLow: number;
  hashHigh: number;
  lumaMean: number;
  flickerScore: number;
  ghostingScore: number;
  noiseVarianceScore: number;
  /** The cut score; NaN until it is final, `cutLookahead` frames later. */
  cutScore: number;
}

/** A row for `readRow` to fill. */
export function emptyFrameSignals(): FrameSignals {
  return {
    ptsMs: NaN,
    hashLow: 0,
    hashHigh: 0,
    lumaMean: NaN,
    flickerScore: NaN,
    ghostingScore: NaN,
    noiseVarianceScore: NaN,
    cutScore: NaN,
  };
}

/** What `assembly/frame_filter.ts` exports. The globals are addresses in its memory, except the first two. */
const EXPORTS = {
  RING_ROWS: "global",
  CUT_LOOKAHEAD: "global",
  STAGING: "global",
  STAGING_BYTES: "global",
  PTS_MS: "global",
  HASH: "global",
  LUMA_MEAN: "global",
  FLICKER: "global",
  GHOSTING: "global",
  NOISE: "global",
  CUT_SCORE: "global",
  CELL_SUMS: "global",
  CELL_MOVES: "global",
  BRIGHT_SAMPLES: "global",
  NEWEST_PROFILES: "global",
  ARTIFACT_MEASURES: "global",
  reset: call<() => void>(),
  push: call<(offset: number, ptsMs: number, isRow: number, hasLines: number) => void>(),
  finish: call<() => number>(),
  isCutOpen: call<(frame: number) => number>(),
  scoreSoFar: call<(frame: number) => number>(),
  setPictureSize: call<(width: number, height: number) => void>(),
} as const;
type FilterExports = ExportsOf<typeof EXPORTS>;

/** The measures of one frame, as the kernel leaves them; overwritten by the next frame. */
export interface RangeMeasures {
  /** Sum of the samples of each cell. */
  readonly cellSums: Uint16Array;
  /** Sum of the absolute differences to the frame before, of each luma cell. */
  readonly cellMoves: Uint16Array;
  /** How many luma samples are above 28, as one value; all of them for a frame that is not dark. */
  readonly brightSamples: Int32Array;
  /** PROFILE_VALUES, 7.5 a level. */
  readonly profiles: Int16Array;
}

/** How many numbers the kernel measures of a frame for the detector of faults. */
export const MEASURE_COUNT = 38;

/** The signals of the newest frames in the module's memory: frame i is in slot i % length. */
export interface FilterRing {
  readonly ptsMs: Float64Array<ArrayBuffer>;
  readonly perceptualHash: BigUint64Array<ArrayBuffer>;
  readonly lumaMean: Float32Array<ArrayBuffer>;
  readonly flickerScore: Float32Array<ArrayBuffer>;
  readonly ghostingScore: Float32Array<ArrayBuffer>;
  readonly noiseVarianceScore: Float32Array<ArrayBuffer>;
  readonly cutScore: Float32Array<ArrayBuffer>;
}

/**
 * Computes the signals of frames of 320x180 yuv420p, see docs/frames.md#signals. A decode worker reads
 * decoded bytes directly into `staging` and passes the offset of each frame.
 *
 * ```
 * staging --push--> ring of 4096 frames --> readRow(), cutScore()
 * ```
 */
export class FrameFilter {
  /**
   * The memory into which frames are read, 1 MiB of the module's; the view stays valid for the life of the
   * filter.
   */
  readonly staging: Uint8Array<ArrayBuffer>;
  /** How many frames later the cut score of a frame is final. */
  readonly cutLookahead: number;
  /** What the detectors of ranges need of the newest frame; the next one overwrites it. */
  readonly rangeMeasures: RangeMeasures;
  /** What the detector of faults needs of the newest frame, MEASURE_COUNT values. */
  readonly artifactMeasures: Float32Array;
  readonly ring: FilterRing;
  /** The hashes of `ring` in halves, the lower one first. */
  readonly hashHalves: Uint32Array;

  readonly #module: FilterExports;
  readonly #ringSize: number;
  #frames = 0;
  #isFinished = false;

  protected constructor(module: FilterExports) {
    const ringSize = module.RING_ROWS.value as number;
    const buffer = module.memory.buffer as ArrayBuffer;
    this.#module = module;
    this.#ringSize = ringSize;
    this.ring = ringOf(module, ringSize);
    this.hashHalves = new Uint32Array(buffer, module.HASH.value, ringSize * 2);
    this.staging = new Uint8Array(buffer, module.STAGING.value, module.STAGING_BYTES.value);
    this.cutLookahead = module.CUT_LOOKAHEAD.value;
    this.artifactMeasures = new Float32Array(buffer, module.ARTIFACT_MEASURES.value, MEASURE_COUNT);
    this.rangeMeasures = {
      cellSums: new Uint16Array(buffer, module.CELL_SUMS.value, CELLS),
      cellMoves: new Uint16Array(buffer, module.CELL_MOVES.value, LUMA_CELLS),
      brightSamples: new Int32Array(buffer, module.BRIGHT_SAMPLES.value, 1),
      profiles: new Int16Array(buffer, module.NEWEST_PROFILES.value, PROFILE_VALUES),
    };
  }

  /** Compiles the module and gives it memory of its own. */
  static async load(): Promise<FrameFilter> {
    return new FrameFilter(await loadFilter());
  }

  /** Frames pushed since `reset`. */
  get count(): number {
    return this.#frames;
  }

  /**
   * Tells what part of which picture the next frames were reduced from, for damage that shows a codec's
   * blocks; null where it is not known. This stays when a new stream is started.
   */
  setRegion(region: Region | null): void {
    // A part that does not begin on the grid of the largest blocks has a grid of its own.
    const isOnGrid = region !== null && region.x % BLOCK_SIZE === 0 && region.y % BLOCK_SIZE === 0;
    this.#module.setPictureSize(isOnGrid ? region.width : 0, isOnGrid ? region.height : 0);
  }

  /** Starts a new stream: the next frame is its first one. */
  reset(): void {
    this.#module.reset();
    this.#frames = 0;
    this.#isFinished = false;
  }

  /**
   * Analyses the FRAME_BYTES that start `offset` bytes into `staging`, at any alignment. `ptsMs` is media
   * time. With `hasLines`, the lines of `picture_lines.ts` are right before the frame.
   */
  push(offset: number, ptsMs: number, isRow = true, hasLines = false): void {
    if (!(offset >= 0 && offset <= this.staging.length - FRAME_BYTES)) throw outside(offset);
    this.#module.push(offset, ptsMs, isRow ? 1 : 0, hasLines ? 1 : 0);
    this.#frames++;
  }

  /**
   * To be called when no more frames come: makes the newest cut scores final. `reset` must be called before
   * the next push.
   */
  finish(): void {
    this.#module.finish();
    this.#isFinished = true;
  }

  /**
   * Fills `into` with the signals of frame `index`, which must be one of the newest 4096. Allocates nothing.
   */
  readRow(index: number, into: FrameSignals): void {
    this.checkRow(index);
    const slot = index % this.#ringSize;
    const { ring, hashHalves } = this;
    into.ptsMs = ring.ptsMs[slot]!;
    into.hashLow = hashHalves[2 * slot]!;
    into.hashHigh = hashHalves[2 * slot + 1]!;
    into.lumaMean = ring.lumaMean[slot]!;
    into.flickerScore = ring.flickerScore[slot]!;
    into.ghostingScore = ring.ghostingScore[slot]!;
    into.noiseVarianceScore = ring.noiseVarianceScore[slot]!;
    into.cutScore = ring.cutScore[slot]!;
  }

  /**
   * Whether frame `index` may still become a cut (`CUT_SCORE_THRESHOLD`). False is final. For most frames it
   * is false at once, long before their score is final, so that a live stream rarely has to wait for the
   * look-ahead.
   */
  isCutOpen(index: number): boolean {
    this.checkRow(index);
    if (this.isFinal(index)) {
      return this.ring.cutScore[index % this.#ringSize]! >= CUT_SCORE_THRESHOLD;
    }
    return this.#module.isCutOpen(index) !== 0;
  }

  /**
   * The final cut score of frame `index`; NaN while it is not final, and for frames that have left the ring.
   */
  cutScore(index: number): number {
    if (!(index >= this.#frames - this.#ringSize && index >= 0 && index < this.#frames)) return NaN;
    return this.ring.cutScore[index % this.#ringSize]!;
  }

  /** The cut score of frame `index` as it would be if no frame followed. */
  cutScoreSoFar(index: number): number {
    this.checkRow(index);
    return this.isFinal(index)
      ? this.ring.cutScore[index % this.#ringSize]!
      : Math.fround(this.#module.scoreSoFar(index));
  }

  /** Whether the cut score of a frame no longer changes. */
  isFinal(index: number): boolean {
    return index < this.#frames - this.cutLookahead || this.#isFinished;
  }

  /** Throws for a frame that is not in the ring. */
  checkRow(index: number): void {
    const first = Math.max(0, this.#frames - this.#ringSize);
    if (!(index >= first && index < this.#frames)) {
      throw new RangeError(`Cannot read row ${index}: the ring holds ${first} to ${this.#frames - 1}`);
    }
  }
}

/** The module, with memory of its own. */
export function loadFilter(): Promise<FilterExports> {
  return loadKernel("frame_filter", EXPORTS);
}

function ringOf(module: FilterExports, rows: number): FilterRing {
  const buffer = module.memory.buffer as ArrayBuffer;
  return {
    ptsMs: new Float64Array(buffer, module.PTS_MS.value, rows),
    perceptualHash: new BigUint64Array(buffer, module.HASH.value, rows),
    lumaMean: new Float32Array(buffer, module.LUMA_MEAN.value, rows),
    flickerScore: new Float32Array(buffer, module.FLICKER.value, rows),
    ghostingScore: new Float32Array(buffer, module.GHOSTING.value, rows),
    noiseVarianceScore: new Float32Array(buffer, module.NOISE.value, rows),
    cutScore: new Float32Array(buffer, module.CUT_SCORE.value, rows),
  };
}

function outside(offset: number): RangeError {
  return new RangeError(`Cannot analyse a frame at offset ${offset} as it must lie inside the staging area`);
}
