/** Fields of forms: a label, a hint, and the fault of the field below it. */

import type { ComponentChildren } from "preact";
import { useId } from "preact/hooks";

interface FieldText {
  readonly label: string;
  readonly hint?: string | undefined;
  readonly fault?: string | undefined;
}

export interface TextFieldProps extends FieldText {
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly type?: "text" | "password" | "number" | "url" | "search" | "date" | "datetime-local";
  /** The seconds between two times that can be chosen. */
  readonly step?: number;
  /** Several lines, as many as this shows at once. */
  readonly rows?: number;
  readonly placeholder?: string;
  readonly autocomplete?: "off" | "on";
  readonly isRequired?: boolean;
  readonly isMono?: boolean;
}

export function TextField(props: TextFieldProps) {
  const id = useId();
  const {
    value,
    onInput,
    rows,
    isMono,
    isRequired,
    autocomplete,
    placeholder,
  } = props;
  const shared = {
    id,
    value,
    placeholder,
    autocomplete,
    step: props.step,
    required: isRequired,
    class: isMono ? "mono" : undefined,
    "aria-describedby": `${id}-more`,
    "aria-invalid": props.fault === undefined ? undefined : true,
    onInput: (event: Event) => onInput((event.target as HTMLInputElement).value),
  };
  return (
    <Labelled id={id} {...props}>
      {rows === undefined
        ? <input type={(props.type ?? "text") as "text"} {...shared} />
        : <textarea rows={rows} {...shared} />}
    </Labelled>
  );
}

export interface ChoiceFieldProps extends FieldText {
  readonly value: string;
  readonly onChange: (value: string) => void;
  readonly choices: readonly {
    readonly value: string;
    readonly text: string;
    readonly isDisabled?: boolean;
  }[];
}

export function ChoiceField(props: ChoiceFieldProps) {
  const id = useId();
  const change = (event: Event) => props.onChange((event.target as HTMLSelectElement).value);
  return (
    <Labelled id={id} {...props}>
      <select
        id={id}
        value={props.value}
        aria-describedby={`${id}-more`}
        onChange={change}
      >
        {props.choices.map(({ value, text, isDisabled }) => (
          <option key={value} value={value} disabled={isDisabled}>
            {text}
          </option>
        ))}
      </select>
    </Labelled>
  );
}

function Labelled(
  { id, label, hint, fault, children }: FieldText & {
    id: string;
    children: ComponentChildren;
  },
) {
  return (
    <div class="field">
      <label for={id}>{label}</label>
      {children}
      <div id={`${id}-more`}>
        {hint !== undefined && <p class="hint">{hint}</p>}
        {fault !== undefined && <p class="fault" role="alert">{fault}</p>}
      </div>
    </div>
  );
}
