/** What is kept of each chunk until the end of a reason call: its costs, its lag, and the labels of its
 * frames.
 */

import type { RowSemantics } from "../../model/frames/frame_row.ts";
import type { TokenCounts } from "../../model/infer/inference.ts";
import { type ChunkLag, percentile, sumTokens } from "../../model/reason/chunks.ts";

export interface ChunkRecord {
  readonly index: number;
  /** The index of its first frame among all frames, and its number of frames. */
  readonly firstFrame: number;
  readonly frames: number;
  readonly lag: ChunkLag;
  /** Whether the semantic path tried it, successfully or not. */
  readonly wasAttempted: boolean;
  /** `semantic_error`; null where the model gave a valid answer, and where none was asked. */
  readonly error: string | null;
  readonly tokens: TokenCounts;
  readonly inferenceLatencyMs: number;
  readonly semantics: RowSemantics;
}

/** Percentiles over all chunks, milliseconds. */
export interface LagPercentiles {
  readonly p95Ms: number;
  readonly p99Ms: number;
}

/** The costs of all attempted chunks, for `tokens` of the response and for fields of `analysis_generated`. */
export interface Spent extends TokenCounts {
  readonly inference_latency_ms: number;
  readonly chunks_analyzed: number;
}

/**
 * What is told of the chunks without a valid answer, for the response and for fields of `analysis_generated`;
 * empty where there are none.
 */
export interface FailedChunks {
  readonly chunks_failed?: number;
  readonly first_chunk_error?: string;
}

/** Filled in any order, and read in the order of the source. */
export class ChunkRecords {
  readonly #records: ChunkRecord[] = [];
  /** The index of the chunk of the last row: rows are read in ascending order. */
  #cursor = 0;

  set(record: ChunkRecord): void {
    this.#records[record.index] = record;
  }

  get count(): number {
    return this.#records.length;
  }

  at(index: number): ChunkRecord {
    return this.#records[index]!;
  }

  /** The labels of row number `row`; undefined for a frame that is in no chunk. */
  semanticsOf(row: number): RowSemantics | undefined {
    const records = this.#records;
    if (row < (records[this.#cursor]?.firstFrame ?? 0)) this.#cursor = 0;
    while (this.#cursor + 1 < records.length && records[this.#cursor + 1]!.firstFrame <= row) this.#cursor++;
    const record = records[this.#cursor];
    return record && row < record.firstFrame + record.frames ? record.semantics : undefined;
  }

  lag(): LagPercentiles {
    const lags = this.#records.map(({ lag }) => lag.lag_ms);
    return { p95Ms: percentile(lags, 95), p99Ms: percentile(lags, 99) };
  }

  failed(): FailedChunks {
    const errors = this.#records.flatMap(({ error }) => error ?? []);
    return errors.length === 0 ? {} : { chunks_failed: errors.length, first_chunk_error: errors[0]! };
  }

  spent(): Spent {
    const attempted = this.#records.filter(({ wasAttempted }) => wasAttempted);
    return {
      ...sumTokens(attempted.map(({ tokens }) => tokens)),
      inference_latency_ms: attempted.reduce((sum, record) => sum + record.inferenceLatencyMs, 0),
      chunks_analyzed: attempted.length,
    };
  }
}
