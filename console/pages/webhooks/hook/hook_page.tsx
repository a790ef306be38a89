/** One webhook: how it is, its last deliveries, what was sent, and sending again. */

import { useState } from "preact/hooks";
import type { Delivery, WebhookOfRun } from "../../../../client/mod.ts";
import { useLoaded } from "../../../service/loaded.ts";
import { client } from "../../../service/session.ts";
import { useKeys } from "../../../shell/keys.tsx";
import { go, hrefOf, type Place, setQuery } from "../../../shell/place.ts";
import { countText } from "../../../text/numbers.ts";
import { confirm } from "../../../ui/confirm.tsx";
import { useNow } from "../../../ui/now.ts";
import { EmptyNote, Shown } from "../../../ui/states.tsx";
import { tell, tellFailure } from "../../../ui/toast.tsx";
import { Id } from "../../../ui/value.tsx";
import { HookMark } from "../hook_mark.tsx";
import { conditionsText, hookSentence, shortUrl } from "../hook_state.ts";
import { SignatureHelp } from "../signature/signature_help.tsx";
import { Deliveries } from "./deliveries.tsx";
import { DeliveryDetails } from "./delivery_details.tsx";
import { type Range, Redeliver } from "./redeliver.tsx";
import { RedeliveryProgress, type Scheduled } from "./redelivery_progress.tsx";
import "../webhooks.css";

const RELOAD_MS = 2_000;

interface HookLook {
  readonly hook: WebhookOfRun | undefined;
  readonly deliveries: readonly Delivery[];
}

export function HookPage({ path: [, webhookId], query }: Place) {
  const shown = useLoaded((signal) => loadHook(webhookId!, signal), [
    client.value,
    webhookId,
  ], RELOAD_MS);
  return (
    <section class="page">
      <Shown of={shown}>
        {({ hook, deliveries }) =>
          hook === undefined
            ? (
              <EmptyNote title="There is no such webhook">
                <p>
                  <code>{webhookId}</code>{" "}
                  may have been deleted, with its run or by itself, or belong to another key.
                </p>
                <p>
                  <a href={hrefOf(["webhooks"])}>All webhooks</a>
                </p>
              </EmptyNote>
            )
            : (
              <Hook
                hook={hook}
                deliveries={deliveries}
                query={query}
                onChange={shown.reload}
              />
            )}
      </Shown>
    </section>
  );
}

async function loadHook(
  webhookId: string,
  signal: AbortSignal,
): Promise<HookLook> {
  const hooks = await client.value.listAllWebhooks({ signal });
  const hook = hooks.find(({ webhook_id }) => webhook_id === webhookId);
  if (hook === undefined) return { hook, deliveries: [] };
  return {
    hook,
    deliveries: await client.value.listDeliveries(hook.run_id, webhookId, {
      signal,
    }),
  };
}

interface HookProps {
  readonly hook: WebhookOfRun;
  readonly deliveries: readonly Delivery[];
  readonly query: URLSearchParams;
  readonly onChange: () => void;
}

function Hook({ hook, deliveries, query, onChange }: HookProps) {
  const now = useNow();
  const [range, setRange] = useState<Range | null>(null);
  const [scheduled, setScheduled] = useState<Scheduled | null>(null);
  const seq = query.has("seq") ? Number(query.get("seq")) : null;
  useKeys("Webhook", [
    { keys: ["r"], does: "send events again", run: () => setRange({}) },
    {
      keys: ["[", "]"],
      does: "newer, older delivery",
      run: (key) => step(deliveries, seq, key),
    },
  ]);
  return (
    <>
      <header class="page-head">
        <h1 title={hook.url}>{shortUrl(hook.url)}</h1>
        <HookMark of={hook} />
        <div class="actions">
          <button type="button" onClick={() => setRange({})}>
            Send again …
          </button>
          {hook.source === null && (
            <button type="button" class="danger" onClick={() => remove(hook)}>
              Delete
            </button>
          )}
        </div>
      </header>
      <p
        class={hook.failing_since_ms === null ? "dim" : "fault-line"}
        role="status"
      >
        {hookSentence(hook, now)}
        {hook.last_error !== null && <span>&#32;Last error: {hook.last_error}.</span>}
      </p>
      {scheduled !== null && (
        <RedeliveryProgress
          of={scheduled}
          hook={hook}
          deliveries={deliveries}
        />
      )}
      <Facts hook={hook} />
      <div class="hook-columns">
        <Deliveries
          hook={hook}
          deliveries={deliveries}
          chosen={seq}
          query={query}
        />
        {seq !== null && (
          <DeliveryDetails
            hook={hook}
            seq={seq}
            delivery={deliveries.find((delivery) => delivery.seq === seq)}
            onSendAgain={() => setRange({ from: seq, to: seq })}
          />
        )}
      </div>
      <SignatureHelp query={query} />
      <Redeliver
        hook={hook}
        deliveries={deliveries}
        range={range}
        onClose={() => setRange(null)}
        onScheduled={(now) => {
          setScheduled(now);
          onChange();
        }}
      />
    </>
  );
}

function Facts({ hook }: { hook: WebhookOfRun }) {
  const kinds = hook.event_kinds.length === 0 ? "all kinds" : hook.event_kinds.join(", ");
  return (
    <dl class="facts hook-facts">
      <dt>Run</dt>
      <dd>
        <a href={hrefOf(["runs", hook.run_id])}>open</a> <Id value={hook.run_id} />
      </dd>
      <dt>Events</dt>
      <dd>{kinds}, from {hook.registered_seq + 1} on{conditionsText(hook)}</dd>
      <dt>Come to</dt>
      <dd class="number">
        event {hook.last_terminal_seq} of {hook.run_last_seq}
      </dd>
      <dt>Delivered</dt>
      <dd class="number">
        {countText(hook.delivered)}, given up {countText(hook.dead_letters)}
      </dd>
      {hook.cooldown !== null && (
        <>
          <dt>Withheld</dt>
          <dd class="number">
            {countText(hook.withheld)}, not told yet {countText(hook.withheld_pending)}
          </dd>
        </>
      )}
      <dt>Webhook</dt>
      <dd>
        <Id value={hook.webhook_id} />
      </dd>
    </dl>
  );
}

/** The newest is first. */
function step(
  deliveries: readonly Delivery[],
  seq: number | null,
  key: string,
): void {
  const at = deliveries.findIndex((delivery) => delivery.seq === seq);
  const next = deliveries[at < 0 ? 0 : at + (key === "]" ? 1 : -1)];
  if (next !== undefined) setQuery({ seq: String(next.seq) });
}

async function remove(
  { run_id, webhook_id, url }: WebhookOfRun,
): Promise<void> {
  const isWanted = await confirm({
    title: "Delete the webhook?",
    text: `Nothing more of the run is sent to ${
      shortUrl(url)
    }, and what is being sent is cancelled. A new webhook has another signing secret.`,
    action: "Delete webhook",
  });
  if (!isWanted) return;
  try {
    await client.value.deleteWebhook(run_id, webhook_id);
    tell(`The webhook to ${shortUrl(url)} is deleted`);
    go(["webhooks"]);
  } catch (failure) {
    tellFailure("The webhook was not deleted", failure);
  }
}
