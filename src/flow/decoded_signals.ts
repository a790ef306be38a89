/** Reads the signals of a decode back from the log, for an analysis and for plots. */

import { refuse } from "../base/refusal.ts";
import type { SignalsQuery } from "../model/api/reads.ts";
import { FieldRules } from "../model/field_rules.ts";
import type { ImageCoordinates } from "../model/frames/coordinates.ts";
import type { RowRange } from "../model/frames/row_range.ts";
import type { SamplingPolicy } from "../model/frames/sampling.ts";
import { type SignalBins, signalBins } from "../model/frames/signal_bins.ts";
import {
  columnsOf,
  emptyColumns,
  fillRows,
  type FrameColumns,
  type SignalRow,
  StoredSignals,
} from "../model/frames/signals_json.ts";
import { LIMITS } from "../model/limits.ts";
import type { RunView } from "../model/runs/run.ts";
import type { Timeline } from "../store/log/timeline.ts";
import type { Caller } from "./caller.ts";
import { ownedRun } from "./runs/ownership.ts";

/** The payload of `frames_decoded` without its rows. */
export interface DecodedHead {
  readonly decoded_frames: number;
  readonly sampling_policy: SamplingPolicy;
  readonly sample_fps: number;
  readonly coordinates: ImageCoordinates;
  /** Absent in a log that was written before there were detectors. */
  readonly ranges?: readonly RowRange[];
}

export interface StoredDecode {
  readonly head: DecodedHead;
  readonly columns: FrameColumns;
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

/**
 * Bins of the signals of a run. The columns of the last decode that was asked for are kept, 36 bytes a frame, as whoever looks
 * at a plot asks again with each movement.
 */
export class SignalReads {
  readonly #timeline: Timeline;
  #kept: { readonly seq: number; readonly decode: Promise<StoredDecode | null> } | null = null;

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  /** Errors: 404, 422 on `from_ms`, `to_ms`, `points`, `source_seq`. */
  async bins(caller: Caller, runId: string, query: SignalsQuery): Promise<BinnedDecode> {
    const run = ownedRun(this.#timeline.view, caller, runId);
    const { fromMs = 0, toMs = Number.MAX_SAFE_INTEGER, points = LIMITS.signals.pointsDefault } = query;
    const rules = new FieldRules();
    rules.range("points", points, LIMITS.signals.points);
    if (fromMs > toMs) rules.fault("from_ms", `must not be above to_ms: got ${fromMs} and ${toMs}`);
    rules.check();
    const seq = query.sourceSeq ?? run.latestFramesDecodedSeq;
    if (query.sourceSeq !== undefined) await this.#requireDecode(run, query.sourceSeq);
    const decode = seq === 0 ? null : await this.#decode(seq);
    if (decode === null) return NOTHING;
    const { signals } = decode.columns;
    return {
      sourceSeq: seq,
      sampleFps: decode.head.sample_fps,
      lastPtsMs: signals.count === 0 ? null : signals.ptsMs[signals.count - 1]!,
      bins: signalBins(signals, { fromMs, toMs, points }),
    };
  }

  /** Refuses what is no decode of this run. */
  async #requireDecode(run: RunView, seq: number): Promise<void> {
    for await (const [found] of this.#timeline.readInPieces(run.runId, { fromSeq: seq, kinds: DECODED })) {
      if (found === undefined) continue;
      if (found.seq === seq) return;
      break;
    }
    throw refuse.invalid("source_seq", "must be the seq of a frames_decoded event of this run");
  }

  /** Requests at the same time share one read. */
  async #decode(seq: number): Promise<StoredDecode | null> {
    if (this.#kept?.seq !== seq) this.#kept = { seq, decode: readDecoded(this.#timeline, seq) };
    const { decode } = this.#kept;
    try {
      return await decode;
    } catch (error) {
      if (this.#kept?.decode === decode) this.#kept = null; // the next request tries again
      throw error;
    }
  }
}
