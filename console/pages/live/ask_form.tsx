/** The question of an open session is changed; the service says when it is in force. */

import { useMemo, useRef, useState } from "preact/hooks";
import type { WatchedSession } from "../../../client/mod.ts";
import { client } from "../../service/session.ts";
import { useKeys } from "../../shell/keys.tsx";
import { clock, durationText } from "../../text/time.ts";
import { FailureNote } from "../../ui/states.tsx";
import { promptFault, PromptField } from "./wish/prompt_field.tsx";

export interface AskFormProps {
  readonly session: WatchedSession;
  readonly onChanged: () => void;
}

type Outcome =
  | { readonly kind: "sending" }
  | {
    readonly kind: "acknowledged";
    readonly atMs: number;
    readonly tookMs: number;
  }
  | { readonly kind: "failed"; readonly failure: unknown };

export function AskForm({ session, onChanged }: AskFormProps) {
  const inForce = session.prompt ?? "";
  /** Null while the person has typed nothing. */
  const [typed, setTyped] = useState<string | null>(null);
  const [outcome, setOutcome] = useState<Outcome | null>(null);
  const text = typed ?? inForce;
  const form = useRef<HTMLFormElement>(null);
  useKeys(
    "Question",
    useMemo(() => [{ keys: ["q"], does: "change the question", run: () => focusIn(form.current) }], []),
  );
  const send = async (event: Event) => {
    event.preventDefault();
    if (promptFault(text)) return;
    setOutcome({ kind: "sending" });
    const startMs = performance.now();
    try {
      const prompt = text.trim() === "" ? null : text.trim();
      await client.value.whipUpdatePrompt(session.session_id, { prompt });
      setOutcome({
        kind: "acknowledged",
        atMs: Date.now(),
        tookMs: performance.now() - startMs,
      });
      setTyped(null);
    } catch (failure) {
      setOutcome({ kind: "failed", failure });
    }
    onChanged();
  };
  return (
    <form ref={form} class="form" onSubmit={send}>
      <PromptField prompt={text} onPrompt={setTyped} />
      <div class="row">
        <button
          type="submit"
          disabled={text === inForce || outcome?.kind === "sending"}
        >
          Ask this
        </button>
        {text !== inForce && (
          <button
            type="button"
            class="quiet"
            onClick={() => setTyped(null)}
          >
            Undo
          </button>
        )}
        <span class="hint" role="status">
          {outcome && outcomeText(outcome)}
        </span>
      </div>
      {outcome?.kind === "failed" && <FailureNote failure={outcome.failure} />}
    </form>
  );
}

function focusIn(form: HTMLFormElement | null): void {
  form?.querySelector("textarea")?.focus();
}

function outcomeText(outcome: Outcome): string {
  switch (outcome.kind) {
    case "sending":
      return "Waiting until the picture under way is described …";
    case "acknowledged":
      return `In force since ${clock(outcome.atMs)}; the session took it over in ${
        durationText(outcome.tookMs)
      }.`;
    case "failed":
      return "The question was not changed.";
  }
}
