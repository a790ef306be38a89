/** Where the text of a trigger is kept: in the address while it is short enough to be sent to somebody, else
 * in this tab.
 */

import { setQuery } from "../../shell/place.ts";
import { whenCallerChanges } from "../../service/session.ts";
import type { TriggerForm } from "./checked_program.ts";
import { TRIGGER_EXAMPLES } from "./examples.ts";

const STORED = "console.trigger";
/** Longer addresses are cut by mail programs and chats. */
const ADDRESS_CHARACTERS = 1500;

whenCallerChanges(() => sessionStorage.removeItem(STORED));

/** What is in the editor. */
export interface EditedText {
  readonly text: string;
  readonly form: TriggerForm;
}

/** What the address names, else the last one of this tab, else the first example. */
export function openText(query: URLSearchParams): EditedText {
  return namedText(query) ?? storedText() ??
    { text: TRIGGER_EXAMPLES[0]!.source, form: "source" };
}

/** What the address names; null where it names none. */
export function namedText(query: URLSearchParams): EditedText | null {
  const text = query.get("text");
  return text === null ? null : { text, form: query.get("as") === "program" ? "program" : "source" };
}

/** Returns whether the address has it. */
export function keepText(edited: EditedText): boolean {
  const { text, form } = edited;
  sessionStorage.setItem(STORED, JSON.stringify(edited));
  const isShort = encodeURIComponent(text).length <= ADDRESS_CHARACTERS;
  setQuery({
    text: isShort ? text : null,
    as: isShort && form === "program" ? form : null,
  });
  return isShort;
}

/** The source that was written last in this tab; null where there is none, or a program was written. */
export function keptSource(): string | null {
  const kept = storedText();
  return kept?.form === "source" && kept.text.trim() !== "" ? kept.text : null;
}

function storedText(): EditedText | null {
  try {
    const { text, form } = JSON.parse(sessionStorage.getItem(STORED) ?? "{}");
    return typeof text === "string" ? { text, form: form === "program" ? form : "source" } : null;
  } catch {
    return null;
  }
}
