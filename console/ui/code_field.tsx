/** A field for the text of a program: numbered lines, and each fault marked at its place with its message
 * beside it.
 */

import { useId, useRef } from "preact/hooks";

/** Line and column count from 1. */
export interface CodeFault {
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

export interface CodeFieldProps {
  readonly label: string;
  readonly hint?: string;
  readonly value: string;
  readonly onInput: (value: string) => void;
  readonly faults: readonly CodeFault[];
  /** What is wrong with the text as a whole. */
  readonly fault?: string | undefined;
  /** Lines that are shown at least. */
  readonly rows: number;
}

/** A longer text scrolls inside the field. */
const ROWS_MAX = 30;

export function CodeField(
  { label, hint, value, onInput, faults, fault, rows }: CodeFieldProps,
) {
  const id = useId();
  const text = useRef<HTMLTextAreaElement>(null);
  const marks = useRef<HTMLPreElement>(null);
  const numbers = useRef<HTMLPreElement>(null);
  const lines = value.split("\n");
  const follow = () => {
    const { scrollLeft, scrollTop } = text.current!;
    marks.current!.style.transform = `translate(${-scrollLeft}px, ${-scrollTop}px)`;
    numbers.current!.style.transform = `translateY(${-scrollTop}px)`;
  };
  const goTo = ({ line, column }: CodeFault) => {
    const at = lines.slice(0, line - 1).reduce(
      (sum, { length }) => sum + length + 1,
      0,
    ) + column - 1;
    const length = faultyPart(lines[line - 1] ?? "", column).length;
    text.current!.focus();
    text.current!.setSelectionRange(at, at + length);
  };
  const isFaulty = faults.length > 0 || fault !== undefined;
  return (
    <div class="field code-field">
      <label for={id}>{label}</label>
      {hint !== undefined && <p class="hint" id={`${id}-hint`}>{hint}</p>}
      <div class={`code-box${isFaulty ? " is-faulty" : ""}`}>
        <div class="code-numbers" aria-hidden="true">
          <pre ref={numbers}>{lines.map((_, line) => `${line + 1}\n`)}</pre>
        </div>
        <div class="code-area">
          <pre ref={marks} class="code-marks" aria-hidden="true">
            {lines.map((line, index) => <MarkedLine key={index} line={line} faults={faultsOf(faults, index + 1)} />)}
          </pre>
          <textarea
            ref={text}
            id={id}
            class="mono"
            wrap="off"
            spellcheck={false}
            autocapitalize="off"
            autocomplete="off"
            rows={Math.min(ROWS_MAX, Math.max(rows, lines.length))}
            value={value}
            aria-describedby={`${id}-hint ${id}-faults`}
            aria-invalid={isFaulty ? true : undefined}
            onInput={({ currentTarget }) => onInput(currentTarget.value)}
            onScroll={follow}
          />
        </div>
      </div>
      <div id={`${id}-faults`} role="status">
        {fault !== undefined && <p class="fault">{fault}</p>}
        {faults.length > 0 && (
          <ul class="code-faults">
            {faults.map((one) => (
              <li key={`${one.line}:${one.column}:${one.message}`}>
                <button
                  type="button"
                  class="quiet number"
                  onClick={() => goTo(one)}
                >
                  line {one.line}, column {one.column}
                </button>
                {one.message}
              </li>
            ))}
          </ul>
        )}
      </div>
    </div>
  );
}

/** The faulty parts are underlined; the first message stands behind the end of the line. */
function MarkedLine(
  { line, faults }: { line: string; faults: readonly CodeFault[] },
) {
  if (faults.length === 0) return <>{line}{"\n"}</>;
  const [{ column, message }] = faults as [CodeFault];
  const part = faultyPart(line, column);
  return (
    <>
      {line.slice(0, column - 1)}
      <mark>{part === "" ? " " : part}</mark>
      {line.slice(column - 1 + part.length)}
      <span class="code-message">{message}</span>
      {"\n"}
    </>
  );
}

function faultsOf(
  faults: readonly CodeFault[],
  line: number,
): readonly CodeFault[] {
  return faults.filter((fault) => fault.line === line);
}

/** From the column to the next blank. */
function faultyPart(line: string, column: number): string {
  return /^\S*/.exec(line.slice(column - 1))![0];
}
