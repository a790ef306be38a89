/** Reads the signals of a decode back from the log, for an analysis, for plots and for triggers. */

import { refuse } from "../../contract/refusal.ts";
import type { GateKernel } from "../../media/kernels/gate_kernel.ts";
import type { DecodeRange, SignalsQuery } from "../../model/api/reads.ts";
import { FieldRules } from "../../model/field_rules.ts";
import type { ImageCoordinates } from "../../model/frames/coordinates.ts";
import type { SourceEnd } from "../../model/frames/ended_early.ts";
import type { RowRange } from "../../model/frames/row_range.ts";
import type { SamplingPolicy } from "../../model/frames/sampling.ts";
import { type SignalBins, signalBins } from "../../model/frames/signal_bins.ts";
import type { ContextScores, GateThresholds, SignalColumns } from "../../model/frames/signals.ts";
import {
  columnsOf,
  emptyColumns,
  fillRows,
  type FrameColumns,
  type SignalRow,
  StoredSignals,
} from "../../model/frames/signals_json.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { RunView } from "../../model/runs/run.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { Caller } from "../caller.ts";
import { gated } from "./gated_frames.ts";
import type { LargeReads } from "../large_reads.ts";
import { ownedRun } from "../runs/ownership.ts";

/** The payload of `frames_decoded` without its rows. */
export interface DecodedHead extends SourceEnd {
  readonly decoded_frames: number;
  readonly sampling_policy: SamplingPolicy;
  readonly sample_fps: number;
  readonly coordinates: ImageCoordinates;
  readonly truncated: boolean;
  /** Absent in a log that was written before there were detectors. */
  readonly ranges?: readonly RowRange[];
  /** Absent where each cut is in a row. */
  readonly cuts_ms?: readonly number[];
}

export interface StoredDecode {
  readonly head: DecodedHead;
  readonly columns: FrameColumns;
}

/** Whether a read of the decode takes a permit of {@link LargeReads}. */
export function isLongDecode(timeline: Timeline, seq: number): boolean {
  return timeline.sizeOf(seq) > LIMITS.read.decodeBytesMax;
}

/** The decode that the event `seq` tells of; null when the log has no such event. */
export async function readDecoded(timeline: Timeline, seq: number): Promise<StoredDecode | null> {
  const stored = new StoredSignals();
  let columns: FrameColumns | undefined;
  let read = 0;
  const take = (rows: readonly SignalRow[]) => {
    if (rows.length === 0) return;
    const { decoded_frames: count } = stored.head as unknown as DecodedHead;
    const { cut_score, artifact_score } = rows[0]!;
    const has = { cutScore: cut_score !== undefined, artifactScore: artifact_score !== undefined };
    columns ??= emptyColumns(count, has);
    fillRows(columns, read, rows);
    read += rows.length;
  };
  for await (const piece of timeline.readPieces(seq)) take(stored.add(piece));
  take(stored.end());
  if (stored.head === null) return null;
  return { head: stored.head as unknown as DecodedHead, columns: columns ?? columnsOf([]) };
}

/** A decode with the scores of its context pass, as it is kept for those who ask again. */
export interface MeasuredDecode {
  /** The number of its `frames_decoded` event. */
  readonly seq: number;
  readonly sampleFps: number;
  readonly columns: SignalColumns & ContextScores;
}

/** Bins of a decode, and the event that they are of; null for a run that has decoded nothing. */
export interface BinnedDecode {
  readonly sourceSeq: number | null;
  /** Frames a second of media time that were sampled; null without a decode. */
  readonly sampleFps: number | null;
  /** Media time of the last frame of the whole decode; null without one. */
  readonly lastPtsMs: number | null;
  readonly bins: SignalBins;
}

const NOTHING: BinnedDecode = {
  sourceSeq: null,
  sampleFps: null,
  lastPtsMs: null,
  bins: { frames: 0, ptsMs: [], counts: [], signals: {} },
};
const DECODED: ReadonlySet<string> = new Set(["frames_decoded"]);

export interface SignalReadsOptions {
  readonly timeline: Timeline;
  readonly gate: GateKernel;
  readonly thresholds: GateThresholds;
  readonly reads: LargeReads;
}

/**
 * Signals of the decodes of runs. The columns of the last decode that was asked for are kept, 48 bytes a
 * frame, as whoever looks at a plot asks again with each movement.
 */
export class SignalReads {
  readonly #options: SignalReadsOptions;
  #kept: MeasuredDecode | null = null;
  /** Decodes that are being read, by their events. */
  readonly #reading = new Map<number, Promise<MeasuredDecode | null>>();

  constructor(options: SignalReadsOptions) {
    this.#options = options;
  }

  /** Errors: 404, 422 on `from_ms`, `to_ms`, `points`, `source_seq`, 503 where too many read long decodes. */
  async bins(caller: Caller, runId: string, query: SignalsQuery): Promise<BinnedDecode> {
    const { fromMs = 0, toMs = Number.MAX_SAFE_INTEGER, points = LIMITS.signals.pointsDefault } = query;
    const decode = await this.measured(caller, runId, query, (rules) => {
      rules.range("points", points, LIMITS.signals.points);
    });
    if (decode === null) return NOTHING;
    const { seq, sampleFps, columns } = decode;
    return {
      sourceSeq: seq,
      sampleFps,
      lastPtsMs: columns.count === 0 ? null : columns.ptsMs[columns.count - 1]!,
      bins: signalBins(columns, { fromMs, toMs, points }),
    };
  }

  /**
   * The decode that is asked about, or null for a run without one. `check` adds the faults of further fields.
   * Errors: 404, 422 on `from_ms`, `source_seq`, 503 where too many read long decodes.
   */
  async measured(
    caller: Caller,
    runId: string,
    { fromMs, toMs, sourceSeq }: DecodeRange,
    check: (rules: FieldRules) => void = () => {},
  ): Promise<MeasuredDecode | null> {
    const run = ownedRun(this.#options.timeline.view, caller, runId);
    const rules = new FieldRules();
    check(rules);
    if (fromMs !== undefined && toMs !== undefined && fromMs > toMs) {
      rules.fault("from_ms", `must not be above to_ms: got ${fromMs} and ${toMs}`);
    }
    rules.check();
    const seq = sourceSeq ?? run.latestFramesDecodedSeq;
    if (sourceSeq !== undefined) await this.#requireDecode(run, sourceSeq);
    return seq === 0 ? null : await this.#decode(caller, seq);
  }

  /** Refuses what is no decode of this run. */
  async #requireDecode(run: RunView, seq: number): Promise<void> {
    const { timeline } = this.#options;
    for await (const [found] of timeline.readInPieces(run.runId, { fromSeq: seq, kinds: DECODED })) {
      if (found === undefined) continue;
      if (found.seq === seq) return;
      break;
    }
    throw refuse.invalid("source_seq", "must be the seq of a frames_decoded event of this run");
  }

  /** Requests at the same time share one read, each with a permit of its own: one of them may go first. */
  async #decode(caller: Caller, seq: number): Promise<MeasuredDecode | null> {
    const { timeline, reads } = this.#options;
    if (this.#kept?.seq !== seq && isLongDecode(timeline, seq)) await reads.decode(caller);
    if (this.#kept?.seq === seq) return this.#kept;
    let reading = this.#reading.get(seq);
    if (reading === undefined) {
      reading = this.#measure(seq).finally(() => this.#reading.delete(seq));
      this.#reading.set(seq, reading);
    }
    return this.#kept = await reading;
  }

  async #measure(seq: number): Promise<MeasuredDecode | null> {
    const { timeline, gate, thresholds } = this.#options;
    const decode = await readDecoded(timeline, seq);
    if (decode === null) return null;
    const { head, columns } = decode;
    const { motion, novelty, confidence } = await gated(
      columns,
      thresholds,
      LIMITS.analyze.windowSizeDefault,
      gate,
    );
    const scores = {
      motionScore: Float32Array.from(motion),
      noveltyScore: Float32Array.from(novelty),
      contextConfidence: Float32Array.from(confidence),
    };
    return { seq, sampleFps: head.sample_fps, columns: { ...columns.signals, ...scores } };
  }
}
