/** The form for what an operator thinks of a run, or of one event of it. */

import { useState } from "preact/hooks";
import type { TimelineEvent } from "../../../client/mod.ts";
import { client } from "../../service/session.ts";
import { failureText } from "../../service/failures.ts";
import { Dialog } from "../../ui/dialog.tsx";
import { ChoiceField, TextField } from "../../ui/field.tsx";
import { tell } from "../../ui/toast.tsx";
import { words } from "../../text/names.ts";
import { eventSentence } from "./details/event_text.ts";

/** What is rated: the run, or one event of it. */
export type Rated = "run" | TimelineEvent;

export interface FeedbackDialogProps {
  readonly runId: string;
  /** Null while the dialog is closed. */
  readonly of: Rated | null;
  readonly onClose: () => void;
}

const CATEGORIES = [
  "accuracy",
  "false_alarm",
  "missed_event",
  "description",
  "other",
];
const RATINGS = Array.from({ length: 11 }, (_, rating) => rating);

export function FeedbackDialog({ runId, of, onClose }: FeedbackDialogProps) {
  return (
    <Dialog
      title={of === "run" ? "Rate the run" : "Rate the event"}
      isOpen={of !== null}
      onClose={onClose}
    >
      {of !== null && <FeedbackForm runId={runId} of={of} onClose={onClose} />}
    </Dialog>
  );
}

function FeedbackForm(
  { runId, of, onClose }: FeedbackDialogProps & { of: Rated },
) {
  const [rating, setRating] = useState<number | null>(null);
  const [category, setCategory] = useState(CATEGORIES[0]!);
  const [text, setText] = useState("");
  const [fault, setFault] = useState<string | null>(null);
  const send = async (event: Event) => {
    event.preventDefault();
    if (rating === null) {
      setFault("Choose a number from 0 to 10.");
      return;
    }
    // The service keeps feedback for the whole run: the text says which event is meant.
    const about = of === "run" ? "" : `[event ${runId}:${of.seq}, ${of.kind}] `;
    try {
      await client.value.submitFeedback(runId, {
        rating,
        category,
        feedback: `${about}${text}`.trim(),
      });
      tell("Thank you, the rating is kept.");
      onClose();
    } catch (failure) {
      setFault(failureText(failure).what);
    }
  };
  return (
    <form class="form" onSubmit={send}>
      {of !== "run" && <p class="hint">{eventSentence(of)}</p>}
      <fieldset class="ratings">
        <legend>How good is it? 0 is worst, 10 is best</legend>
        {RATINGS.map((value) => (
          <label key={value}>
            <input
              type="radio"
              name="rating"
              checked={rating === value}
              onChange={() => setRating(value)}
            />
            {value}
          </label>
        ))}
      </fieldset>
      <ChoiceField
        label="About"
        value={category}
        onChange={setCategory}
        choices={CATEGORIES.map((value) => ({ value, text: words(value) }))}
      />
      <TextField
        label="In your words"
        value={text}
        onInput={setText}
        rows={4}
      />
      {fault !== null && <p class="fault" role="alert">{fault}</p>}
      <div class="row">
        <button type="submit" class="primary">Send</button>
        <button type="button" onClick={onClose}>Cancel</button>
      </div>
    </form>
  );
}
