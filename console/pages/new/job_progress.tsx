/** How far the analysis under way is, and what it has found. */

import { hrefOf } from "../../shell/place.ts";
import { bytesText, counted } from "../../text/numbers.ts";
import { mediaTime } from "../../text/time.ts";
import { FailureNote } from "../../ui/states.tsx";
import { cancelJob, forgetJob, isRunning, type Job } from "./job.ts";

const STEPS: Readonly<Record<Job["step"], string>> = {
  upload: "Sending the film",
  decode: "Decoding and measuring every frame",
  describe: "A model describes it, chunk by chunk",
  done: "The analysis is complete",
  failed: "The analysis failed",
  cancelled: "The analysis was cancelled",
};

export function JobProgress({ of }: { of: Job }) {
  const { name, step, runId, sent, size, chunks, lastWords, lastMs, failure } = of;
  return (
    <section class="job" aria-label="Analysis under way">
      <h2>{name}</h2>
      <p role="status">
        {STEPS[step]}
        {step === "upload" && size > 0 && <span class="number">: {bytesText(sent)} of {bytesText(size)}
        </span>}
        {step === "describe" && (
          <span class="number">
            : {counted(chunks, "chunk")}, up to {mediaTime(lastMs)}
          </span>
        )}
      </p>
      {isRunning(of) && (
        <progress
          aria-label="Progress"
          {...(step === "upload" && size > 0 ? { value: sent, max: size } : {})}
        />
      )}
      {lastWords !== null && <blockquote dir="auto">{lastWords}</blockquote>}
      {step === "failed" && <FailureNote failure={failure} />}
      <div class="row">
        {isRunning(of) && <button type="button" onClick={cancelJob}>Cancel</button>}
        {runId !== null && <a href={hrefOf(["runs", runId])}>See the run</a>}
        {!isRunning(of) && <button type="button" class="quiet" onClick={forgetJob}>Close</button>}
      </div>
    </section>
  );
}
