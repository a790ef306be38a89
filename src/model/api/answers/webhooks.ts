/** Answers of the webhook routes: their shapes. See docs/events.md#webhooks. */

import { z } from "zod";
import { count, open, positive, text } from "../../events/payload_shapes.ts";
import { requestIdField, runIdField, webhookIdField } from "./answer_fields.ts";

const webhookFields = {
  webhook_id: webhookIdField,
  url: text,
  event_kinds: z.array(text).describe("Empty for every kind that is not bookkeeping"),
  registered_seq: positive,
};

/** The only answer that contains the secret. */
export const CREATED_WEBHOOK = open({
  request_id: requestIdField,
  run_id: runIdField,
  ...webhookFields,
  signing_secret: z.string().regex(/^[0-9a-f]{64}$/),
});

export const WEBHOOK = open({
  ...webhookFields,
  last_terminal_seq: count.describe("Every event up to here is delivered, given up, or not for this webhook"),
  delivered: count,
  dead_letters: count,
  last_error: z.string().nullable(),
  state: z.literal("active"),
  recent_dead_letters: z.array(open({
    seq: positive,
    error: z.string(),
    attempts: z.array(count).describe("When each attempt began, epoch milliseconds"),
  })),
  redelivery: open({ from_seq: count, to_seq: count }).nullable().describe(
    "The events that are still to be sent again",
  ),
});

export const WEBHOOKS = open({ request_id: requestIdField, run_id: runIdField, webhooks: z.array(WEBHOOK) });

export const WEBHOOK_OF_RUN = WEBHOOK.extend({
  run_id: runIdField,
  run_last_seq: positive.describe(
    "The newest event of the run: the webhook is behind until `last_terminal_seq` has come there",
  ),
});

export const ALL_WEBHOOKS = open({ request_id: requestIdField, webhooks: z.array(WEBHOOK_OF_RUN) });

export const DELETED_WEBHOOK = open({
  request_id: requestIdField,
  run_id: runIdField,
  webhook_id: webhookIdField,
  deleted: z.literal(true),
});

export const REDELIVERY = open({
  request_id: requestIdField,
  run_id: runIdField,
  webhook_id: webhookIdField,
  from_seq: count,
  to_seq: count,
  scheduled: count.describe("How many events are sent again"),
});
