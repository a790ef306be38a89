/** The question before something that cannot be undone; it names the thing. */

import { signal } from "@preact/signals";
import { Dialog } from "./dialog.tsx";

interface Question {
  readonly title: string;
  readonly text: string;
  /** What the button that does it says: `Delete run`. */
  readonly action: string;
  readonly answer: (isYes: boolean) => void;
}

const question = signal<Question | null>(null);

/** Resolves with whether the person wants it. */
export function confirm(asked: Omit<Question, "answer">): Promise<boolean> {
  question.peek()?.answer(false);
  return new Promise((answer) => void (question.value = { ...asked, answer }));
}

export function ConfirmDialog() {
  const asked = question.value;
  const end = (isYes: boolean) => {
    question.value = null;
    asked?.answer(isYes);
  };
  return (
    <Dialog
      title={asked?.title ?? ""}
      isOpen={asked !== null}
      onClose={() => end(false)}
    >
      <p>{asked?.text}</p>
      <footer>
        <button type="button" onClick={() => end(false)}>Keep</button>
        <button type="button" class="danger" onClick={() => end(true)}>
          {asked?.action}
        </button>
      </footer>
    </Dialog>
  );
}
