/** What the state of a run means, and what can be done about it. */

import type { Run } from "../../../client/mod.ts";
import { words } from "../../text/names.ts";
import { ago, clock } from "../../text/time.ts";
import type { RunHistory } from "./history.ts";
import { numberAt, textAt } from "./payload.ts";

export interface StateText {
  readonly what: string;
  readonly todo: string;
  readonly isFault: boolean;
}

const TERMINAL: readonly string[] = [
  "completed",
  "failed",
  "cancelled",
  "expired",
];

/** Whether nothing can be added to the run any more. */
export function isOver({ status }: Run): boolean {
  return TERMINAL.includes(status);
}

/** Of `run_failed`. */
const FAILURES: Readonly<
  Record<string, readonly [what: string, todo: string]>
> = {
  peer_closed: [
    "The publisher closed the connection without ending its session.",
    "Publish again: it makes a new run.",
  ],
  media_idle: [
    "No picture came for 60 s.",
    "Look at the camera or the publisher, then open the source on a new run.",
  ],
  peer_disconnected: [
    "The publisher was not heard of for 8 s.",
    "Look at its network, then publish again.",
  ],
  peer_failed: [
    "The publisher could not connect within 15 s.",
    "UDP must pass between it and the service.",
  ],
  peer_state_channel_closed: [
    "The service lost the session by a fault of its own.",
    "Its log has the reason.",
  ],
  storage_quota: [
    "There was no room left for another event or picture.",
    "Delete runs or uploads, or raise the quota.",
  ],
  service_stopped: [
    "The service was stopped while the run was live.",
    "Open the source again on a new run.",
  ],
  service_restarted: [
    "The service crashed while the run was live.",
    "Open the source again on a new run.",
  ],
};

/** Of `run_completed` of a live session. */
const ENDS: Readonly<Record<string, string>> = {
  whip_terminated: "The publisher ended the session.",
  live_terminated: "The live source was closed.",
  source_ended: "The source was seen to its end.",
  source_changed: "The source was changed in the file of sources, and is watched in a new run.",
  source_removed: "The source is no longer always watched.",
};

export function stateText(run: Run, history: RunHistory): StateText {
  const end = history.last(["run_completed", "run_failed", "stop_requested"]);
  const reason = end ? textAt(end.payload, "reason") : null;
  switch (run.status) {
    case "failed": {
      const [what, todo] = FAILURES[reason ?? ""] ?? [
        reason === null ? "The run failed." : `The run failed: ${words(reason)}.`,
        "The log of the service has more.",
      ];
      return { what, todo, isFault: true };
    }
    case "completed":
      if (reason === "rolled_over") {
        return calm(`The camera goes on in the run ${textAt(end!.payload, "successor_run_id")}.`);
      }
      return calm(ENDS[reason ?? ""] ?? completeText(history), boundText(history));
    case "cancelled":
      return calm(
        `Stopped${end ? ` ${ago(end.pts_ms)}` : ""}; what was found until then stays.`,
      );
    case "expired":
      return calm(
        `The last event came ${ago(Date.parse(run.updated_at))}, so the run has expired.`,
        "Everything can be read; to analyze more, make a new run.",
      );
    case "pending":
      return calm(
        history.isLive ? "Waiting for the publisher to connect." : "Nothing was analyzed yet.",
        history.isLive ? "That may take 15 s." : "",
      );
    default:
      return history.isLive
        ? liveText(run, history)
        : calm("Open: it takes more analyses until it is stopped.", boundText(history));
  }
}

function liveText(run: Run, history: RunHistory): StateText {
  const source = history.last(["source_gap", "source_resumed"]);
  const start = history.last(["live_source_opened", "publisher_connected"]);
  if (source?.kind === "source_gap") {
    return {
      what: `The source stopped sending frames ${ago(source.pts_ms)}.`,
      todo: "The service keeps trying to reach it.",
      isFault: true,
    };
  }
  const since = start ? ` since ${clock(start.pts_ms)}` : "";
  return calm(
    `Live${since}; the last event came ${ago(Date.parse(run.updated_at))}.`,
  );
}

/** With the questions of the last analysis that no model answered, and the first reason. */
function completeText(history: RunHistory): string {
  const pass = history.last(["analysis_generated"])?.payload ?? {};
  const failed = numberAt(pass, "chunks_failed");
  if (failed === null) return "The analysis is complete.";
  const reason = words(textAt(pass, "first_chunk_error") ?? "the reason is not known");
  return `The analysis is complete, but ${failed} of ${
    numberAt(pass, "chunks_analyzed")
  } questions got no answer: ${reason}.`;
}

/** That a bound cut the last analysis; empty where none did. */
function boundText(history: RunHistory): string {
  const pass = history.last(["analysis_generated"])?.payload;
  return pass?.truncated === true
    ? `Only the first ${pass.frames} frames were looked at: max_frames ended the analysis before the film did.`
    : "";
}

function calm(what: string, todo = ""): StateText {
  return { what, todo, isFault: false };
}
