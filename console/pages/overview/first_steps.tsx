/** What can be done first, with the lines that do the same without the console. */

import { useState } from "preact/hooks";
import { useLoaded } from "../../service/loaded.ts";
import { client, SERVICE_URL } from "../../service/session.ts";
import { go, hrefOf, place } from "../../shell/place.ts";
import { FailureNote } from "../../ui/states.tsx";
import { copy } from "../../ui/value.tsx";
import { isRunning, job, startJob } from "../new/job.ts";

export interface FirstStepsProps {
  /** Whether the service has no runs yet: the steps are all that there is to see. */
  readonly isFirstVisit: boolean;
}

/** The clip of the project's own folder: thirty seconds with six cuts. */
const SAMPLE = { folder: "fixtures/clips", file: "bbb480.mp4" };

export function FirstSteps({ isFirstVisit }: FirstStepsProps) {
  const steps = (
    <div class="steps">
      <FirstAnalysis />
      <Publish />
      <Camera />
    </div>
  );
  if (isFirstVisit) {
    return (
      <section class="overview-part" aria-labelledby="overview-first">
        <h2 id="overview-first">Begin with one of these</h2>
        {steps}
      </section>
    );
  }
  return (
    <details class="overview-part">
      <summary>Add something</summary>
      {steps}
    </details>
  );
}

/** The sample clip where the service may read it, else a film of the reader. */
function FirstAnalysis() {
  const sample = useLoaded(async (signal) => await samplePath(signal), [client.value]);
  const [failure, setFailure] = useState<unknown>(undefined);
  const path = sample.value;
  const analyze = async () => {
    if (isRunning(job.peek())) return go(["new"]);
    setFailure(undefined);
    try {
      const ending = startJob({ source: path!, prompted: null });
      go(["new"]);
      const runId = await ending;
      if (runId !== null && place.peek().path[0] === "new") go(["runs", runId]);
    } catch (thrown) {
      setFailure(thrown);
    }
  };
  return (
    <article class="card step">
      <h3>{path ? "Analyze the sample clip" : "Analyze a film"}</h3>
      <p>
        {path
          ? "Thirty seconds of a film, cut into its shots: every frame is measured, no model is needed."
          : "A film of this computer is sent to the service and cut into its shots."}
      </p>
      {path
        ? <button type="button" class="primary" onClick={analyze}>Analyze the sample clip</button>
        : <a href={hrefOf(["new"])}>Choose a film</a>}
      {failure !== undefined && <FailureNote failure={failure} />}
      <Lines command={`analyze ${path ? `${SAMPLE.folder}/${SAMPLE.file}` : "film.mp4"}`} />
    </article>
  );
}

function Publish() {
  return (
    <article class="card step">
      <h3>Publish your camera</h3>
      <p>
        The camera or the screen of this computer, analyzed while it comes. It stops when you close the tab.
      </p>
      <a href={hrefOf(["live"], { way: "camera" })}>Publish from this browser</a>
      <Lines command="live film.mp4" />
    </article>
  );
}

function Camera() {
  return (
    <article class="card step">
      <h3>Add a camera</h3>
      <p>
        A camera on the network (RTSP) or an HLS stream. The service keeps watching it and reconnects by
        itself.
      </p>
      <a href={hrefOf(["live"], { way: "network" })}>Add a camera</a>
      <Lines command="live rtsps://camera.example.org/1" />
    </article>
  );
}

function Lines({ command }: { command: string }) {
  const text = `export SERVICE_API_URL=${SERVICE_URL} SERVICE_API_KEY=your-key\n./scripts/cli ${command}`;
  return (
    <details>
      <summary>The same in a terminal</summary>
      <pre tabIndex={0} aria-label={`Commands: ${command}`}>{text}</pre>
      <button type="button" class="quiet" onClick={() => copy(text)}>Copy</button>
    </details>
  );
}

/** Null where the service may not read it, or does not tell what it may read. */
async function samplePath(signal: AbortSignal): Promise<string | null> {
  const { settings } = await client.value.getSystem({ signal });
  const roots = settings.find(({ name }) => name === "SERVICE_INGEST_FILE_ROOTS")?.value?.split(",") ?? [];
  const root = roots.find((folder) => folder.replace(/\/$/, "").endsWith(SAMPLE.folder));
  return root === undefined ? null : `${root.replace(/\/$/, "")}/${SAMPLE.file}`;
}
