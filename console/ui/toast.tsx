/** Short notes at the edge of the page about what was done, or why it was not. */

import { signal } from "@preact/signals";
import { failureText } from "../service/failures.ts";
import { whenCallerChanges } from "../service/session.ts";

interface Note {
  readonly id: number;
  readonly text: string;
  readonly isFault: boolean;
}

const notes = signal<readonly Note[]>([]);
const SHOWN_MS = 8_000;
let lastId = 0;
whenCallerChanges(() => void (notes.value = []));

export function tell(text: string): void {
  add(text, false);
}

/** A fault stays until it is closed. */
export function tellFailure(what: string, failure: unknown): void {
  const { what: reason, todo, requestId, fields } = failureText(failure);
  const named = fields.map(({ field, message }) => `${field} ${message}`).join(
    "; ",
  );
  const request = requestId === null ? "" : ` (${requestId})`;
  add(
    [`${what}: ${named === "" ? reason : named}${request}.`, todo].join(" ")
      .replace("..", "."),
    true,
  );
}

function add(text: string, isFault: boolean): void {
  const id = ++lastId;
  notes.value = [...notes.peek(), { id, text, isFault }].slice(-4);
  if (!isFault) setTimeout(() => remove(id), SHOWN_MS);
}

function remove(id: number): void {
  notes.value = notes.peek().filter((note) => note.id !== id);
}

export function Toasts() {
  return (
    <div class="toasts" role="status">
      {notes.value.map(({ id, text, isFault }) => (
        <p key={id} class={isFault ? "toast fault" : "toast"}>
          <span>{text}</span>
          <button
            type="button"
            class="quiet"
            aria-label="Close note"
            onClick={() => remove(id)}
          >
            ✕
          </button>
        </p>
      ))}
    </div>
  );
}
