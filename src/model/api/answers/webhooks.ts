/** Answers of the webhook routes: their shapes. See docs/events.md#webhooks. */

import * as z from "zod";
import { count, open, positive, text } from "../../events/payload_shapes.ts";
import { webhookCooldown, webhookFilter, webhookSource } from "../../events/run_payloads.ts";
import { answer, pageCursorField, requestIdField, runIdField, webhookIdField } from "./answer_fields.ts";
import { named } from "../../schemas/named_shapes.ts";
import { DELIVERY_OUTCOMES } from "../../webhooks/delivery.ts";

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
