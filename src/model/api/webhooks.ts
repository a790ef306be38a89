/** Request bodies and answers of the webhook routes; what a field may hold is checked once the run is known. */

import { z } from "zod";
import type { DeadLetter } from "../webhooks/delivery.ts";

export const REGISTER_WEBHOOK_BODY = z.strictObject({
  url: z.string(),
  event_kinds: z.array(z.string()).nullish(),
});

export type RegisterWebhookBody = z.infer<typeof REGISTER_WEBHOOK_BODY>;

/** Both ends belong to the range. */
export const REDELIVER_BODY = z.strictObject({
  from_seq: z.int().nonnegative().nullish(),
  to_seq: z.int().nonnegative().nullish(),
});

export type RedeliverBody = z.infer<typeof REDELIVER_BODY>;

/** The answer to a registration, but for the request id: the only place where the secret is told. */
export interface RegisteredWebhook {
  readonly run_id: string;
  readonly webhook_id: string;
  readonly url: string;
  readonly event_kinds: readonly string[];
  readonly registered_seq: number;
  /** 64 hex digits. */
  readonly signing_secret: string;
}

/** An entry of the list, contract 8.3; the last two fields are this service's own. */
export interface ListedWebhook {
  readonly webhook_id: string;
  readonly url: string;
  readonly event_kinds: readonly string[];
  readonly registered_seq: number;
  /** Everything up to here is delivered, given up, or not for this hook. */
  readonly last_terminal_seq: number;
  readonly delivered: number;
  readonly dead_letters: number;
  readonly last_error: string | null;
  /** `pending` is reserved by the contract: here a hook is listed once it is committed. */
  readonly state: "active";
  /** The newest 16. */
  readonly recent_dead_letters: readonly DeadLetter[];
  /** What is still to be sent again. */
  readonly redelivery: { readonly from_seq: number; readonly to_seq: number } | null;
}

export interface ScheduledRedelivery {
  readonly run_id: string;
  readonly webhook_id: string;
  /** The range as it was narrowed to what the hook is past; nothing is scheduled when it is empty. */
  readonly from_seq: number;
  readonly to_seq: number;
  /** How many events are sent again. */
  readonly scheduled: number;
}
