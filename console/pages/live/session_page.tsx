/** The page of one live session: whether there is such a run, and whether its session is still open. */

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { isHttpError, RetryExhaustedError, type WatchedSession } from "../../../client/mod.ts";
import { refreshHealth } from "../../service/health.ts";
import { useLoaded } from "../../service/loaded.ts";
import { client } from "../../service/session.ts";
import { hrefOf, type Place } from "../../shell/place.ts";
import { openRunMarks } from "../../timeline/run_marks.ts";
import { EmptyNote, FailureNote, Waiting } from "../../ui/states.tsx";
import { HISTORY_KINDS } from "../run/history.ts";
import { dropPublication } from "./publication.ts";
import { EndedSession } from "./ended_session.tsx";
import { OpenSession } from "./open_session.tsx";
import { SignalWindow } from "./signal_window.ts";
import "./live.css";

/** The service counts frames and signals once a second. */
const RELOAD_MS = 1_000;
/** A run without an open session may get one. */
const REOPENED_MS = 10_000;

export function LiveSessionPage({ path }: Place) {
  const runId = path[1] ?? "";
  const signals = useMemo(() => new SignalWindow(), [runId]);
  const [everyMs, setEveryMs] = useState(RELOAD_MS);
  const look = useLoaded(
    async (signal) => {
      const { afterMs } = signals;
      const session = await openSession(runId, afterMs, signal);
      if (session) signals.add(session.signals, afterMs);
      return { session };
    },
    [runId, client.value],
    everyMs,
  );
  const marks = useMemo(() => openRunMarks(runId, HISTORY_KINDS), [runId]);
  useEffect(() => () => marks.close(), [marks]);
  const last = useRef<WatchedSession | null>(null);
  const session = look.value?.session ?? null;
  if (session) last.current = session;
  const isOver = look.value !== undefined && session === null;
  useEffect(() => setEveryMs(isOver ? REOPENED_MS : RELOAD_MS), [isOver]);
  useEffect(() => {
    if (look.value !== undefined) refreshHealth();
    if (isOver) dropPublication(runId);
  }, [isOver, session?.state]);

  if (look.value === undefined) {
    return (
      <section class="page">
        <h1>Live</h1>
        {isMissing(look.failure)
          ? <NoSuchSession runId={runId} />
          : look.failure !== undefined
          ? <FailureNote failure={look.failure} onRetry={look.reload} />
          : look.isSlow && <Waiting />}
      </section>
    );
  }
  return (
    <section class="page live-page">
      {session
        ? (
          <OpenSession
            session={session}
            signals={signals}
            marks={marks}
            isAway={look.failure !== undefined}
            onChanged={look.reload}
          />
        )
        : <EndedSession runId={runId} last={last.current} marks={marks} />}
    </section>
  );
}

function NoSuchSession({ runId }: { runId: string }) {
  return (
    <EmptyNote title="Your key has no run of this id">
      <p>
        <code>{runId}</code> was deleted, belongs to another key, or was never there.
      </p>
      <p>
        <a href={hrefOf(["live"])}>Begin a live session</a>
      </p>
    </EmptyNote>
  );
}

/** Null where the run has no open session; a run that is not there is a failure. */
async function openSession(
  runId: string,
  afterMs: number | null,
  signal: AbortSignal,
): Promise<WatchedSession | null> {
  const service = client.peek();
  try {
    return await service.getLiveSession(
      runId,
      afterMs === null ? {} : { after_ms: afterMs },
      { signal },
    );
  } catch (error) {
    if (!isMissing(error)) throw error;
    await service.getRun(runId, { signal });
    return null;
  }
}

/** 404, or 422 for what is no id at all. */
function isMissing(failure: unknown): boolean {
  const error = failure instanceof RetryExhaustedError ? failure.lastError : failure;
  return isHttpError(error) && (error.status === 404 || error.status === 422);
}
