/** What is kept of each chunk of a reason pass until its end: costs, lag, and the labels of its frames. */

import type { RowSemantics } from "../../model/frames/frame_row.ts";
import type { TokenCounts } from "../../model/infer/inference.ts";
import { type ChunkLag, percentile, sumTokens } from "../../model/reason/chunks.ts";

export interface ChunkRecord {
  readonly index: number;
  /** Number of its first frame among all, and how many it has. */
  readonly firstFrame: number;
  readonly frames: number;
  readonly lag: ChunkLag;
  /** Whether the semantic path tried it, successfully or not. */
  readonly wasAttempted: boolean;
  readonly tokens: TokenCounts;
  readonly inferenceLatencyMs: number;
  readonly semantics: RowSemantics;
}

/** Milliseconds, contract 6.7. */
export interface LagPercentiles {
  readonly p95Ms: number;
  readonly p99Ms: number;
}

/** What the attempted chunks cost together, as the answer's `tokens` and as fields of `analysis_generated`. */
export interface Spent extends TokenCounts {
  readonly inference_latency_ms: number;
  readonly chunks_analyzed: number;
}

/** Filled in any order, read in the order of the source. */
export class ChunkRecords {
  readonly #records: ChunkRecord[] = [];
  /** Place of the chunk that the last row was found in: rows are asked for in ascending order. */
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

  /** How the semantic path went for row number `row`; undefined for a frame that lies in no chunk. */
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

  spent(): Spent {
    const attempted = this.#records.filter(({ wasAttempted }) => wasAttempted);
    return {
      ...sumTokens(attempted.map(({ tokens }) => tokens)),
      inference_latency_ms: attempted.reduce((sum, record) => sum + record.inferenceLatencyMs, 0),
      chunks_analyzed: attempted.length,
    };
  }
}
