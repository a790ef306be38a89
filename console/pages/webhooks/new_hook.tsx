/** A new webhook: for which run, where to, which kinds of events; then its signing secret, which is shown
 * once.
 */

import { useState } from "preact/hooks";
import type { CreatedWebhook } from "../../../client/mod.ts";
import { failureText } from "../../service/failures.ts";
import { useLoaded } from "../../service/loaded.ts";
import { CHOICE_RUNS, newestRuns } from "../../service/runs.ts";
import { client } from "../../service/session.ts";
import { hrefOf } from "../../shell/place.ts";
import { runName, shortId, words } from "../../text/names.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { ChoiceField, TextField } from "../../ui/field.tsx";
import { FailureNote, Shown } from "../../ui/states.tsx";
import { copy } from "../../ui/value.tsx";
import { ConditionFields, conditionsOf, NO_CONDITIONS } from "./condition_fields.tsx";

export interface NewHookProps {
  readonly isOpen: boolean;
  readonly onClose: () => void;
  readonly onMade: () => void;
}

/** Those that most receivers want; any other can be typed. */
const USUAL_KINDS = [
  "marker_emitted",
  "semantic_chunk_inferred",
  "run_completed",
  "run_failed",
  "restricted_zone_activity_entered",
  "vlm",
];

export function NewHook({ isOpen, onClose, onMade }: NewHookProps) {
  const [made, setMade] = useState<CreatedWebhook | null>(null);
  const close = () => {
    setMade(null);
    onClose();
  };
  return (
    <Dialog
      title={made === null ? "New webhook" : "Its signing secret"}
      isOpen={isOpen}
      onClose={close}
    >
      {made === null
        ? (
          <HookForm
            onMade={(hook) => {
              setMade(hook);
              onMade();
            }}
            onClose={close}
          />
        )
        : <Secret of={made} onClose={close} />}
    </Dialog>
  );
}

function HookForm(
  { onMade, onClose }: {
    onMade: (hook: CreatedWebhook) => void;
    onClose: () => void;
  },
) {
  const runs = useLoaded(async (signal) => (await newestRuns(CHOICE_RUNS, signal)).runs, [
    client.value,
  ]);
  const [runId, setRunId] = useState("");
  const [url, setUrl] = useState("");
  const [kinds, setKinds] = useState<readonly string[]>([]);
  const [others, setOthers] = useState("");
  const [conditions, setConditions] = useState(NO_CONDITIONS);
  const [failure, setFailure] = useState<unknown>(undefined);
  const [isSending, setSending] = useState(false);
  const [isTried, setTried] = useState(false);
  const faults = failure === undefined ? [] : failureText(failure).fields;
  const faultOf = (field: string) => faults.find((fault) => fault.field === field)?.message;
  const send = async (event: Event) => {
    event.preventDefault();
    setTried(true);
    if (runId === "" || url.trim() === "") return;
    setSending(true);
    setFailure(undefined);
    try {
      const typed = others.split(/[\s,]+/).filter(Boolean);
      onMade(
        await client.value.createWebhook(runId, {
          url,
          event_kinds: [...kinds, ...typed],
          ...conditionsOf(conditions),
        }),
      );
    } catch (error) {
      setFailure(error);
    } finally {
      setSending(false);
    }
  };
  return (
    <form class="form" onSubmit={send} noValidate>
      <Shown of={runs}>
        {(list) =>
          list.length === 0
            ? (
              <p>
                There is no run whose events could be sent. <a href={hrefOf(["new"])}>Analyze a film</a>{" "}
                first.
              </p>
            )
            : (
              <ChoiceField
                label="Run"
                value={runId}
                onChange={setRunId}
                fault={isTried && runId === "" ? "Choose the run whose events are sent." : undefined}
                choices={[
                  { value: "", text: "Choose …" },
                  ...list.toReversed().map((run) => ({
                    value: run.run_id,
                    text: `${runName(run)} · ${run.status} · ${shortId(run.run_id)}`,
                  })),
                ]}
              />
            )}
      </Shown>
      <TextField
        label="Address"
        type="url"
        value={url}
        onInput={setUrl}
        placeholder="https://hooks.example.com/events"
        fault={isTried && url.trim() === "" ? "Say where the events are sent." : faultOf("url")}
        hint="An https address of a public host; others only where the operator admits them"
      />
      <fieldset class="kinds">
        <legend>Kinds of events; all where none is chosen</legend>
        {USUAL_KINDS.map((kind) => (
          <label key={kind}>
            <input
              type="checkbox"
              checked={kinds.includes(kind)}
              onChange={() =>
                setKinds(
                  kinds.includes(kind) ? kinds.filter((other) => other !== kind) : [...kinds, kind],
                )}
            />
            {words(kind)}
          </label>
        ))}
      </fieldset>
      <TextField
        label="Other kinds"
        value={others}
        onInput={setOthers}
        isMono
        placeholder="trigger.dock_entry, clip_vlm"
        fault={faultOf("event_kinds")}
      />
      <ConditionFields of={conditions} onChange={setConditions} faultOf={faultOf} />
      {failure !== undefined && faults.length === 0 && <FailureNote failure={failure} />}
      <footer class="row">
        <button type="submit" class="primary" disabled={isSending}>
          Make webhook
        </button>
        <button type="button" onClick={onClose}>Cancel</button>
      </footer>
    </form>
  );
}

function Secret({ of, onClose }: { of: CreatedWebhook; onClose: () => void }) {
  return (
    <div class="form">
      <p>
        The receiver needs it to check signatures. <strong>It is shown this once.</strong>{" "}
        Whoever has it can forge deliveries, so keep it as you keep passwords.
      </p>
      <pre class="code secret">{of.signing_secret}</pre>
      <footer class="row">
        <button
          type="button"
          class="primary"
          onClick={() => copy(of.signing_secret)}
        >
          Copy
        </button>
        <a class="button" href={hrefOf(["webhooks", of.webhook_id])}>
          See the webhook
        </a>
        <button type="button" onClick={onClose}>I have it</button>
      </footer>
    </div>
  );
}
