/** A run without marks: what can be done to get some. */

import { useRef, useState } from "preact/hooks";
import type { Run } from "../../../client/mod.ts";
import { client } from "../../service/session.ts";
import { bytesText } from "../../text/numbers.ts";
import { EmptyNote, FailureNote } from "../../ui/states.tsx";
import type { RunHistory } from "./history.ts";
import { isOver } from "./run_state.ts";

export interface EmptyRunProps {
  readonly run: Run;
  readonly history: RunHistory;
  readonly onChanged: () => void;
}

/** As many frames as one decode may have. */
const FRAMES_MAX = 500_000;

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
  return (
    <FilmChoice
      {...props}
      hasFilm={history.last(["ingest_received"]) !== undefined}
    />
  );
}

/** Uploads a film into the run, decodes and analyzes it; or analyzes what was decoded already. */
function FilmChoice(
  { run, hasFilm, onChanged }: EmptyRunProps & { hasFilm: boolean },
) {
  const input = useRef<HTMLInputElement>(null);
  const [step, setStep] = useState<string | null>(null);
  const [failure, setFailure] = useState<unknown>(undefined);
  const start = async (work: () => Promise<void>) => {
    setFailure(undefined);
    try {
      await work();
    } catch (thrown) {
      setFailure(thrown);
    }
    setStep(null);
    onChanged();
  };
  const analyze = async () => {
    setStep("Looking for cuts and faults …");
    const model = run.model !== "" ? run.model : (await client.value.listModels())[0]!.id;
    await client.value.analyzeRun(run.run_id, { model });
  };
  const analyzeFile = async (file: File) => {
    setStep(`Sending ${file.name} …`);
    const { file_path } = await client.value.uploadFile(
      file,
      (sent) =>
        setStep(
          `Sending ${file.name}: ${bytesText(sent)} of ${bytesText(file.size)} …`,
        ),
    );
    setStep("Decoding every frame …");
    await client.value.ingestRun(run.run_id, {
      source_uri: file_path,
      max_frames: FRAMES_MAX,
    });
    await analyze();
  };
  return (
    <EmptyNote
      title={hasFilm ? "Decoded, not yet analyzed" : "Nothing was analyzed yet"}
    >
      <p>
        {hasFilm
          ? "The frames are measured. An analysis makes marks of them."
          : "Choose a film: it is uploaded, decoded, and searched for cuts, faults, flashes and freezes."}
      </p>
      <input
        ref={input}
        type="file"
        hidden
        aria-label="Film"
        accept=".mp4,.webm,.mov,.avi"
        onChange={({ currentTarget: { files } }) => files?.[0] && start(() => analyzeFile(files[0]!))}
      />
      {step === null
        ? (
          <button
            type="button"
            class="primary"
            onClick={() => hasFilm ? start(analyze) : input.current!.click()}
          >
            {hasFilm ? "Analyze" : "Choose a film …"}
          </button>
        )
        : <p role="status">{step}</p>}
      {failure !== undefined && <FailureNote failure={failure} />}
    </EmptyNote>
  );
}
