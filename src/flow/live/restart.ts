/** What a new process makes of the live sessions that the last one left behind. */

import type { World } from "../../base/world.ts";
import { Refusal } from "../../base/refusal.ts";
import { event } from "../../model/events/event_table.ts";
import type { Timeline } from "../../store/log/timeline.ts";

/** Runs in one commit: so many that a thousand take few writes, so few that a batch stays small. */
const RUNS_PER_COMMIT = 256;

/** Nobody feeds these runs any more, so each one fails, once. Call it before the first session may begin. */
export function failRunsLeftOpen(timeline: Timeline, world: Pick<World, "log">): void {
  const left = Array.from(timeline.view.openLiveRuns());
  try {
    for (let at = 0; at < left.length; at += RUNS_PER_COMMIT) {
      timeline.commit(() =>
        left.slice(at, at + RUNS_PER_COMMIT).map(({ runId, source, sessionId }) =>
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
    world.log.error("cannot close live runs of the last process", {
      runs: left.length,
      error: error.message,
    });
  }
}
