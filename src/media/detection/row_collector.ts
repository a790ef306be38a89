/** Collects the rows of a stream of frames: of each interval between two rows, what the later one has to
 * tell.
 */

import { LIMITS } from "../../contract/limits.ts";
import { CUT_SCORE_THRESHOLD } from "../../model/frames/signals.ts";
import { copyInto, type FilterColumns, newColumns, resized, slice } from "./filter_columns.ts";

/**
 * What a row has: the signals of its frame, with the highest cut and artifact scores since the row before.
 */
export interface CollectedRows extends FilterColumns {
  /** Time of the frame with that cut score, milliseconds; NaN where it is no cut. */
  readonly cutPtsMs: Float64Array<ArrayBuffer>;
}

/** New rows, all zeros. */
export function newRows(rows: number): CollectedRows {
  return { ...newColumns(rows), cutPtsMs: new Float64Array(rows) };
}

/** Views of the rows from `start` (inclusive) to `end` (exclusive), not copies. */
export function sliceRows(rows: CollectedRows, start: number, end: number): CollectedRows {
  return { ...slice(rows, start, end), cutPtsMs: rows.cutPtsMs.subarray(start, end) };
}

/**
 * The rows with room for `capacity` of them. Their memory is moved at once, and `rows` is empty afterwards.
 */
function resizedRows(rows: CollectedRows, capacity: number): CollectedRows {
  return {
    ...resized(rows, capacity),
    cutPtsMs: new Float64Array(rows.cutPtsMs.buffer.transfer(capacity * Float64Array.BYTES_PER_ELEMENT)),
  };
}

/** Copies all rows of `source` into `target`, from its row `at` on. */
export function copyRows(target: CollectedRows, source: CollectedRows, at: number): void {
  copyInto(target, source, at);
  target.cutPtsMs.set(source.cutPtsMs, at);
}

/**
 * Collects rows. Takes frames in order, each when its scores are final. Of frames that are no rows only the
 * cut and artifact scores matter: they count to the next row, and after the last row to that one.
 */
export class RowCollector {
  #rows = newRows(INITIAL_ROWS);
  /** The memory of the hashes as halves, because a BigInt would be an object per row. */
  #hashHalves = new Uint32Array(this.#rows.perceptualHash.buffer);
  #count = 0;
  #bestScore = 0;
  #bestMs = NaN;
  #worstArtifact = 0;
  #worstKind = 0;
  #cutsMs: number[] = [];

  /** The times of all cuts, rising: of two between two rows, only the stronger one is in a row. */
  get cutsMs(): readonly number[] {
    return this.#cutsMs;
  }

  /** Rows that were not taken. */
  get count(): number {
    return this.#count;
  }

  reset(): void {
    this.#count = 0;
    this.#bestScore = 0;
    this.#bestMs = NaN;
    this.#worstArtifact = 0;
    this.#worstKind = 0;
    this.#cutsMs = [];
  }

  /** The next frame, in slot `slot` of `ring`. Allocates nothing but room for more rows and cuts. */
  add(ring: FilterColumns, ringHash: Uint32Array, slot: number, isRow: boolean): void {
    const score = ring.cutScore[slot]!;
    if (score >= CUT_SCORE_THRESHOLD && this.#cutsMs.length < LIMITS.detection.rangesMax) {
      this.#cutsMs.push(ring.ptsMs[slot]!);
    }
    if (score > this.#bestScore) {
      this.#bestScore = score;
      this.#bestMs = ring.ptsMs[slot]!;
    }
    if (ring.artifactScore[slot]! > this.#worstArtifact) {
      this.#worstArtifact = ring.artifactScore[slot]!;
      this.#worstKind = ring.artifactKind[slot]!;
    }
    if (!isRow) return;
    const row = this.#count++;
    if (row === this.#rows.ptsMs.length) this.#grow();
    const rows = this.#rows;
    rows.ptsMs[row] = ring.ptsMs[slot]!;
    this.#hashHalves[2 * row] = ringHash[2 * slot]!;
    this.#hashHalves[2 * row + 1] = ringHash[2 * slot + 1]!;
    rows.lumaMean[row] = ring.lumaMean[slot]!;
    rows.flickerScore[row] = ring.flickerScore[slot]!;
    rows.ghostingScore[row] = ring.ghostingScore[slot]!;
    rows.noiseVarianceScore[row] = ring.noiseVarianceScore[slot]!;
    this.#setCut(row);
    this.#setArtifact(row);
  }

  /** To be called when no more frames come: what came after the last row counts to it. */
  finish(): void {
    const last = this.#count - 1;
    if (last < 0) return;
    if (this.#bestScore > this.#rows.cutScore[last]!) this.#setCut(last);
    if (this.#worstArtifact > this.#rows.artifactScore[last]!) this.#setArtifact(last);
  }

  /**
   * Removes the oldest `count` rows. Where these are all, and fill most of the memory, it is given away
   * instead of copied: the rows of a long decode are tens of megabytes.
   */
  take(count: number): CollectedRows & { readonly count: number } {
    const taken = sliceRows(this.#rows, 0, count);
    const left = sliceRows(this.#rows, count, this.#count);
    const copied = count === this.#count && count > this.#rows.ptsMs.length / 2 ? null : newRows(count);
    this.#count -= count;
    if (copied) {
      copyRows(copied, taken, 0);
      copyRows(this.#rows, left, 0);
    } else {
      this.#keep(newRows(INITIAL_ROWS));
    }
    return { count, ...(copied ?? taken) };
  }

  /** Gives the row the best cut score since the row before, and begins a new interval. */
  #setCut(row: number): void {
    this.#rows.cutScore[row] = this.#bestScore;
    this.#rows.cutPtsMs[row] = this.#bestScore >= CUT_SCORE_THRESHOLD ? this.#bestMs : NaN;
    this.#bestScore = 0;
    this.#bestMs = NaN;
  }

  #setArtifact(row: number): void {
    this.#rows.artifactScore[row] = this.#worstArtifact;
    this.#rows.artifactKind[row] = this.#worstKind;
    this.#worstArtifact = 0;
    this.#worstKind = 0;
  }

  /** Twice the room, so that the copying stays linear in the number of rows. */
  #grow(): void {
    this.#keep(resizedRows(this.#rows, this.#rows.ptsMs.length * 2));
  }

  #keep(rows: CollectedRows): void {
    this.#rows = rows;
    this.#hashHalves = new Uint32Array(rows.perceptualHash.buffer);
  }
}

const INITIAL_ROWS = 4096;
