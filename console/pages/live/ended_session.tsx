/** A run whose live session is over, or that never had one: why, and what can be done next. */

import type { WatchedSession } from "../../../client/mod.ts";
import { useLoaded } from "../../service/loaded.ts";
import { client } from "../../service/session.ts";
import { hrefOf } from "../../shell/place.ts";
import { liveName } from "../../text/live_state.ts";
import { runName } from "../../text/names.ts";
import type { RunMarks } from "../../timeline/run_marks.ts";
import { EmptyNote, Shown } from "../../ui/states.tsx";
import { Id, Status } from "../../ui/value.tsx";
import { historyOf } from "../run/history.ts";
import { stateText } from "../run/run_state.ts";
import { EventFeed } from "./event_feed.tsx";

export interface EndedSessionProps {
  readonly runId: string;
  /** As the session was last seen by this page; null where it was over before. */
  readonly last: WatchedSession | null;
  readonly marks: RunMarks;
}

export function EndedSession({ runId, last, marks }: EndedSessionProps) {
  const history = historyOf(marks.kept.value);
  const run = useLoaded((signal) => client.value.getRun(runId, { signal }), [
    client.value,
    runId,
    history.events.length,
  ]);
  const isLive = last !== null || history.isLive;
  return (
    <Shown of={run}>
      {(run) => {
        const { what, todo } = stateText(run, history);
        const name = last ? liveName(last) : runName(run);
        return (
          <>
            <header class="page-head">
              <h1>{isLive ? name : "Live"}</h1>
              <Id value={runId} />
              <Status of={run.status} />
            </header>
            <EmptyNote
              title={isLive ? "The session has ended" : "This run has no live session"}
            >
              <p>
                {isLive ? `${what} ${todo}` : "It analyzes a recording, or nothing yet."}
              </p>
              <div class="row">
                <a href={hrefOf(["runs", runId])}>See what was found</a>
                <a
                  href={hrefOf(["live"], {
                    from: last?.source === "live" ? "network" : "camera",
                  })}
                >
                  Begin another session
                </a>
              </div>
            </EmptyNote>
            {isLive && <EventFeed runId={runId} marks={marks} />}
          </>
        );
      }}
    </Shown>
  );
}
