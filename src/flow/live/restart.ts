/** After a restart of the service: fails the live runs whose sessions ended with the last process. */

import type { Metrics } from "../../contract/metrics.ts";
import type { World } from "../../base/world.ts";
import { Refusal } from "../../contract/refusal.ts";
import type { NewEvent } from "../../model/runs/run.ts";
import { event } from "../../model/events/event_table.ts";
import { lackingExplanations } from "./describing/enricher.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";

/**
 * Runs in one commit: large enough that a thousand runs take few writes, small enough to keep a batch small.
 */
const RUNS_PER_COMMIT = 256;

/**
 * Appends one `run_failed` to each live run that is still open, and before it the explanations that its
 * events lack, and those of the run before it, from which its session may just have rolled over. Call it
 * before the first session may start.
 */
export function failRunsLeftOpen(
  timeline: Timeline,
  world: Pick<World, "log">,
  metrics: Pick<Metrics, "add">,
): void {
  const open = Array.from(timeline.view.openLiveRuns());
  try {
    for (let start = 0; start < open.length; start += RUNS_PER_COMMIT) {
      const written = timeline.commit(() =>
        open.slice(start, start + RUNS_PER_COMMIT).flatMap(({ runId, source, sessionId }) => [
          ...explanationsOf(timeline, runId),
          event("run_failed", runId, {
            source: source === "live" ? "live" : "whip",
            session_id: sessionId,
            reason: "service_restarted",
          }),
        ])
      );
      const explained = written.filter(({ kind }) => kind === "event_enriched").length;
      metrics.add("service_pipeline_enrichments_total", { outcome: "service_restarted" }, explained);
    }
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    world.log.error("cannot fail the live runs of the last process", {
      runs: open.length,
      error: error.message,
    });
  }
}

function explanationsOf(timeline: Timeline, runId: string): NewEvent[] {
  const [created] = [...timeline.read(runId, { kinds: CREATED, limit: 1 })].flat();
  const { predecessor_run_id: before } = JSON.parse(created?.payload ?? "{}") as {
    predecessor_run_id?: string | null;
  };
  const isThere = typeof before === "string" && timeline.view.run(before)?.deleted === false;
  return [...isThere ? lackingExplanations(timeline, before) : [], ...lackingExplanations(timeline, runId)];
}

const CREATED: ReadonlySet<string> = new Set(["run_created"]);
