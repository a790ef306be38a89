/** A film is chosen, and what is to be found in it; the run page shows what was. */

import { useState } from "preact/hooks";
import { USUAL_QUESTION } from "../../../client/mod.ts";
import { client } from "../../service/session.ts";
import { useLoaded } from "../../service/loaded.ts";
import { go, place } from "../../shell/place.ts";
import { ChoiceField, TextField } from "../../ui/field.tsx";
import { Shown } from "../../ui/states.tsx";
import { tell } from "../../ui/toast.tsx";
import { type Crop, CropField } from "./crop.tsx";
import { isRunning, job, startJob } from "./job.ts";
import { JobProgress } from "./job_progress.tsx";
import { SourceChoice } from "./source_choice.tsx";
import "./new.css";

/** What the service takes for the rate of `fixed`. */
const RATE = { least: 0.2, most: 120, usual: String(USUAL_QUESTION.fixed_fps) };
const PICTURES_MOST = 4;
const PROMPT_BYTES = 4096;

export function NewAnalysis() {
  const present = job.value;
  return (
    <section class="page new-page">
      <header class="page-head">
        <h1>New analysis</h1>
      </header>
      {present && <JobProgress of={present} />}
      {!isRunning(present) && <WishesForm />}
    </section>
  );
}

function WishesForm() {
  const [file, setFile] = useState<File | null>(null);
  const [address, setAddress] = useState("");
  const [isPrompted, setPrompted] = useState(false);
  const [prompt, setPrompt] = useState("");
  const [chosenModel, setModel] = useState("");
  const [rate, setRate] = useState(RATE.usual);
  const [pictures, setPictures] = useState<number>(USUAL_QUESTION.semantic_frames_per_chunk);
  const [schema, setSchema] = useState("");
  const [crop, setCrop] = useState<Crop | null>(null);
  const [isTried, setTried] = useState(false);
  const models = useLoaded((signal) => client.value.listModels({ signal }), [
    client.value,
  ]);
  const model = chosenModel ||
    (models.value?.find(({ availability }) => availability === "ready")?.id ?? "");
  const faults = {
    source: file === null && address.trim() === "" ? "Choose a film or name a source." : undefined,
    model: isPrompted && model === "" ? "Choose a model." : undefined,
    prompt: new TextEncoder().encode(prompt.trim()).length > PROMPT_BYTES
      ? `At most ${PROMPT_BYTES} bytes.`
      : undefined,
    rate: isRate(rate) ? undefined : `A number from ${RATE.least} to ${RATE.most}.`,
    schema: schemaFault(schema),
  };
  const start = async (event: Event) => {
    event.preventDefault();
    setTried(true);
    const isFaulty = faults.source ||
      (isPrompted &&
        Object.values(faults).some((fault) => fault !== undefined));
    if (isFaulty) return;
    const runId = await startJob({
      source: file ?? address.trim(),
      prompted: isPrompted
        ? {
          model,
          prompt: prompt.trim(),
          framesASecond: Number(rate),
          picturesAChunk: pictures,
          crop,
          outputSchema: schema.trim() === "" ? null : JSON.parse(schema),
        }
        : null,
    });
    if (runId === null) return;
    if (place.peek().path[0] === "new") go(["runs", runId]);
    else tell(`The analysis of ${file?.name ?? address} is complete`);
  };
  return (
    <form class="form" onSubmit={start} noValidate>
      <SourceChoice
        file={file}
        address={address}
        onFile={setFile}
        onAddress={setAddress}
      />
      {isTried && faults.source && <p class="fault" role="alert">{faults.source}</p>}
      <fieldset class="ways">
        <legend>What is to be found</legend>
        <label>
          <input
            type="radio"
            name="way"
            checked={!isPrompted}
            onChange={() => setPrompted(false)}
          />
          <span>
            <strong>Cuts, faults, flashes, freezes, black</strong>
            <small>
              Every frame is measured. No model is asked; the same film always gives the same marks.
            </small>
          </span>
        </label>
        <label>
          <input
            type="radio"
            name="way"
            checked={isPrompted}
            onChange={() => setPrompted(true)}
          />
          <span>
            <strong>Words about it</strong>
            <small>
              A vision-language model looks at it chunk by chunk and answers your question.
            </small>
          </span>
        </label>
      </fieldset>
      {isPrompted && (
        <>
          <TextField
            label="Question"
            rows={3}
            value={prompt}
            onInput={setPrompt}
            fault={isTried ? faults.prompt : undefined}
            placeholder="What happens at the dock? Name each vehicle."
            hint="Without one the service asks its own: what is seen, and what happens"
          />
          <Shown of={models}>
            {(list) => (
              <ChoiceField
                label="Model"
                value={model}
                onChange={setModel}
                fault={isTried ? faults.model : undefined}
                hint={list.every(({ availability }) => availability === "unavailable")
                  ? "No model can be reached now: the service has no backend, or none answers"
                  : undefined}
                choices={[
                  { value: "", text: "Choose …" },
                  ...list.map(({ id, availability }) => ({
                    value: id,
                    text: availability === "ready" ? id : `${id} (${availability})`,
                    isDisabled: availability === "unavailable",
                  })),
                ]}
              />
            )}
          </Shown>
          <TextField
            label="Frames a second"
            type="number"
            value={rate}
            onInput={setRate}
            fault={isTried ? faults.rate : undefined}
            hint={`An answer is about ${USUAL_QUESTION.chunk_size} of these frames${
              isRate(rate) ? `: ${spanText(USUAL_QUESTION.chunk_size / Number(rate))} of film` : ""
            }`}
          />
          <ChoiceField
            label="Pictures for each answer"
            value={String(pictures)}
            onChange={(value) => setPictures(Number(value))}
            choices={Array.from({ length: PICTURES_MOST }, (_, i) => ({
              value: String(i + 1),
              text: String(i + 1),
            }))}
            hint={picturesText(pictures, rate)}
          />
          <CropField file={file} crop={crop} onChange={setCrop} />
          <details>
            <summary>Form of the answer</summary>
            <TextField
              label="JSON Schema"
              rows={6}
              isMono
              value={schema}
              onInput={setSchema}
              fault={faults.schema}
              hint="The model answers with an object of this schema"
            />
          </details>
        </>
      )}
      <div class="row">
        <button type="submit" class="primary">Analyze</button>
      </div>
    </form>
  );
}

/** What the model sees, so that nobody takes two pictures for the whole film. */
function picturesText(pictures: number, rate: string): string {
  const seen = pictures === 1 ? "one picture" : `${pictures} pictures`;
  const span = isRate(rate) ? ` of each ${spanText(USUAL_QUESTION.chunk_size / Number(rate))}` : "";
  return `The model sees ${seen}${span}; more cost more`;
}

function spanText(seconds: number): string {
  return `${Math.round(seconds * 10) / 10} s`;
}

function isRate(text: string): boolean {
  const rate = Number(text);
  return text.trim() !== "" && rate >= RATE.least && rate <= RATE.most;
}

function schemaFault(text: string): string | undefined {
  if (text.trim() === "") return undefined;
  try {
    const value = JSON.parse(text);
    const isObject = typeof value === "object" && value !== null &&
      !Array.isArray(value);
    return isObject ? undefined : "It must be a JSON object.";
  } catch (error) {
    return error instanceof Error ? error.message : "It is no JSON.";
  }
}
