/** Which runs a caller may see and act on: a foreign run reads exactly like a missing one. */

import { Refusal, refuse } from "../../base/refusal.ts";
import { isRunId } from "../../model/identifiers.ts";
import { isTerminal, type RunStatus, type RunView, statusOf } from "../../model/runs/run.ts";
import type { TimelineView } from "../../model/runs/run_register.ts";
import type { Caller } from "../caller.ts";
import { RunEnded } from "./run_work.ts";

/** 422 for a text that cannot be a run id. */
export function checkRunId(runId: string): void {
  if (!isRunId(runId)) {
    throw refuse.invalid("run_id", "must be run- followed by 32 hexadecimal digits");
  }
}

/** The caller's own run, deleted ones excluded; 422 or 404 otherwise. */
export function ownedRun(view: TimelineView, caller: Pick<Caller, "principalKey">, runId: string): RunView {
  const run = ownedRunOrTombstone(view, caller, runId);
  if (run.deleted) throw refuse.notFound("Run", "run_id");
  return run;
}

/** The same, but a deleted run of the caller is returned too (decision D13). */
export function ownedRunOrTombstone(
  view: TimelineView,
  caller: Pick<Caller, "principalKey">,
  runId: string,
): RunView {
  checkRunId(runId);
  const run = view.run(runId);
  if (!run || run.principalKey !== caller.principalKey) throw refuse.notFound("Run", "run_id");
  return run;
}

/** The caller's own run that may still be acted on; 409 when it is terminal or expired. */
export function actionableRun(
  view: TimelineView,
  caller: Pick<Caller, "principalKey">,
  runId: string,
  clock: { nowMs: number; ttlMs: number },
  action: string,
): RunView {
  const run = ownedRun(view, caller, runId);
  const status: RunStatus = statusOf(run, clock.nowMs, clock.ttlMs);
  if (isTerminal(status)) throw refuse.runIsTerminal(status, action);
  return run;
}

/**
 * The same for the end of work that began on an actionable run: what a stop or a delete ended stays ended, but a run
 * is not idle while it is worked on, so the time that the work took does not expire it.
 */
export function stillActionableRun(
  view: TimelineView,
  caller: Pick<Caller, "principalKey">,
  runId: string,
  action: string,
): RunView {
  const run = ownedRun(view, caller, runId);
  if (isTerminal(run.state)) throw refuse.runIsTerminal(run.state, action);
  return run;
}

/** Why work on a run failed: a run that ended meanwhile explains the failure better than the failure does. */
export function explainedFailure(
  error: unknown,
  signal: AbortSignal,
  { view, caller, runId, action }: {
    view: TimelineView;
    caller: Pick<Caller, "principalKey">;
    runId: string;
    action: string;
  },
): unknown {
  if (error instanceof Refusal && !signal.aborted) return error;
  if (!(signal.reason instanceof RunEnded)) return error;
  try {
    stillActionableRun(view, caller, runId, action);
  } catch (refusal) {
    return refusal;
  }
  return refuse.because("internal_error", "the service is closing");
}
