/** A new revision: its prompt, the form of the answer, and the restricted zone as a form or as JSON. */

import { useState } from "preact/hooks";
import { isHttpError, type Policy, type PolicyRequest, type Run } from "../../../client/mod.ts";
import { client } from "../../service/session.ts";
import { readJsonText } from "../../text/json_text.ts";
import { CodeField } from "../../ui/code_field.tsx";
import { TextField } from "../../ui/field.tsx";
import { FailureNote } from "../../ui/states.tsx";
import { DRAFT_ZONE, PolicyZoneFields, type Zone } from "./zone_fields.tsx";

export interface DraftFormProps {
  readonly run: Run;
  /** The revision that the text begins with; null for an empty form. */
  readonly base: Policy | null;
  /** The newest revision, which the new one follows; null for the first one. */
  readonly newest: number | null;
  readonly onSaved: (revision: number) => void;
  /** Somebody else has written a revision meanwhile. */
  readonly onStale: () => void;
  readonly onCancel: (() => void) | undefined;
}

export function DraftForm(
  { run, base, newest, onSaved, onStale, onCancel }: DraftFormProps,
) {
  const [prompt, setPrompt] = useState(base?.prompt ?? "");
  const [schema, setSchema] = useState(jsonText(base?.output_schema));
  const [parameters, setParameters] = useState(
    jsonText(base?.parameters, "{}"),
  );
  const [isJson, setJson] = useState(false);
  const [parent, setParent] = useState(newest);
  const [failure, setFailure] = useState<unknown>(undefined);
  const [isSaving, setSaving] = useState(false);
  const schemaJson = schema.trim() === "" ? { value: null } : readJsonText(schema);
  const parametersJson = readJsonText(
    parameters.trim() === "" ? "{}" : parameters,
  );
  const faults = faultsOf(failure);
  const zone = "value" in parametersJson ? zoneOf(parametersJson.value) : undefined;
  const isStale = faults.parent_revision !== undefined;
  const save = async (event: Event) => {
    event.preventDefault();
    if ("fault" in schemaJson || "fault" in parametersJson) return;
    setSaving(true);
    try {
      const request = {
        parent_revision: parent,
        prompt: prompt.trim() === "" ? null : prompt,
        output_schema: schemaJson.value,
        parameters: parametersJson.value,
      } as PolicyRequest;
      const { policy } = await client.peek().createPolicy(run.run_id, request);
      onSaved(policy.revision);
    } catch (error) {
      setFailure(error);
      setSaving(false);
      if (isHttpError(error) && error.status === 409) onStale();
    }
  };
  return (
    <form
      class="card draft-form"
      onSubmit={save}
      noValidate
      aria-label="New revision"
    >
      <h2>New revision{base && `, from revision ${base.revision}`}</h2>
      <TextField
        label="Prompt"
        rows={4}
        value={prompt}
        onInput={setPrompt}
        fault={faults.prompt}
        placeholder="What happens at the dock? Name each vehicle."
        hint="Needed, unless there is a restricted zone; left empty, the session keeps the prompt that it has"
      />
      <CodeField
        label="Form of the answer"
        hint="A JSON Schema, or empty: then the answer is free text"
        rows={4}
        value={schema}
        onInput={setSchema}
        faults={"fault" in schemaJson ? [schemaJson.fault] : []}
        fault={faults.output_schema}
      />
      <fieldset class="parameters">
        <legend>Parameters</legend>
        <div class="row">
          <label class="row">
            <input
              type="checkbox"
              checked={zone != null}
              disabled={zone === undefined}
              onChange={({ currentTarget: { checked } }) =>
                setParameters(
                  jsonText(checked ? { restricted_zone: DRAFT_ZONE } : {}),
                )}
            />
            Restricted zone
          </label>
          <button
            type="button"
            class="quiet"
            aria-pressed={isJson}
            onClick={() => setJson(!isJson)}
          >
            as JSON
          </button>
        </div>
        {isJson
          ? (
            <CodeField
              label="Parameters as JSON"
              rows={6}
              value={parameters}
              onInput={setParameters}
              faults={"fault" in parametersJson ? [parametersJson.fault] : []}
              fault={Object.entries(faults).filter(([field]) => field.startsWith("zone."))
                .map(([field, message]) => `${field.slice(5)} ${message}`).join(
                  "; ",
                ) || undefined}
            />
          )
          : zone === undefined
          ? (
            <p class="fault">
              The JSON of the parameters has a fault: look at it “as JSON”.
            </p>
          )
          : zone !== null && (
            <PolicyZoneFields
              run={run}
              zone={{
                ...DRAFT_ZONE,
                ...zone,
                region: { ...DRAFT_ZONE.region, ...zone.region },
              }}
              onChange={(changed) => setParameters(jsonText({ restricted_zone: changed }))}
              faults={zoneFaults(faults)}
            />
          )}
      </fieldset>
      {isStale
        ? (
          <div class="note fault" role="alert">
            <p>
              <strong>
                It was not saved: somebody else has written revision {newest} meanwhile.
              </strong>{" "}
              Your text is kept. Save it on top of that revision, or look at the revision first.
            </p>
          </div>
        )
        : areShown(faults)
        ? (
          <p class="fault" role="alert">
            It was not saved: look at the fields that are marked.
          </p>
        )
        : failure !== undefined && <FailureNote failure={failure} />}
      <div class="row">
        {isStale
          ? (
            <button
              key="take" // a click on a button that becomes the other one would submit at once
              type="button"
              class="primary"
              onClick={() => {
                setParent(newest);
                setFailure(undefined);
              }}
            >
              Take revision {newest} as the one before
            </button>
          )
          : (
            <button
              key="save"
              type="submit"
              class="primary"
              disabled={isSaving || "fault" in schemaJson ||
                "fault" in parametersJson}
            >
              Save draft
            </button>
          )}
        {onCancel && <button type="button" onClick={onCancel}>Cancel</button>}
        <span class="hint">
          {parent === null ? "It will be the first revision." : `It will follow revision ${parent}.`}{" "}
          A saved revision is never changed.
        </span>
      </div>
    </form>
  );
}

function jsonText(value: object | null | undefined, empty = ""): string {
  return value == null ? empty : JSON.stringify(value, null, 2);
}

/** Null without one, undefined where the value is none. */
function zoneOf(value: unknown): Zone | null | undefined {
  if (typeof value !== "object" || value === null) return undefined;
  const { restricted_zone: zone } = value as { restricted_zone?: unknown };
  if (zone == null) return null;
  return typeof zone === "object" && !Array.isArray(zone) ? zone as Zone : undefined;
}

const ZONE_FIELD = "parameters.restricted_zone";

/** By field; those of the zone as `zone.enter_motion_score`. */
function faultsOf(failure: unknown): Readonly<Record<string, string>> {
  if (!isHttpError(failure)) return {};
  const details = failure.apiError?.details ?? [];
  return Object.fromEntries(details.map(({ field, message }) => {
    const name = field.startsWith(`${ZONE_FIELD}.`) ? `zone.${field.slice(ZONE_FIELD.length + 1)}` : field;
    return [name, message];
  }));
}

function zoneFaults(
  faults: Readonly<Record<string, string>>,
): Record<string, string> {
  return Object.fromEntries(
    Object.entries(faults).filter(([field]) => field.startsWith("zone.")).map((
      [field, fault],
    ) => [field.slice(5), fault]),
  );
}

/** Whether each fault stands at its field. */
function areShown(faults: Readonly<Record<string, string>>): boolean {
  const fields = Object.keys(faults);
  return fields.length > 0 &&
    fields.every((field) => /^(prompt|output_schema|zone\..*)$/.test(field));
}
