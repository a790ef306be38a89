/** After a restart of the service: fails the live runs whose sessions ended with the last process. */

import type { World } from "../../base/world.ts";
import { Refusal } from "../../base/refusal.ts";
import { event } from "../../model/events/event_table.ts";
import type { Timeline } from "../../store/log/timeline.ts";

/** Runs in one commit: large enough that a thousand runs take few writes, small enough to keep a batch small. */
const RUNS_PER_COMMIT = 256;

/** Appends one `run_failed` to each live run that is still open. Call it before the first session may start. */
export function failRunsLeftOpen(timeline: Timeline, world: Pick<World, "log">): void {
  const open = Array.from(timeline.view.openLiveRuns());
  try {
    for (let start = 0; start < open.length; start += RUNS_PER_COMMIT) {
      timeline.commit(() =>
        open.slice(start, start + RUNS_PER_COMMIT).map(({ runId, source, sessionId }) =>
          event("run_failed", runId, {
            source: source === "live" ? "live" : "whip",
            session_id: sessionId,
            reason: "service_restarted",
          })
        )
      );
    }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    world.log.error("cannot fail the live runs of the last process", {
      runs: open.length,
      error: error.message,
    });
  }
}
