/** Signatures of webhook deliveries: the key of each webhook, and the signed headers of a body. See
 * docs/events/webhooks.md#webhook-signatures.
 */

import { createHmac } from "node:crypto";

/**
 * The 32 bytes with which the deliveries of a webhook are signed. Each webhook has its own key, so that no
 * receiver can forge deliveries of another one: HMAC-SHA256(root, "service-webhook-v1" NUL run_id NUL
 * webhook_id). In hex it is the `signing_secret` of the webhook. It is derived each time and never stored.
 */
export function signingKey(root: string, runId: string, webhookId: string): Uint8Array {
  return createHmac("sha256", root).update(`service-webhook-v1\0${runId}\0${webhookId}`).digest();
}

/** The value of `x-service-signature`: `v1=` and the hex HMAC-SHA256 of the body. */
export function bodySignature(key: Uint8Array, body: Uint8Array): string {
  return `v1=${createHmac("sha256", key).update(body).digest("hex")}`;
}

/**
 * The headers of one attempt to deliver `body`, the exact bytes that are sent: those of this service, and
 * those of Standard Webhooks, whose signature covers `<event id>.<seconds>.<body>` with the same key.
 */
export function deliveryHeaders(
  key: Uint8Array,
  eventId: string,
  nowMs: number,
  body: Uint8Array,
): Record<string, string> {
  const seconds = String(Math.floor(nowMs / 1000));
  const standard = createHmac("sha256", key).update(`${eventId}.${seconds}.`).update(body).digest("base64");
  return {
    "content-type": "application/cloudevents+json",
    "user-agent": "service-webhook/1",
    "x-service-event-id": eventId,
    "x-service-signature": bodySignature(key, body),
    "webhook-id": eventId,
    "webhook-timestamp": seconds,
    "webhook-signature": `v1,${standard}`,
  };
}
