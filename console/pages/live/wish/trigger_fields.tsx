/** Whether a trigger program runs over the frames of a session, and its source with the faults at their
 * place.
 */

import { useEffect } from "preact/hooks";
import { hrefOf } from "../../../shell/place.ts";
import { CodeField } from "../../../ui/code_field.tsx";
import { ChoiceField } from "../../../ui/field.tsx";
import { FailureNote } from "../../../ui/states.tsx";
import { useCheckedProgram } from "../../triggers/checked_program.ts";
import { TRIGGER_EXAMPLES } from "../../triggers/examples.ts";
import { keptSource } from "../../triggers/kept_text.ts";
import type { CompiledTrigger } from "./session_wish.ts";

export interface TriggerFieldsProps {
  /** Null: no program runs. */
  readonly source: string | null;
  /** A zone or clips are wanted, with which no program runs. */
  readonly isBarred: boolean;
  readonly onSource: (source: string | null) => void;
  readonly onCompiled: (compiled: CompiledTrigger) => void;
}

/** A live session keeps a picture of each firing, and has no objects. */
const LIVE_EXAMPLES = TRIGGER_EXAMPLES.filter(({ source }) => /^capture keyframe$/m.test(source));

export function TriggerFields({ source, isBarred, onSource, onCompiled }: TriggerFieldsProps) {
  return (
    <>
      <label class="check">
        <input
          type="checkbox"
          checked={source !== null}
          disabled={isBarred}
          onChange={({ currentTarget: { checked } }) =>
            onSource(checked ? keptSource() ?? LIVE_EXAMPLES[0]!.source : null)}
        />
        Run a trigger program
      </label>
      {isBarred && <p class="hint">A trigger goes with neither a zone nor clips</p>}
      {source !== null && <Program source={source} onSource={onSource} onCompiled={onCompiled} />}
    </>
  );
}

type ProgramProps = Pick<TriggerFieldsProps, "onSource" | "onCompiled"> & { readonly source: string };

function Program({ source, onSource, onCompiled }: ProgramProps) {
  const { good, faults, fault, failure, isCurrent } = useCheckedProgram(source, "source");
  const isGood = isCurrent && faults.length === 0 && fault === undefined && failure === undefined;
  const program = isGood ? good?.program ?? null : null;
  useEffect(() => {
    if (program) onCompiled({ source, program });
  }, [program, source]);
  const kept = keptSource();
  const choices = [
    ...(kept === null ? [] : [{ name: "The text of the page Triggers", source: kept }]),
    ...LIVE_EXAMPLES.filter((example) => example.source !== kept),
  ];
  return (
    <fieldset class="zone-fields">
      <legend>Trigger</legend>
      <ChoiceField
        label="Begin with"
        value={choices.find((choice) => choice.source === source)?.name ?? ""}
        onChange={(name) => {
          const chosen = choices.find((choice) => choice.name === name);
          if (chosen) onSource(chosen.source);
        }}
        choices={[
          { value: "", text: "Your own text", isDisabled: true },
          ...choices.map(({ name }) => ({ value: name, text: name })),
        ]}
      />
      <CodeField
        label="Source"
        hint="Of a live session: motion_score, novelty_score and confidence, and capture keyframe once"
        rows={6}
        value={source}
        onInput={onSource}
        faults={faults}
        fault={fault}
      />
      {failure !== undefined && <FailureNote failure={failure} />}
      <p class="hint">
        <a href={hrefOf(["triggers"])}>Try it out over a run</a> first: it is fixed for the session.
      </p>
    </fieldset>
  );
}
