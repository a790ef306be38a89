/** What the webhook routes take and answer: shapes; the flow checks the rules. */

import * as z from "zod";
import { LIMITS } from "../../contract/limits.ts";
import { count, open, positive, text } from "../events/payload_shapes.ts";
import { webhookCooldown, webhookFilter, webhookSource } from "../events/run_payloads.ts";
import { named } from "../schemas/named_shapes.ts";
import { WEBHOOK_CONDITIONS } from "../webhooks/conditions.ts";
import type { Cooldown } from "../webhooks/cooldown.ts";
import { type DeadLetter, DELIVERY_OUTCOMES, type DeliveryOutcome } from "../webhooks/delivery.ts";
import type { WebhookFilter } from "../webhooks/filter.ts";
import type { WebhookOfSource } from "../webhooks/webhook.ts";
import { answer, pageCursorField, requestIdField, runIdField, webhookIdField } from "./answer_fields.ts";
import { body, textWithin } from "../schemas/described_fields.ts";

export const REGISTER_WEBHOOK_BODY = body("WebhookRequest", {
  url: textWithin(
    { minimum: 1, maximum: LIMITS.webhook.urlBytesMax },
    `An https URL of a public host, at most ${LIMITS.webhook.urlBytesMax} bytes`,
  ),
  ...WEBHOOK_CONDITIONS.shape,
});

export type RegisterWebhookBody = z.infer<typeof REGISTER_WEBHOOK_BODY>;

/** The events to send again, by sequence numbers: both ends belong to the range. */
export const REDELIVER_BODY = body("RedeliverRequest", {
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

/** An entry of the list of webhooks. See docs/events/webhooks.md. */
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

const webhookFields = () => ({
  webhook_id: webhookIdField,
  url: text,
  event_kinds: z.array(text).describe("Empty for every kind that is not bookkeeping"),
  filter: webhookFilter.nullable().describe(
    "What holds for a delivered event besides; null for no conditions",
  ),
  cooldown: webhookCooldown.nullable(),
  registered_seq: positive,
});

/** The only answer that contains the secret. */
export const CREATED_WEBHOOK = answer("CreatedWebhook", () => ({
  request_id: requestIdField,
  run_id: runIdField,
  ...webhookFields(),
  signing_secret: z.string().regex(/^[0-9a-f]{64}$/),
}));

export const WEBHOOK = answer("Webhook", () => ({
  ...webhookFields(),
  source: webhookSource.nullable().describe(
    "Which webhook of the file of sources it is; null for one that was registered",
  ),
  last_terminal_seq: count.describe("Every event up to here is delivered, given up, or not for this webhook"),
  delivered: count,
  dead_letters: count,
  withheld: count.describe("Events that the cooldown has withheld"),
  withheld_pending: count.describe("Those of them that no delivery has told of yet"),
  last_error: z.string().nullable(),
  failing_since_ms: count.nullable().describe(
    "When the first attempt since the last success began, where it failed, epoch milliseconds",
  ),
  retry: named(
    "WebhookRetry",
    open({
      seq: positive,
      attempts: z.array(count).describe("When each attempt began, epoch milliseconds"),
      next_attempt_ms: count.nullable().describe("Epoch milliseconds; null while an attempt is under way"),
    }),
  ).nullable().describe("The event that failed and is tried again"),
  state: z.enum(["active", "gone"]).describe(
    "`gone` after the receiver answered 410: nothing is sent to it until a redelivery starts the webhook again",
  ),
  gone_since_ms: count.nullable().describe(
    "Since when it is gone, epoch milliseconds; null while it is active",
  ),
  recent_dead_letters: z.array(named(
    "DeadLetter",
    open({
      seq: positive,
      error: z.string(),
      attempts: z.array(count).describe("When each attempt began, epoch milliseconds"),
    }),
  )),
  redelivery: named("WebhookRedelivery", open({ from_seq: count, to_seq: count })).nullable().describe(
    "The events that are still to be sent again",
  ),
}));

export const WEBHOOKS = answer("WebhookList", () => ({
  request_id: requestIdField,
  run_id: runIdField,
  webhooks: z.array(WEBHOOK()),
  next_cursor: pageCursorField,
}));

export const WEBHOOK_OF_RUN = answer("WebhookOfRun", () => ({
  ...WEBHOOK().shape,
  run_id: runIdField,
  run_last_seq: positive.describe(
    "The newest event of the run: the webhook is behind until `last_terminal_seq` has come there",
  ),
}));

export const ALL_WEBHOOKS = answer("AllWebhooks", () => ({
  request_id: requestIdField,
  webhooks: z.array(WEBHOOK_OF_RUN()),
  next_cursor: pageCursorField,
}));

export const DELETED_WEBHOOK = answer("DeletedWebhook", () => ({
  request_id: requestIdField,
  run_id: runIdField,
  webhook_id: webhookIdField,
  deleted: z.literal(true),
}));

export const REDELIVERY = answer("RedeliverResponse", () => ({
  request_id: requestIdField,
  run_id: runIdField,
  webhook_id: webhookIdField,
  from_seq: count,
  to_seq: count,
  scheduled: count.describe("How many events are sent again"),
}));

export const DELIVERY = answer("Delivery", () => ({
  seq: positive,
  kind: text.nullable().describe("Null where a version that did not note it has sent the event"),
  outcome: z.enum(DELIVERY_OUTCOMES),
  error: z.string().nullable(),
  attempts: z.array(count).describe("When each attempt began, epoch milliseconds"),
  took_ms: count.nullable().describe("How long the last attempt took"),
  withheld: count.describe("How many withheld events the delivery told of"),
}));

export const DELIVERIES = answer("DeliveryList", () => ({
  request_id: requestIdField,
  run_id: runIdField,
  webhook_id: webhookIdField,
  deliveries: z.array(DELIVERY()),
}));

export const SENT_DELIVERY = answer("SentDelivery", () => ({
  request_id: requestIdField,
  run_id: runIdField,
  webhook_id: webhookIdField,
  seq: positive,
  kind: text,
  headers: z.record(z.string(), z.string()).nullable().describe(
    "Of the last attempt; null where its time is not known any more, or nothing was sent",
  ),
  body: z.string().nullable().describe("Exactly what is sent; null where it is too long for that"),
}));
