/** One run: its film, its timeline, and everything about the mark that is chosen. */

import { useEffect } from "preact/hooks";
import { isHttpError, RetryExhaustedError } from "../../../client/mod.ts";
import { useLoaded } from "../../service/loaded.ts";
import { client } from "../../service/session.ts";
import { runName } from "../../text/names.ts";
import { EmptyNote, FailureNote, Waiting } from "../../ui/states.tsx";
import { hrefOf, type Place } from "../../shell/place.ts";
import { RunView } from "./run_view.tsx";
import "./run.css";

/** The state of a run that is not over is asked for so often; its events come by themselves. */
const RELOAD_MS = 3_000;

export function RunPage({ path, query }: Place) {
  const runId = path[1] ?? "";
  const run = useLoaded((signal) => client.value.getRun(runId, { signal }), [
    runId,
    client.value,
  ], RELOAD_MS);
  const name = run.value && runName(run.value);
  useEffect(() => {
    if (name === undefined) return;
    const before = document.title;
    document.title = `${name} – ${before}`;
    return () => void (document.title = before);
  }, [name]);
  if (isNotThere(run.failure)) {
    return run.value ? <DeletedRun runId={runId} /> : <NoSuchRun runId={runId} />;
  }
  if (run.value !== undefined) {
    return (
      <section class="page run-page">
        {run.failure !== undefined && <FailureNote failure={run.failure} onRetry={run.reload} />}
        <RunView run={run.value} query={query} onChanged={run.reload} />
      </section>
    );
  }
  return (
    <section class="page">
      {run.failure !== undefined
        ? <FailureNote failure={run.failure} onRetry={run.reload} />
        : run.isSlow && <Waiting />}
    </section>
  );
}

function NoSuchRun({ runId }: { runId: string }) {
  return (
    <section class="page">
      <h1>There is no such run</h1>
      <EmptyNote title="Your key has no run of this id">
        <p>
          <code>{runId}</code>{" "}
          was deleted, belongs to another key, or was never there. If somebody sent you this address, ask
          which key opens it.
        </p>
        <p>
          <a href={hrefOf(["runs"])}>See the runs of your key</a>
        </p>
      </EmptyNote>
    </section>
  );
}

function DeletedRun({ runId }: { runId: string }) {
  return (
    <section class="page">
      <h1>The run was deleted</h1>
      <EmptyNote title="It was deleted while you looked at it">
        <p>
          <code>{runId}</code> can no longer be read. Its film stays where it was.
        </p>
        <p>
          <a href={hrefOf(["runs"])}>See your other runs</a>
        </p>
      </EmptyNote>
    </section>
  );
}

/** 404, or 422 for what is no id at all. */
function isNotThere(failure: unknown): boolean {
  const error = failure instanceof RetryExhaustedError ? failure.lastError : failure;
  return isHttpError(error) && (error.status === 404 || error.status === 422);
}
