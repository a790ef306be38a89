/** One delivery: its attempts, and the headers and the body as they were sent. */

import type { Delivery, SentDelivery, WebhookOfRun } from "../../../../client/mod.ts";
import { useLoaded } from "../../../service/loaded.ts";
import { client } from "../../../service/session.ts";
import { hrefOf, setQuery } from "../../../shell/place.ts";
import { words } from "../../../text/names.ts";
import { bytesText, counted } from "../../../text/numbers.ts";
import { dateAndClock, durationText } from "../../../text/time.ts";
import { Shown } from "../../../ui/states.tsx";
import { copy } from "../../../ui/value.tsx";
import { checkThis } from "../signature/pasted.ts";

export interface DeliveryDetailsProps {
  readonly hook: WebhookOfRun;
  readonly seq: number;
  /** Undefined while it is tried, and for one that is too old to be listed. */
  readonly delivery: Delivery | undefined;
  readonly onSendAgain: () => void;
}

export function DeliveryDetails(
  { hook, seq, delivery, onSendAgain }: DeliveryDetailsProps,
) {
  const { run_id, webhook_id, retry, recent_dead_letters } = hook;
  const attempts = (retry?.seq === seq ? retry : delivery)?.attempts ??
    recent_dead_letters.find((letter) => letter.seq === seq)?.attempts ?? [];
  // Another attempt has other headers.
  const sent = useLoaded(
    (signal) => client.value.getDelivery(run_id, webhook_id, seq, { signal }),
    [client.value, webhook_id, seq, attempts.at(-1)],
  );
  return (
    <section class="card delivery" aria-label="Delivery">
      <header class="row">
        <h2>Event {seq}</h2>
        {delivery?.kind && <span class="dim">{words(delivery.kind)}</span>}
        <button
          type="button"
          class="quiet"
          aria-label="Close delivery"
          onClick={() => setQuery({ seq: null })}
        >
          ✕
        </button>
      </header>
      <p>{outcomeSentence(hook, seq, delivery)}</p>
      {attempts.length > 0 && (
        <ol class="attempts" aria-label="Attempts">
          {attempts.map((ms, at) => (
            <li key={ms}>
              <time class="number" dateTime={new Date(ms).toISOString()}>
                {dateAndClock(ms)}
              </time>
              {at > 0 && (
                <span class="dim">
                  , {durationText(ms - attempts[at - 1]!)} later
                </span>
              )}
            </li>
          ))}
        </ol>
      )}
      <div class="row">
        <button
          type="button"
          onClick={onSendAgain}
          disabled={delivery === undefined && retry?.seq === seq}
        >
          Send again …
        </button>
        <a href={hrefOf(["runs", run_id], { seq: String(seq) })}>
          Show it in the run
        </a>
      </div>
      <Shown of={sent}>{(of) => <Sent of={of} />}</Shown>
    </section>
  );
}

function outcomeSentence(
  { retry }: WebhookOfRun,
  seq: number,
  delivery: Delivery | undefined,
): string {
  if (retry?.seq === seq) return "It is being tried.";
  if (delivery === undefined) {
    return "It was given up; only its error and its attempts are known.";
  }
  const times = counted(delivery.attempts.length, "attempt");
  const took = delivery.took_ms === null ? "" : `, the last of which took ${durationText(delivery.took_ms)}`;
  if (delivery.outcome === "delivered") {
    return delivery.attempts.length === 1
      ? `Delivered${delivery.took_ms === null ? "" : ` in ${durationText(delivery.took_ms)}`}.`
      : `Delivered after ${times}${took}.`;
  }
  if (delivery.outcome === "gone") return `The receiver refused it and all that follow: ${delivery.error}.`;
  return delivery.attempts.length === 0
    ? `Given up without an attempt: ${delivery.error}.`
    : `Given up after ${times}${took}: ${delivery.error}.`;
}

function Sent({ of: { headers, body } }: { of: SentDelivery }) {
  if (body === null) {
    return <p class="dim">The event is too long to be sent; read it in the run.</p>;
  }
  return (
    <>
      {headers === null
        ? (
          <p class="dim">
            The headers are not known any more, as the time of the attempt is not.
          </p>
        )
        : (
          <>
            <div class="row">
              <h3>Headers of the last attempt</h3>
              <button
                type="button"
                class="quiet"
                onClick={() => copy(headersText(headers))}
              >
                Copy
              </button>
              <button
                type="button"
                class="quiet"
                onClick={() => checkThis(headersText(headers), body)}
              >
                Check the signature
              </button>
            </div>
            <pre class="code" tabIndex={0}>{headersText(headers)}</pre>
          </>
        )}
      <div class="row">
        <h3>Body, {bytesText(new TextEncoder().encode(body).length)}</h3>
        <button type="button" class="quiet" onClick={() => copy(body)}>
          Copy as it was sent
        </button>
      </div>
      <pre class="code" tabIndex={0}>{printed(body)}</pre>
      <p class="hint">
        Shown with line breaks, to be read; the signature is over the text as it was sent.
      </p>
    </>
  );
}

function headersText(headers: Readonly<Record<string, string>>): string {
  return Object.entries(headers).map(([name, value]) => `${name}: ${value}`)
    .join("\n");
}

/** With line breaks. Numbers beyond 2^53 would change, so such a text stays as it is. */
function printed(body: string): string {
  if (/\d{16}/.test(body.replaceAll(/"(?:[^"\\]|\\.)*"/g, ""))) return body;
  return JSON.stringify(JSON.parse(body), null, 2);
}
