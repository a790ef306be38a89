/** FrameFilter, the hot path: computes the signals of each reduced frame. Allocates nothing per frame. */

import { CUT_SCORE_THRESHOLD } from "../../model/frames/signals.ts";
import type { SignalColumns } from "../../model/frames/signals.ts";
import { CELLS, LUMA_CELLS, type RangeMeasures } from "../detection/frame_history.ts";
import { copyInto, grown, newColumns, slice } from "./filter_columns.ts";
import type { FilterColumns } from "./filter_columns.ts";
import { type ExportKinds, loadKernel } from "./load_kernel.ts";

export const PLANE_WIDTH = 320;
export const PLANE_HEIGHT = 180;
/** Of the luma plane. */
export const PLANE_BYTES = PLANE_WIDTH * PLANE_HEIGHT;
export const CHROMA_WIDTH = PLANE_WIDTH / 2;
export const CHROMA_HEIGHT = PLANE_HEIGHT / 2;
/** A frame is yuv420p: the planes Y, U and V one after the other, without padding. */
export const FRAME_BYTES = PLANE_BYTES + 2 * CHROMA_WIDTH * CHROMA_HEIGHT;

/** One frame's signals. The caller owns the object and `readRow` fills it again, so that reading allocates nothing. */
export interface FrameSignals {
  ptsMs: number;
  /** The 64-bit hash in two halves: a BigInt would be an object per frame. */
  hashLow: number;
  hashHigh: number;
  lumaMean: number;
  flickerScore: number;
  ghostingScore: number;
  noiseVarianceScore: number;
  /** NaN until it is final, `cutLookahead` frames later. */
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
interface FilterExports {
  readonly memory: WebAssembly.Memory;
  readonly RING_ROWS: WebAssembly.Global;
  readonly CUT_LOOKAHEAD: WebAssembly.Global;
  readonly STAGING: WebAssembly.Global;
  readonly STAGING_BYTES: WebAssembly.Global;
  readonly PTS_MS: WebAssembly.Global;
  readonly HASH: WebAssembly.Global;
  readonly LUMA_MEAN: WebAssembly.Global;
  readonly FLICKER: WebAssembly.Global;
  readonly GHOSTING: WebAssembly.Global;
  readonly NOISE: WebAssembly.Global;
  readonly CUT_SCORE: WebAssembly.Global;
  readonly CELL_SUMS: WebAssembly.Global;
  readonly CELL_MOVES: WebAssembly.Global;
  readonly BRIGHT_SAMPLES: WebAssembly.Global;
  reset(): void;
  push(offset: number, ptsMs: number): void;
  finish(): number;
  isCutOpen(frame: number): number;
  scoreSoFar(frame: number): number;
}

const EXPORTS: ExportKinds<FilterExports> = {
  memory: "memory",
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
  reset: "function",
  push: "function",
  finish: "function",
  isCutOpen: "function",
  scoreSoFar: "function",
};

/**
 * Computes the signals of frames of 320x180 yuv420p, see docs/frames.md#signals. A decode worker reads decoded bytes directly
 * into `staging` and passes the offset of each frame.
 *
 * ```
 * staging --push--> ring of 4096 rows --every 2048 frames--> kept columns --columns()--> the caller's copy
 * ```
 *
 * Half the ring is moved at a time, so the newest half is always in the ring. That is more than the look-ahead of the cut
 * score, so every row that is moved is final. Rows that `takeFinalRows` gave away are not kept.
 */
export class FrameFilter {
  /** 1 MiB of the module's memory; the view stays valid for the life of the filter. */
  readonly staging: Uint8Array<ArrayBuffer>;
  /** How many frames later the cut score of a frame is final. */
  readonly cutLookahead: number;
  /** What the detectors of ranges need of the newest frame; the next one overwrites it. */
  readonly rangeMeasures: RangeMeasures;

  readonly #module: FilterExports;
  readonly #ring: FilterColumns;
  readonly #ringHash: Uint32Array;
  readonly #halves: readonly [FilterColumns, FilterColumns];
  readonly #halfRows: number;
  readonly #keepsRows: boolean;
  #kept: FilterColumns;
  /** Rows below this index are no longer in the ring; they are in `#kept`, if rows are kept. */
  #moved = 0;
  /** Rows below this index were given away by `takeFinalRows` and are not kept. */
  #taken = 0;
  #frames = 0;
  #isFinished = false;

  private constructor(module: FilterExports, keepsRows: boolean) {
    const ringRows = module.RING_ROWS.value as number;
    const buffer = module.memory.buffer as ArrayBuffer;
    this.#module = module;
    this.#keepsRows = keepsRows;
    this.#halfRows = ringRows / 2;
    this.#ring = ringColumns(module, ringRows);
    this.#ringHash = new Uint32Array(buffer, module.HASH.value, ringRows * 2);
    this.#halves = [
      slice(this.#ring, 0, this.#halfRows),
      slice(this.#ring, this.#halfRows, ringRows),
    ];
    this.#kept = newColumns(keepsRows ? ringRows : 0);
    this.staging = new Uint8Array(buffer, module.STAGING.value, module.STAGING_BYTES.value);
    this.cutLookahead = module.CUT_LOOKAHEAD.value;
    this.rangeMeasures = {
      cellSums: new Uint16Array(buffer, module.CELL_SUMS.value, CELLS),
      cellMoves: new Uint16Array(buffer, module.CELL_MOVES.value, LUMA_CELLS),
      brightSamples: new Int32Array(buffer, module.BRIGHT_SAMPLES.value, 1),
    };
  }

  /**
   * Compiles the module and gives it memory of its own. `keepsRows: false` is for endless streams: only the newest
   * half of the ring stays readable and `columns` throws.
   */
  static async load(options: { keepsRows?: boolean } = {}): Promise<FrameFilter> {
    return new FrameFilter(await loadKernel("frame_filter", EXPORTS), options.keepsRows ?? true);
  }

  /** Frames pushed since `reset`. */
  get count(): number {
    return this.#frames;
  }

  /** Starts a new stream: the next frame is its first one. */
  reset(): void {
    this.#module.reset();
    this.#moved = 0;
    this.#taken = 0;
    this.#frames = 0;
    this.#isFinished = false;
  }

  /** Analyses the FRAME_BYTES that start `offset` bytes into `staging`, at any alignment. `ptsMs` is media time. */
  push(offset: number, ptsMs: number): void {
    if (!(offset >= 0 && offset <= this.staging.length - FRAME_BYTES)) throw outside(offset);
    if (this.#frames - this.#moved === 2 * this.#halfRows) this.#moveHalf();
    this.#module.push(offset, ptsMs);
    this.#frames++;
  }

  /** No more frames come: makes the newest cut scores final. `reset` must be called before the next push. */
  finish(): void {
    this.#module.finish();
    this.#isFinished = true;
  }

  /** Fills `into` with the signals of frame `index`, which must be in the newest half of the ring. Allocates nothing. */
  readRow(index: number, into: FrameSignals): void {
    this.#checkRow(index);
    const slot = index % (2 * this.#halfRows);
    const ring = this.#ring;
    into.ptsMs = ring.ptsMs[slot]!;
    into.hashLow = this.#ringHash[2 * slot]!;
    into.hashHigh = this.#ringHash[2 * slot + 1]!;
    into.lumaMean = ring.lumaMean[slot]!;
    into.flickerScore = ring.flickerScore[slot]!;
    into.ghostingScore = ring.ghostingScore[slot]!;
    into.noiseVarianceScore = ring.noiseVarianceScore[slot]!;
    into.cutScore = ring.cutScore[slot]!;
  }

  /**
   * Whether frame `index` may still become a cut (`CUT_SCORE_THRESHOLD`). False is final. For most frames it is false at
   * once, long before their score is final, so that a live stream rarely has to wait for the look-ahead.
   */
  isCutOpen(index: number): boolean {
    this.#checkRow(index);
    if (index < this.#frames - this.cutLookahead || this.#isFinished) {
      return this.#ring.cutScore[index % (2 * this.#halfRows)]! >= CUT_SCORE_THRESHOLD;
    }
    return this.#module.isCutOpen(index) !== 0;
  }

  /** The final cut score of frame `index`; NaN while it is not final, and for frames that have left the ring. */
  cutScore(index: number): number {
    if (!(index >= this.#moved && index < this.#frames)) return NaN;
    return this.#ring.cutScore[index % (2 * this.#halfRows)]!;
  }

  /** The cut score of frame `index` as it would be if no frame followed. */
  cutScoreSoFar(index: number): number {
    this.#checkRow(index);
    const isFinal = index < this.#frames - this.cutLookahead || this.#isFinished;
    return isFinal
      ? this.#ring.cutScore[index % (2 * this.#halfRows)]!
      : Math.fround(this.#module.scoreSoFar(index));
  }

  /** Copies of all rows since `reset`. Before `finish` the newest cut scores are NaN, as they are not final yet. */
  columns(): SignalColumns & { readonly cutScore: Float32Array } {
    if (!this.#keepsRows) {
      throw new Error("Cannot give columns as the filter was loaded without keeping rows");
    }
    if (this.#taken > 0) throw new Error("Cannot give columns as some rows were taken");
    const result = newColumns(this.#frames);
    copyInto(result, slice(this.#kept, 0, this.#moved), 0);
    this.#copyRing(result, this.#moved, this.#frames, this.#moved);
    return { count: this.#frames, ...result };
  }

  /** How many rows `takeFinalRows` would give. */
  get finalRows(): number {
    const finalRows = this.#isFinished ? this.#frames : Math.max(0, this.#frames - this.cutLookahead);
    return finalRows - this.#taken;
  }

  /**
   * Copies of the final rows that were not taken before, in order: for a stream, whose rows are used long before its end.
   * Must be called before half the ring has been filled again, because older rows have left it.
   */
  takeFinalRows(): SignalColumns & FilterColumns {
    const first = this.#taken;
    const count = this.finalRows;
    if (first < this.#moved) throw new RangeError(`Cannot take row ${first}: it has left the ring`);
    const result = newColumns(count);
    this.#copyRing(result, first, first + count, 0);
    this.#taken = first + count;
    return { count, ...result };
  }

  #checkRow(index: number): void {
    if (!(index >= this.#moved && index < this.#frames)) {
      throw new RangeError(`Cannot read row ${index}: the ring holds ${this.#moved} to ${this.#frames - 1}`);
    }
  }

  /** Rows `from` to `to` (exclusive), which must be in the ring, into `target` from row `at` on. */
  #copyRing(target: FilterColumns, from: number, to: number, at: number): void {
    for (let row = from; row < to;) {
      const start = row % (2 * this.#halfRows);
      const rows = Math.min(to - row, 2 * this.#halfRows - start);
      copyInto(target, slice(this.#ring, start, start + rows), at + row - from);
      row += rows;
    }
  }

  /** Makes room by moving the older half of the ring into the kept columns. */
  #moveHalf(): void {
    if (this.#keepsRows && this.#taken < this.#moved + this.#halfRows) {
      const needed = this.#moved + this.#halfRows;
      if (needed > this.#kept.ptsMs.length) this.#kept = grown(this.#kept, this.#moved);
      copyInto(this.#kept, this.#halves[(this.#moved / this.#halfRows) % 2]!, this.#moved);
    }
    this.#moved += this.#halfRows;
  }
}

function ringColumns(module: FilterExports, rows: number): FilterColumns {
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
