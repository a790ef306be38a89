/** Request bodies and answers of the webhook routes: their shapes. The rules about values are checked by the flow. */

import * as z from "zod";
import { textWithin } from "../schemas/described_fields.ts";
import { LIMITS } from "../../contract/limits.ts";
import { WEBHOOK_CONDITIONS } from "../webhooks/conditions.ts";
import type { Cooldown } from "../webhooks/cooldown.ts";
import type { DeadLetter, DeliveryOutcome } from "../webhooks/delivery.ts";
import type { WebhookFilter } from "../webhooks/filter.ts";
import type { WebhookOfSource } from "../webhooks/webhook.ts";

export const REGISTER_WEBHOOK_BODY = z.strictObject({
  url: textWithin(
    { minimum: 1, maximum: LIMITS.webhook.urlBytesMax },
    `An https URL of a public host, at most ${LIMITS.webhook.urlBytesMax} bytes`,
  ),
  ...WEBHOOK_CONDITIONS.shape,
});

export type RegisterWebhookBody = z.infer<typeof REGISTER_WEBHOOK_BODY>;

/** The events to send again, by sequence numbers: both ends belong to the range. */
export const REDELIVER_BODY = z.strictObject({
  from_seq: z.int().nonnegative().nullish(),
  to_seq: z.int().nonnegative().nullish(),
});

export type RedeliverBody = z.infer<typeof REDELIVER_BODY>;

/** The answer to a registration without the request id: the only answer that contains the secret. */
export interface RegisteredWebhook {
  readonly run_id: string;
  readonly webhook_id: string;
  readonly url: string;
  readonly event_kinds: readonly string[];
  readonly filter: WebhookFilter | null;
  readonly cooldown: Cooldown | null;
  readonly registered_seq: number;
  /** The key of the signatures: 64 hex digits. */
  readonly signing_secret: string;
}

/** An entry of the list of webhooks. See docs/events.md#webhooks. */
export interface ListedWebhook {
  readonly webhook_id: string;
  readonly url: string;
  readonly event_kinds: readonly string[];
  readonly filter: WebhookFilter | null;
  readonly cooldown: Cooldown | null;
  /** The webhook of the file of sources that this is; null for one that a caller registered. */
  readonly source: WebhookOfSource | null;
  readonly registered_seq: number;
  /** Every event up to here is delivered, given up, or not for this webhook. */
  readonly last_terminal_seq: number;
  readonly delivered: number;
  readonly dead_letters: number;
  /** Events that the cooldown has withheld, and those of them that no delivery has told of yet. */
  readonly withheld: number;
  readonly withheld_pending: number;
  readonly last_error: string | null;
  /** When the first attempt since the last success began, where it failed; epoch milliseconds. */
  readonly failing_since_ms: number | null;
  /** The event that is being tried again. */
  readonly retry: {
    readonly seq: number;
    readonly attempts: readonly number[];
    /** When the next attempt begins, epoch milliseconds; null while one is under way. */
    readonly next_attempt_ms: number | null;
  } | null;
  /**
   * The state of the receiver: `gone` after it answered 410, and then nothing is sent to it until its owner
   * has events sent again.
   */
  readonly state: "active" | "gone";
  /** Since when it is gone, epoch milliseconds; null while it is active. */
  readonly gone_since_ms: number | null;
  /** The newest events that were given up; see LIMITS.webhook.recentDeadLettersMax. */
  readonly recent_dead_letters: readonly DeadLetter[];
  /** The events that are still to be sent again. */
  readonly redelivery: { readonly from_seq: number; readonly to_seq: number } | null;
}

/** An entry of the list of all webhooks of a caller. */
export interface WebhookOfRun extends ListedWebhook {
  readonly run_id: string;
  /** The newest event of the run. */
  readonly run_last_seq: number;
}

export interface ScheduledRedelivery {
  readonly run_id: string;
  readonly webhook_id: string;
  /**
   * The first event that is sent again. The range is without events that were not delivered a first time yet;
   * nothing is scheduled when it is empty.
   */
  readonly from_seq: number;
  readonly to_seq: number;
  /** How many events are sent again. */
  readonly scheduled: number;
}

/** The outcome of one event; see LIMITS.webhook.recentDeliveriesMax. */
export interface ListedDelivery {
  readonly seq: number;
  /** The kind of the event; null where an older version of the service wrote the record. */
  readonly kind: string | null;
  readonly outcome: DeliveryOutcome;
  readonly error: string | null;
  readonly attempts: readonly number[];
  /** How long the last attempt took. */
  readonly took_ms: number | null;
  /** How many withheld events the delivery told of. */
  readonly withheld: number;
}

/** What was sent to the receiver. */
export interface SentDelivery {
  readonly seq: number;
  readonly kind: string;
  /** The headers of the last attempt; null where its time is not known any more, or nothing was sent. */
  readonly headers: Readonly<Record<string, string>> | null;
  /** The body as it was sent; null where it is too long to be sent. */
  readonly body: string | null;
}
