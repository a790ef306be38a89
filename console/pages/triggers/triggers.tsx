/** Trigger programs: written with the faults at their place, compiled, and tried out over what a run has
 * measured.
 */

import { useEffect, useRef, useState } from "preact/hooks";
import type { Place } from "../../shell/place.ts";
import { CodeField } from "../../ui/code_field.tsx";
import { confirm } from "../../ui/confirm.tsx";
import { ChoiceField } from "../../ui/field.tsx";
import { FailureNote } from "../../ui/states.tsx";
import { copy } from "../../ui/value.tsx";
import { type CheckedText, type TriggerForm, useCheckedProgram } from "./checked_program.ts";
import { Evaluation } from "./evaluation.tsx";
import { TRIGGER_EXAMPLES } from "./examples.ts";
import { type EditedText, keepText, namedText, openText } from "./kept_text.ts";
import { ProgramTable } from "./program_table.tsx";
import "./triggers.css";

/** So long after the last key the address has the text. */
const REST_MS = 400;

export function Triggers({ query }: Place) {
  const [edited, setEdited] = useState(() => openText(query));
  const [isInAddress, setInAddress] = useState(true);
  /** What this page has put into the address: only another text is somebody's wish. */
  const written = useRef(edited.text);
  const { text, form } = edited;
  const checked = useCheckedProgram(text, form);
  const keep = () => {
    written.current = text;
    setInAddress(keepText(edited));
  };
  useEffect(() => {
    const timer = setTimeout(keep, REST_MS);
    return () => clearTimeout(timer);
  }, [edited]);
  const named = namedText(query);
  useEffect(() => {
    if (named !== null && named.text !== written.current) setEdited(named);
  }, [named?.text]);
  const copyLink = () => {
    keep();
    void copy(location.href);
  };
  return (
    <section class="page">
      <header class="page-head">
        <h1>Triggers</h1>
        <div class="actions">
          <button type="button" disabled={!isInAddress} onClick={copyLink}>
            Copy link
          </button>
        </div>
      </header>
      <p class="dim">
        A trigger program looks at each frame of a live session and says when an event is written, the picture
        is kept, and somebody is told. Here it is written and tried out; a live session gets it with its
        attach config.
      </p>
      {!isInAddress && (
        <p class="hint">
          The text is too long for a link. It is kept in this tab until the tab is closed.
        </p>
      )}
      <div class="trigger-top">
        <section aria-label="Editor" class="trigger-editor">
          <Examples
            text={text}
            form={form}
            onChoose={(source) => setEdited({ text: source, form: "source" })}
          />
          <CodeField
            label={form === "source" ? "Source" : "Program"}
            hint={form === "source"
              ? "One statement a line; # begins a comment; the last line is end"
              : "The compiled program as JSON, which may use or and not"}
            rows={12}
            value={text}
            onInput={(changed) => setEdited({ text: changed, form })}
            faults={checked.faults}
            fault={checked.fault}
          />
          {checked.failure !== undefined && <FailureNote failure={checked.failure} />}
          <FormSwitch form={form} checked={checked} onChange={setEdited} />
        </section>
        <section
          aria-label="Compiled program"
          class={`trigger-program${isStale(checked) ? " is-stale" : ""}`}
        >
          <h2>Program</h2>
          <State checked={checked} isEmpty={text.trim() === ""} />
          {checked.good && <ProgramTable of={checked.good} />}
        </section>
      </div>
      <Evaluation
        program={checked.good?.program ?? null}
        query={query}
        isStale={isStale(checked)}
      />
    </section>
  );
}

function isStale(
  { isCurrent, good, faults, fault, failure }: CheckedText,
): boolean {
  return good !== null && isCurrent &&
    (faults.length > 0 || fault !== undefined || failure !== undefined);
}

function State(
  { checked, isEmpty }: { checked: CheckedText; isEmpty: boolean },
) {
  const { good, faults, fault, failure, isCurrent } = checked;
  const isFaulty = faults.length > 0 || fault !== undefined;
  let said = "";
  if (isEmpty) said = "Write a source, or begin with an example.";
  else if (!isCurrent) said = good ? "" : "Asking the service …";
  else if (failure !== undefined) {
    said = good
      ? "This is the program of the last text that was looked at."
      : "The program is shown once the service has looked at the text.";
  } else if (isFaulty) {
    said = good
      ? "The text has faults. This is the program of the last text without any."
      : "The program is shown once the text has no faults.";
  }
  return <p class="dim" role="status">{said}</p>;
}

interface ExamplesProps {
  readonly text: string;
  readonly form: TriggerForm;
  readonly onChoose: (source: string) => void;
}

function Examples({ text, form, onChoose }: ExamplesProps) {
  const present = TRIGGER_EXAMPLES.find(({ source }) => source === text);
  const choose = async (name: string) => {
    const example = TRIGGER_EXAMPLES.find((one) => one.name === name);
    if (!example) return;
    const isOwn = text.trim() !== "" && !present;
    const isWanted = !isOwn || await confirm({
      title: `Replace your ${form}?`,
      text: `The text in the editor is replaced by the example “${name}”. It cannot be brought back.`,
      action: "Replace text",
    });
    if (isWanted) onChoose(example.source);
  };
  return (
    <ChoiceField
      label="Begin with an example"
      value={present?.name ?? ""}
      onChange={choose}
      hint={present ? `${present.name}: ${present.about}` : undefined}
      choices={[
        {
          value: "",
          text: present ? "Choose …" : "Your own text",
          isDisabled: true,
        },
        ...TRIGGER_EXAMPLES.map(({ name }) => ({ value: name, text: name })),
      ]}
    />
  );
}

interface FormSwitchProps {
  readonly form: TriggerForm;
  readonly checked: CheckedText;
  readonly onChange: (edited: EditedText) => void;
}

/** A source can be turned into a program, not back. */
function FormSwitch({ form, checked, onChange }: FormSwitchProps) {
  if (form === "program") {
    return (
      <div class="row">
        <button
          type="button"
          onClick={() => onChange({ text: TRIGGER_EXAMPLES[0]!.source, form: "source" })}
        >
          Write a source instead
        </button>
        <span class="hint">The program in the editor is left.</span>
      </div>
    );
  }
  const { good } = checked;
  return (
    <div class="row">
      <button
        type="button"
        disabled={!good || isStale(checked)}
        onClick={() => good && void copy(programText(good.program))}
      >
        Copy program
      </button>
      <button
        type="button"
        disabled={!good || isStale(checked)}
        onClick={() =>
          good &&
          onChange({ text: programText(good.program), form: "program" })}
      >
        Edit as program
      </button>
    </div>
  );
}

/** One instruction a line. */
function programText(
  { instructions, ...head }: { readonly instructions: readonly unknown[] },
): string {
  const rows = instructions.map((instruction) => `    ${JSON.stringify(instruction)}`);
  const parts = Object.entries(head).map(([name, value]) => `  "${name}": ${JSON.stringify(value)},`);
  return [
    "{",
    ...parts,
    '  "instructions": [',
    rows.join(",\n"),
    "  ]",
    "}",
    "",
  ].join("\n");
}
