/** The few events of a run that are no marks and tell how it came about: its sources, its passes, its end. */

import type { TimelineEvent } from "../../../client/mod.ts";
import { numberAt, textAt } from "./payload.ts";

/** What the history is made of. None of them is frequent, and none is long. */
export const HISTORY_KINDS: readonly string[] = [
  "run_created",
  "ingest_received",
  "analysis_generated",
  "semantic_fallback_activated",
  "live_source_opened",
  "publisher_connected",
  "source_gap",
  "source_resumed",
  "decoder_restarted",
  "policy_deployment_acknowledged",
  "policy_rollback_acknowledged",
  "run_completed",
  "run_failed",
  "stop_requested",
  "run_deleted",
];

export interface RunHistory {
  /** By seq. */
  readonly events: readonly TimelineEvent[];
  /** The last event of one of these kinds, before `beforeSeq` where that is given. */
  last(kinds: readonly string[], beforeSeq?: number): TimelineEvent | undefined;
  /** The first event of a kind after a seq. */
  next(kind: string, afterSeq: number): TimelineEvent | undefined;
  /** The model of the pass that a request made; null while the pass is under way. */
  modelOf(requestId: string | null): string | null;
  /** Whether the run is, or was, fed by a camera or a publisher. */
  readonly isLive: boolean;
}

/** The history as the kept events of a run tell it. */
export function historyOf(events: readonly TimelineEvent[]): RunHistory {
  return {
    events,
    last: (kinds, beforeSeq = Infinity) =>
      events.findLast(({ kind, seq }) => seq < beforeSeq && kinds.includes(kind)),
    next: (kind, afterSeq) => events.find((event) => event.seq > afterSeq && event.kind === kind),
    modelOf: (requestId) => {
      if (requestId === null) return null;
      const pass = events.find(({ kind, payload }) =>
        kind === "analysis_generated" && payload.request_id === requestId
      );
      return pass ? textAt(pass.payload, "model") : null;
    },
    isLive: events.some(({ kind, payload }) =>
      kind === "live_source_opened" || kind === "publisher_connected" ||
      payload.source === "whip"
    ),
  };
}

/** The pixels of the picture, as the first source that tells them has it. */
export function pictureSize(
  { events }: RunHistory,
): { width: number; height: number } | null {
  for (const { payload } of events) {
    const width = numberAt(payload, "coordinates.source_extent.width");
    const height = numberAt(payload, "coordinates.source_extent.height");
    if (width && height) return { width, height };
  }
  return null;
}
