/** The form that has events sent again. */

import { useEffect, useState } from "preact/hooks";
import type { Delivery, WebhookOfRun } from "../../../../client/mod.ts";
import { client } from "../../../service/session.ts";
import { Dialog } from "../../../ui/dialog.tsx";
import { TextField } from "../../../ui/field.tsx";
import { FailureNote } from "../../../ui/states.tsx";
import { deliveryKey, type Scheduled } from "./redelivery_progress.tsx";

/** What the form begins with: one event, or everything. */
export interface Range {
  readonly from?: number;
  readonly to?: number;
}

export interface RedeliverProps {
  readonly hook: WebhookOfRun;
  readonly deliveries: readonly Delivery[];
  /** Null while the form is closed. */
  readonly range: Range | null;
  readonly onClose: () => void;
  readonly onScheduled: (scheduled: Scheduled) => void;
}

export function Redeliver(props: RedeliverProps) {
  return (
    <Dialog
      title="Send events again"
      isOpen={props.range !== null}
      onClose={props.onClose}
    >
      {props.range !== null && <RangeForm {...props} range={props.range} />}
    </Dialog>
  );
}

function RangeForm(
  { hook, deliveries, range, onClose, onScheduled }: RedeliverProps & {
    range: Range;
  },
) {
  const { registered_seq, last_terminal_seq, recent_dead_letters } = hook;
  const [from, setFrom] = useState("");
  const [to, setTo] = useState("");
  const [failure, setFailure] = useState<unknown>(undefined);
  const set = (first: number, last: number) => {
    setFrom(String(first));
    setTo(String(last));
  };
  useEffect(
    () => set(range.from ?? registered_seq + 1, range.to ?? last_terminal_seq),
    [],
  );
  const letters = recent_dead_letters.map(({ seq }) => seq);
  const isNothing = last_terminal_seq <= registered_seq;
  const send = async (event: Event) => {
    event.preventDefault();
    setFailure(undefined);
    const bounds = { from_seq: Number(from), to_seq: Number(to) };
    try {
      const before = new Set(deliveries.map(deliveryKey));
      const answer = await client.value.redeliverWebhook(
        hook.run_id,
        hook.webhook_id,
        bounds,
      );
      const { from_seq, to_seq, scheduled } = answer;
      onScheduled({
        fromSeq: from_seq,
        toSeq: to_seq,
        count: scheduled,
        before,
      });
      onClose();
    } catch (error) {
      setFailure(error);
    }
  };
  if (isNothing) {
    return (
      <p>
        Nothing was sent to this webhook yet, so there is nothing to send again.
      </p>
    );
  }
  return (
    <form class="form" onSubmit={send}>
      <p>
        All events of the range that match the webhook are sent again, delivered or not, under the ids that
        they had: a receiver that remembers ids can leave out what it has.
      </p>
      <div class="row">
        {letters.length > 0 && (
          <button
            type="button"
            onClick={() => set(Math.min(...letters), Math.max(...letters))}
          >
            From the first to the last that was given up
          </button>
        )}
        <button
          type="button"
          onClick={() => set(registered_seq + 1, last_terminal_seq)}
        >
          Everything since its registration
        </button>
      </div>
      <div class="columns">
        <TextField
          label="From event"
          type="number"
          value={from}
          onInput={setFrom}
          isRequired
        />
        <TextField
          label="To event"
          type="number"
          value={to}
          onInput={setTo}
          isRequired
        />
      </div>
      {failure !== undefined && <FailureNote failure={failure} />}
      <footer class="row">
        <button type="submit" class="primary">Send again</button>
        <button type="button" onClick={onClose}>Cancel</button>
      </footer>
    </form>
  );
}
