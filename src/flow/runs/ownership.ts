/** Which runs a caller may see and act on: a run of another principal reads exactly like a missing one. */

import { refuse } from "../../contract/refusal.ts";
import { isRunId } from "../../model/identifiers.ts";
import { isTerminal, type RunStatus, type RunView, statusOf } from "../../model/runs/run.ts";
import type { TimelineView } from "../../model/runs/run_register.ts";
import type { Caller } from "../caller.ts";
import { RunEnded } from "./run_work.ts";

/** 422 for a text that cannot be a run id. */
export function checkRunId(runId: string): void {
  if (!isRunId(runId)) {
    throw refuse.invalid("run_id", "must be run- followed by 32 or 16 hexadecimal digits");
  }
}

/** The caller's own run, deleted runs excluded; 422 or 404 otherwise. */
export function ownedRun(view: TimelineView, caller: Pick<Caller, "principalKey">, runId: string): RunView {
  const run = ownedRunOrTombstone(view, caller, runId);
  if (run.deleted) throw refuse.notFound("Run", "run_id");
  return run;
}

/** Like `ownedRun`, but a deleted run of the caller is returned too: deleting a run again succeeds. */
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

/**
 * The caller's own run that may still be acted on; 409 when it is terminal or expired. No timer expires a
 * run: `statusOf` of model/runs/run.ts compares its last activity with the TTL whenever the status is read.
 * See docs/api/runs.md#run-status. `action` is what the error message says, as in "Cannot stop …".
 */
export function actionableRun(
  view: TimelineView,
  caller: Pick<Caller, "principalKey">,
  runId: string,
  { nowMs, ttlMs }: { readonly nowMs: number; readonly ttlMs: number },
  action: string,
): RunView {
  const run = ownedRun(view, caller, runId);
  const status: RunStatus = statusOf(run, nowMs, ttlMs);
  if (isTerminal(status)) throw refuse.runIsTerminal(status, action);
  return run;
}

/**
 * Like `actionableRun`, at the end of work that began on an actionable run. A stop or a delete during the
 * work is refused, but expiry is not checked: a run is not idle while it is worked on.
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

/**
 * The error to report for work on a run that failed with `error`. Where the run ended during the work
 * (`signal` is that of its {@link RunWorkHandle}), the end of the run explains the failure better than
 * `error` does.
 */
export function explainedFailure(
  error: unknown,
  signal: AbortSignal,
  {
    view,
    caller,
    runId,
    action,
    whenTerminal = (status) => refuse.runIsTerminal(status, action),
    whenClosing = () => refuse.because("internal_error", "the service is closing"),
  }: {
    readonly view: TimelineView;
    readonly caller: Pick<Caller, "principalKey">;
    readonly runId: string;
    readonly action: string;
    /** The error for a run that was stopped or completed. */
    readonly whenTerminal?: (status: RunStatus) => unknown;
    /** The error where the work was cancelled because the service closes. */
    readonly whenClosing?: () => unknown;
  },
): unknown {
  if (!(signal.reason instanceof RunEnded)) return error;
  try {
    const { state } = ownedRun(view, caller, runId);
    return isTerminal(state) ? whenTerminal(state) : whenClosing();
  } catch (notFound) {
    return notFound;
  }
}
