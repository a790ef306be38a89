/** A run without marks: what can be done to get some. */

import { useState } from "preact/hooks";
import { DEFAULT_MODEL, type Run } from "../../../client/mod.ts";
import { client } from "../../service/session.ts";
import { hrefOf } from "../../shell/place.ts";
import { EmptyNote, FailureNote } from "../../ui/states.tsx";
import type { RunHistory } from "./history.ts";
import { isOver } from "./run_state.ts";

export interface EmptyRunProps {
  readonly run: Run;
  readonly history: RunHistory;
  readonly onChanged: () => void;
}

export function EmptyRun(props: EmptyRunProps) {
  const { run, history } = props;
  if (history.last(["analysis_generated", "run_completed"])) {
    return (
      <EmptyNote title="Nothing was found">
        <p>The film was analyzed, and no mark came of it.</p>
      </EmptyNote>
    );
  }
  if (isOver(run)) {
    return (
      <EmptyNote title="Nothing was analyzed">
        <p>
          The run ended before anything was analyzed. Make a new one to analyze a film.
        </p>
      </EmptyNote>
    );
  }
  if (history.isLive) {
    return (
      <EmptyNote title="Nothing has happened yet">
        <p>Marks appear here as the session finds them.</p>
      </EmptyNote>
    );
  }
  return history.last(["ingest_received"])
    ? <Decoded {...props} />
    : (
      <EmptyNote title="Nothing was analyzed yet">
        <p>
          The run waits for a source, which whoever made it names. To analyze a film of yours, begin a{" "}
          <a href={hrefOf(["new"])}>new analysis</a>.
        </p>
      </EmptyNote>
    );
}

/** Signals without marks: the analysis makes some of them. */
function Decoded({ run, onChanged }: EmptyRunProps) {
  const [isBusy, setBusy] = useState(false);
  const [failure, setFailure] = useState<unknown>(undefined);
  const analyze = async () => {
    setBusy(true);
    setFailure(undefined);
    try {
      await client.value.analyzeRun(run.run_id, { model: run.model !== "" ? run.model : DEFAULT_MODEL });
    } catch (thrown) {
      setFailure(thrown);
    }
    setBusy(false);
    onChanged();
  };
  return (
    <EmptyNote title="Decoded, not yet analyzed">
      <p>The frames are measured. An analysis makes marks of them.</p>
      {isBusy
        ? <p role="status">Looking for cuts and faults …</p>
        : (
          <button type="button" class="primary" onClick={analyze}>
            Analyze
          </button>
        )}
      {failure !== undefined && <FailureNote failure={failure} />}
    </EmptyNote>
  );
}
