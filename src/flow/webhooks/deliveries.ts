/** What became of the last deliveries of a webhook, and what was sent. */

import { utf8Length } from "../../base/bytes.ts";
import { refuse } from "../../contract/refusal.ts";
import type { ListedDelivery, SentDelivery } from "../../model/api/webhooks.ts";
import { cloudEvent, cloudEventBytes } from "../../model/events/cloudevent.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { DeliveryState } from "../../model/webhooks/delivery.ts";
import { deliveryHeaders } from "../../model/webhooks/signature.ts";
import { isForAnyPayload, type Webhook } from "../../model/webhooks/webhook.ts";
import type { StoredEvent } from "../../store/timeline/event_reader.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { Caller } from "../caller.ts";
import { ownedRun } from "../runs/ownership.ts";
import { EventMatcher } from "./event_matcher.ts";
import type { HookRegistry, RegisteredHook } from "./hook_registry.ts";

export interface DeliveryReadsOptions {
  readonly timeline: Timeline;
  readonly hooks: HookRegistry;
}

/** See docs/events/webhooks.md#deliveries. */
export class DeliveryReads {
  readonly #options: DeliveryReadsOptions;

  constructor(options: DeliveryReadsOptions) {
    this.#options = options;
  }

  /** The newest first; none while webhooks are off. Errors: 422 or 404 on `run_id`, 404 on `webhook_id`. */
  list(caller: Caller, runId: string, webhookId: string): ListedDelivery[] {
    this.#hook(caller, runId, webhookId);
    const state = this.#options.hooks.deliveries?.stateOf(runId, webhookId);
    return (state?.recentDeliveries ?? []).map((
      { seq, kind, outcome, error, attempts, tookMs, withheld },
    ) => ({
      seq,
      kind,
      outcome,
      error,
      attempts,
      took_ms: tookMs,
      withheld,
    })).reverse();
  }

  /**
   * The body of an event as it is sent to the webhook, and the headers of the last attempt. Errors: 422 or
   * 404 on `run_id`, 404 on `webhook_id`, 404 on `seq` for an event that was not sent, 503 while webhooks are
   * off.
   */
  async read(caller: Caller, runId: string, webhookId: string, seq: number): Promise<SentDelivery> {
    const registered = this.#hook(caller, runId, webhookId);
    const { hook } = registered;
    const { hooks } = this.#options;
    const key = hooks.keyOf(registered);
    const state = hooks.deliveries?.stateOf(runId, webhookId);
    if (state === undefined || !isReached(hook, state, seq)) throw notSent();
    const event = await this.#event(runId, seq);
    if (event === undefined || !this.#isFor(hook, event)) throw notSent();
    const { kind, payload } = event;
    if (payload === null) return { seq, kind, headers: null, body: null };
    const last = lastAttempt(state, seq);
    // Whether a cooldown withheld an event, and what its delivery told, is known of the last outcomes only.
    if (hook.cooldown && last === undefined) throw notSent();
    const body = cloudEvent({ ...event, payload }, last && "withheld" in last ? last.withheld : 0);
    const atMs = last?.attempts.at(-1);
    if (atMs === undefined) return { seq, kind, headers: null, body };
    const headers = deliveryHeaders(key, `${runId}:${seq}`, atMs, new TextEncoder().encode(body));
    return { seq, kind, headers, body };
  }

  #hook(caller: Caller, runId: string, webhookId: string): RegisteredHook {
    const { timeline, hooks } = this.#options;
    ownedRun(timeline.view, caller, runId);
    return hooks.find(runId, webhookId);
  }

  /** Whether the webhook sends it, or gives it up as it is too long. */
  #isFor(hook: Webhook, { payload, ...event }: Sendable): boolean {
    if (payload === null) return isForAnyPayload(hook, event.kind);
    return new EventMatcher(hook, this.#options.timeline).judge({ ...event, payload }).verdict === "wanted";
  }

  /** With a payload of null where the body would be longer than what is sent. */
  async #event(runId: string, seq: number): Promise<Sendable | undefined> {
    const { timeline } = this.#options;
    const found = timeline.readFirst(runId, { fromSeq: seq, toSeq: seq });
    const event = typeof found === "number" ? await timeline.readOneInPieces(found) : found?.[0];
    if (event === undefined) return undefined;
    if (!("payload" in event)) return { ...event, payload: null };
    const isTooLong = cloudEventBytes(event, utf8Length(event.payload)) > LIMITS.webhook.bodyBytesMax;
    return isTooLong ? { ...event, payload: null } : event;
  }
}

type Sendable = Omit<StoredEvent, "payload"> & { readonly payload: string | null };

function notSent() {
  return refuse.notFound("Delivery", "seq");
}

/** Whether the webhook is past the event, or is trying it. */
function isReached({ registeredSeq }: Webhook, { cursorSeq, retry }: DeliveryState, seq: number): boolean {
  return seq > registeredSeq && (seq <= cursorSeq || seq === retry?.seq);
}

/** What is known of the last attempt; undefined where nothing is any more. */
function lastAttempt({ retry, recentDeliveries, recentDeadLetters }: DeliveryState, seq: number) {
  return retry?.seq === seq
    ? retry
    : [...recentDeadLetters, ...recentDeliveries].findLast((one) => one.seq === seq);
}
