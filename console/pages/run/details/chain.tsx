/** How an event came about and what followed: one line for each event, the present one among them. */

import type { TimelineEvent } from "../../../../client/mod.ts";
import { useLoaded } from "../../../service/loaded.ts";
import { client } from "../../../service/session.ts";
import { hrefOf } from "../../../shell/place.ts";
import { shortId } from "../../../text/names.ts";
import { clock } from "../../../text/time.ts";
import type { RunMarks } from "../../../timeline/run_marks.ts";
import type { RunHistory } from "../history.ts";
import { chainOf, deliveryText, eventsOfChunk } from "./chain_links.ts";

export interface ChainProps {
  readonly runId: string;
  readonly event: TimelineEvent;
  readonly history: RunHistory;
  readonly marks: RunMarks;
  readonly onChoose: (seq: number) => void;
}

export function Chain({ runId, event, history, marks, onChoose }: ChainProps) {
  const ofChunk = useLoaded((signal) => eventsOfChunk(runId, event, signal), [
    runId,
    event.seq,
  ]);
  const links = chainOf(event, history, marks, ofChunk.value ?? []);
  return (
    <section>
      <h3>How it came about</h3>
      <ol class="chain">
        {links.map(({ seq, text, writtenMs, isThis, isMark }) => (
          <li
            key={seq}
            class={isThis ? "is-this" : undefined}
            aria-current={isThis ? "true" : undefined}
          >
            <span class="number dim">
              {writtenMs === null ? "" : clock(writtenMs)}
            </span>
            {isMark && !isThis
              ? (
                <button
                  type="button"
                  class="link"
                  onClick={() => onChoose(seq)}
                >
                  {text}
                </button>
              )
              : <span>{text}</span>}
          </li>
        ))}
      </ol>
      <Deliveries runId={runId} event={event} />
    </section>
  );
}

/** Nothing where no webhook is for the event. */
function Deliveries({ runId, event }: Pick<ChainProps, "runId" | "event">) {
  const webhooks = useLoaded(
    (signal) => client.value.listWebhooks(runId, { signal }),
    [runId, event.seq],
  );
  const told = (webhooks.value ?? []).flatMap((webhook) => {
    const text = deliveryText(webhook, event);
    return text === null ? [] : [{ webhook, text }];
  });
  if (told.length === 0) return null;
  return (
    <ul class="deliveries">
      {told.map(({ webhook: { webhook_id, url }, text }) => (
        <li key={webhook_id}>
          <a href={hrefOf(["webhooks", webhook_id], { seq: String(event.seq) })}>
            Webhook <span class="mono" title={webhook_id}>{shortId(webhook_id)}</span>
          </a>{" "}
          to {URL.parse(url)?.host ?? url}: {text}
        </li>
      ))}
    </ul>
  );
}
