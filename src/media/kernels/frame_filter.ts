/** FrameFilter, the hot path: luma planes in, signal columns out. Allocates nothing per frame. */

import { CUT_SCORE_THRESHOLD } from "../../model/frames/signals.ts";
import type { SignalColumns } from "../../model/frames/signals.ts";
import { copyInto, grown, newColumns, slice } from "./filter_columns.ts";
import type { FilterColumns } from "./filter_columns.ts";

export const PLANE_WIDTH = 320;
export const PLANE_HEIGHT = 180;
export const PLANE_BYTES = 57_600;

/** One frame's signals, owned by the caller and refilled by `readRow`, so that reading allocates nothing. */
export interface FrameSignals {
  ptsMs: number;
  /** The 64-bit hash in two halves: a BigInt would be an object per frame. */
  hashLow: number;
  hashHigh: number;
  lumaMean: number;
  flickerScore: number;
  ghostingScore: number;
  noiseVarianceScore: number;
  /** NaN until it is settled, `cutLookahead` frames later. */
  cutScore: number;
}

/** A row to be filled. */
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

/** What `assembly/frame_filter.ts` exports; the globals are addresses in its memory. */
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
  reset(): void;
  push(offset: number, ptsMs: number): void;
  finish(): number;
  isCutOpen(frame: number): number;
  scoreSoFar(frame: number): number;
}

/**
 * Computes the signals of contract 3.1 (with D6 and D7) for 320x180 luma planes. A media worker reads decoded
 * bytes straight into `staging` and names the place of each plane.
 *
 * ```
 * staging --push--> ring of 4096 rows --every 2048 frames--> kept columns --columns()--> the caller's copy
 * ```
 *
 * Half the ring moves at a time, so the newest 2048 rows are always in the ring: more than the look-ahead of the
 * cut score, hence every row that moves is settled. Rows that were taken in batches, by `takeFinalRows`, are not kept.
 */
export class FrameFilter {
  /** 1 MiB of the module's memory; the view stays valid for the life of the filter. */
  readonly staging: Uint8Array<ArrayBuffer>;
  /** How many frames later the cut score of a frame is settled. */
  readonly cutLookahead: number;

  readonly #module: FilterExports;
  readonly #ring: FilterColumns;
  readonly #ringHash: Uint32Array;
  readonly #halves: readonly [FilterColumns, FilterColumns];
  readonly #halfRows: number;
  readonly #keepsRows: boolean;
  #kept: FilterColumns;
  /** Rows that have left the ring: all below this index are in `#kept`, if rows are kept. */
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
  }

  /**
   * Compiles the module and gives it memory of its own. `keepsRows: false` is for endless streams: only the newest
   * 2048 rows stay readable and `columns` is refused.
   */
  static async load(options: { keepsRows?: boolean } = {}): Promise<FrameFilter> {
    const bytes = await Deno.readFile(new URL("../../../wasm/frame_filter.wasm", import.meta.url));
    const { instance } = await WebAssembly.instantiate(bytes);
    return new FrameFilter(instance.exports as unknown as FilterExports, options.keepsRows ?? true);
  }

  /** Frames pushed since `reset`. */
  get count(): number {
    return this.#frames;
  }

  /** Start of a new stream: the next plane is a first frame again. */
  reset(): void {
    this.#module.reset();
    this.#moved = 0;
    this.#taken = 0;
    this.#frames = 0;
    this.#isFinished = false;
  }

  /** Analyses the plane that starts `offset` bytes into `staging`; any alignment will do. `ptsMs` is media time. */
  push(offset: number, ptsMs: number): void {
    if (!(offset >= 0 && offset <= this.staging.length - PLANE_BYTES)) throw outside(offset);
    if (this.#frames - this.#moved === 2 * this.#halfRows) this.#moveHalf();
    this.#module.push(offset, ptsMs);
    this.#frames++;
  }

  /** No more frames: settles the cut scores that were waiting for later ones. `reset` comes before the next push. */
  finish(): void {
    this.#module.finish();
    this.#isFinished = true;
  }

  /** Fills `into` with the signals of frame `index`, which must be among the newest 2048. Allocates nothing. */
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
   * Whether frame `index` may still turn out to be a cut (`CUT_SCORE_THRESHOLD`). False is final, and for most frames it
   * is false at once, long before their score is settled: whoever cannot wait need not.
   */
  isCutOpen(index: number): boolean {
    this.#checkRow(index);
    if (index < this.#frames - this.cutLookahead || this.#isFinished) {
      return this.#ring.cutScore[index % (2 * this.#halfRows)]! >= CUT_SCORE_THRESHOLD;
    }
    return this.#module.isCutOpen(index) !== 0;
  }

  /** The cut score of frame `index` as far as it is known: what it would be if no frame followed. */
  cutScoreSoFar(index: number): number {
    this.#checkRow(index);
    const isSettled = index < this.#frames - this.cutLookahead || this.#isFinished;
    return isSettled
      ? this.#ring.cutScore[index % (2 * this.#halfRows)]!
      : Math.fround(this.#module.scoreSoFar(index));
  }

  /** Copies of all rows since `reset`. Before `finish` the newest cut scores are NaN: not settled yet. */
  columns(): SignalColumns & { readonly cutScore: Float32Array } {
    if (!this.#keepsRows) {
      throw new Error("Cannot give columns as the filter was loaded without keeping rows");
    }
    if (this.#taken > 0) throw new Error("Cannot give columns as settled rows were taken");
    const result = newColumns(this.#frames);
    copyInto(result, slice(this.#kept, 0, this.#moved), 0);
    this.#copyRing(result, this.#moved, this.#frames, this.#moved);
    return { count: this.#frames, ...result };
  }

  /** Rows that `takeFinalRows` would give. */
  get settled(): number {
    const settled = this.#isFinished ? this.#frames : Math.max(0, this.#frames - this.cutLookahead);
    return settled - this.#taken;
  }

  /**
   * Copies of the settled rows that were not taken before, in order: for a stream, whose rows are handed on long before
   * its end. Take them at least every 2000 frames, as older rows have left the ring.
   */
  takeFinalRows(): SignalColumns & FilterColumns {
    const first = this.#taken;
    const count = this.settled;
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

  /** Makes room for 2048 more frames by moving the older half of the ring into the kept columns. */
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
  return new RangeError(`Cannot analyse a plane at offset ${offset} as it must lie inside the staging area`);
}
