/** Steps a trigger program over what a run's decode has measured, as a live session would have. Stores
 * nothing.
 */

import { yieldToEventLoop } from "../../base/wait.ts";
import { TriggerKernel } from "../../media/kernels/trigger_kernel.ts";
import type { EvaluateOnRunBody } from "../../model/api/triggers.ts";
import { framesBetween, type TimeRange } from "../../model/frames/signal_bins.ts";
import { LIMITS } from "../../contract/limits.ts";
import { type Action, isAction, type Signal } from "../../model/triggers/program.ts";
import { FIRED, MISSING_SIGNAL, tableOf } from "../../model/triggers/program_table.ts";
import { type ValidProgram, validProgram } from "../../model/triggers/validate.ts";
import type { Caller } from "../caller.ts";
import type { MeasuredDecode, SignalReads } from "./decoded_signals.ts";

/** One frame at which the program has fired, with the scores that it had. */
export interface Firing {
  readonly frameIndex: number;
  readonly ptsMs: number;
  readonly motionScore: number;
  readonly noveltyScore: number;
  readonly confidence: number;
}

export interface RecordedEvaluation {
  readonly program: ValidProgram;
  /** The `frames_decoded` event; null for a run that has decoded nothing. */
  readonly sourceSeq: number | null;
  /** Frames that were stepped. */
  readonly frames: number;
  /** Frames of which an executed load had no value. */
  readonly missingFrames: number;
  readonly firedTotal: number;
  /** The first ones. */
  readonly fired: readonly Firing[];
  /** The actions of every firing, in the order of the program. */
  readonly actions: readonly Action[];
}

export class RecordedTriggers {
  readonly #signals: SignalReads;

  constructor(signals: SignalReads) {
    this.#signals = signals;
  }

  /** Errors: 404, 422 on `program`, `from_ms`, `source_seq`. */
  async evaluate(caller: Caller, runId: string, body: EvaluateOnRunBody): Promise<RecordedEvaluation> {
    const range = {
      fromMs: body.from_ms ?? undefined,
      toMs: body.to_ms ?? undefined,
      sourceSeq: body.source_seq ?? undefined,
    };
    const decode = await this.#signals.measured(caller, runId, range);
    const program = validProgram(body.program);
    const { fromMs = 0, toMs = Number.MAX_SAFE_INTEGER } = range;
    const stepped = decode ? await stepThrough(decode, program, { fromMs, toMs }) : NOTHING;
    return {
      program,
      sourceSeq: decode?.seq ?? null,
      ...stepped,
      actions: program.instructions.filter(isAction),
    };
  }
}

type Stepped = Pick<RecordedEvaluation, "frames" | "missingFrames" | "firedTotal" | "fired">;
const NOTHING: Stepped = { frames: 0, missingFrames: 0, firedTotal: 0, fired: [] };

/**
 * From a fresh state; the interpreter is this evaluation's own, as others get their turn between two blocks.
 */
async function stepThrough(
  { columns }: MeasuredDecode,
  program: ValidProgram,
  range: TimeRange,
): Promise<Stepped> {
  const { first, end } = framesBetween(columns, range);
  const kernel = await TriggerKernel.load();
  const table = tableOf(program);
  kernel.begin(table);
  const fired: Firing[] = [];
  let [firedTotal, missingFrames] = [0, 0];
  for (let start = first; start < end; start += kernel.samplesMax) {
    if (start > first) await yieldToEventLoop();
    const count = Math.min(kernel.samplesMax, end - start);
    fillBlock(columns, { start, count, signals: table.signals }, kernel);
    for (const [row, flags] of kernel.run(count).entries()) {
      if (flags & MISSING_SIGNAL) missingFrames += 1;
      if (!(flags & FIRED)) continue;
      firedTotal += 1;
      if (fired.length < LIMITS.trigger.firingsMax) fired.push(firingAt(columns, start + row));
    }
  }
  return { frames: end - first, missingFrames, firedTotal, fired };
}

/** A frame has the scores of its context pass; all other signals are missing. */
function fillBlock(
  columns: MeasuredDecode["columns"],
  { start, count, signals }: { start: number; count: number; signals: readonly Signal[] },
  { ptsMs, values }: TriggerKernel,
): void {
  ptsMs.set(columns.ptsMs.subarray(start, start + count));
  for (const [column, { kind }] of signals.entries()) {
    const scores = scoresOf(columns, kind);
    for (let row = 0; row < count; row++) {
      values[row * signals.length + column] = scores ? scores[start + row]! : NaN;
    }
  }
}

function scoresOf(
  { motionScore, noveltyScore, contextConfidence }: MeasuredDecode["columns"],
  kind: Signal["kind"],
): Float32Array | null {
  if (kind === "motion_score") return motionScore;
  if (kind === "novelty_score") return noveltyScore;
  return kind === "confidence" ? contextConfidence : null;
}

function firingAt(columns: MeasuredDecode["columns"], frame: number): Firing {
  return {
    frameIndex: frame,
    ptsMs: columns.ptsMs[frame]!,
    motionScore: columns.motionScore[frame]!,
    noveltyScore: columns.noveltyScore[frame]!,
    confidence: columns.contextConfidence[frame]!,
  };
}
