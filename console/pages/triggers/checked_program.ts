/** A trigger as it is typed: the service compiles or checks it after a short pause, and names the places of
 * its faults.
 */

import { useEffect, useState } from "preact/hooks";
import { type Client, isHttpError, type TriggerProgram } from "../../../client/mod.ts";
import { client, returns } from "../../service/session.ts";
import { placeOf, readJsonText } from "../../text/json_text.ts";
import type { CodeFault } from "../../ui/code_field.tsx";

/** `source` is the language, `program` what a compiler makes of it, as JSON. */
export type TriggerForm = "source" | "program";

export interface GoodProgram {
  readonly program: TriggerProgram;
  readonly stateSlots: number;
}

export interface CheckedText {
  /** The last text without faults; null before the first one. */
  readonly good: GoodProgram | null;
  readonly faults: readonly CodeFault[];
  /** What is wrong with the text as a whole. */
  readonly fault?: string | undefined;
  /** Why the service could not be asked. */
  readonly failure?: unknown;
  /** Whether the present text was looked at. */
  readonly isCurrent: boolean;
}

/** So long after the last key the service is asked. */
const REST_MS = 250;

export function useCheckedProgram(
  text: string,
  form: TriggerForm,
): CheckedText {
  const [state, setState] = useState<CheckedText & { of?: string }>({
    good: null,
    faults: [],
    isCurrent: false,
  });
  const returned = returns.value;
  const asked = client.value;
  const key = `${form} ${text}`;
  useEffect(() => {
    const ending = new AbortController();
    const timer = setTimeout(async () => {
      const answer = await check(asked, { text, form, signal: ending.signal });
      if (ending.signal.aborted) return;
      setState((last) => ({
        good: last.good,
        faults: [],
        isCurrent: true,
        of: key,
        ...answer,
      }));
    }, state.of === undefined ? 0 : REST_MS);
    return () => {
      clearTimeout(timer);
      ending.abort();
    };
  }, [asked, key, returned]);
  return state.of === key ? state : { ...state, isCurrent: false };
}

type Answer = Partial<
  Pick<CheckedText, "good" | "faults" | "fault" | "failure">
>;

interface AskedText {
  readonly text: string;
  readonly form: TriggerForm;
  readonly signal: AbortSignal;
}

async function check(
  service: Client,
  { text, form, signal }: AskedText,
): Promise<Answer> {
  if (text.trim() === "") return { good: null };
  const json = form === "program" ? readJsonText(text) : null;
  if (json && "fault" in json) return { faults: [json.fault] };
  try {
    if (json === null) {
      const { program, state_slots } = await service.compileTrigger(text, {
        signal,
      });
      return { good: { program, stateSlots: state_slots } };
    }
    const program = json.value as TriggerProgram;
    const { state_slots } = await service.validateTrigger(program, { signal });
    return { good: { program, stateSlots: state_slots } };
  } catch (failure) {
    if (!isHttpError(failure) || failure.status !== 422) return { failure };
    const details = failure.apiError?.details ?? [];
    return faultsOf(
      details.map(({ field, message }) => ({ field, message })),
      text,
    );
  }
}

/** `line 2: column 6: unknown signal`, and of a program `instruction 4 (rising_edge): slot must be …`. */
function faultsOf(
  details: readonly { field: string; message: string }[],
  text: string,
): Answer {
  const faults: CodeFault[] = [];
  const others: string[] = [];
  for (const { field, message } of details) {
    const place = /^line (\d+): column (\d+): (.*)$/s.exec(message);
    const instruction = /^(?:instruction |\[)(\d+)(?:.*?: )(.*)$/s.exec(
      message,
    );
    if (place) {
      faults.push({
        line: Number(place[1]),
        column: Number(place[2]),
        message: place[3]!,
      });
    } else if (instruction && /^(program|instructions)$/.test(field)) {
      faults.push({
        ...instructionPlace(text, Number(instruction[1])),
        message: instruction[2]!,
      });
    } else {others.push(
        field === "program" || field === "source" ? message : `${field} ${message}`,
      );}
  }
  return { faults, fault: others.length === 0 ? undefined : others.join("; ") };
}

/** Each instruction names its `op` once. */
function instructionPlace(
  text: string,
  index: number,
): { line: number; column: number } {
  const found = [...text.matchAll(/"op"\s*:/g)][index];
  return placeOf(text, found?.index ?? 0);
}
