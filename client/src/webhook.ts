/** Whether a webhook delivery is genuine. */

import { webCrypto } from "./http/random_key.ts";

export interface VerifyOptions {
  /**
   * How far `webhook-timestamp` may lie from now, in seconds; 300. Null checks `x-service-signature` alone,
   * which says nothing of the time: a delivery that somebody recorded passes again.
   */
  toleranceSecs?: number | null;
  /** Epoch milliseconds; now. */
  nowMs?: number;
}

/** Headers of a fetch request, or those of a Node.js request. */
export type WebhookHeaders =
  | { get(name: string): string | null }
  | Readonly<Record<string, string | readonly string[] | undefined>>;

/**
 * Checks `x-service-signature`, and, unless `toleranceSecs` is null, `webhook-signature` with its time.
 * `body` is the body as it was received: parsing and printing it again changes its bytes. `secret` is the
 * webhook's `signing_secret`.
 */
export async function verifyWebhook(
  headers: WebhookHeaders,
  body: string | Uint8Array | ArrayBuffer,
  secret: string,
  { toleranceSecs = 300, nowMs = Date.now() }: VerifyOptions = {},
): Promise<boolean> {
  const bytes = typeof body === "string" ? new TextEncoder().encode(body) : new Uint8Array(body);
  const { subtle } = await webCrypto();
  const key = await subtle.importKey(
    "raw",
    fromHex(secret, "secret must be the hex digits of signing_secret"),
    { name: "HMAC", hash: "SHA-256" },
    false,
    ["verify"],
  );
  // The comparison of `verify` takes the same time wherever the two differ.
  const isOf = (signature: Uint8Array<ArrayBuffer>, data: Uint8Array<ArrayBuffer>) =>
    subtle.verify("HMAC", key, signature, data);

  const hex = /^v1=([0-9a-f]{64})$/.exec(header(headers, "x-service-signature"))?.[1];
  if (!hex || !await isOf(fromHex(hex, ""), bytes)) return false;
  if (toleranceSecs === null) return true;

  const timestamp = header(headers, "webhook-timestamp");
  if (!/^\d{1,15}$/.test(timestamp) || Math.abs(nowMs / 1000 - Number(timestamp)) > toleranceSecs) {
    return false;
  }
  const head = new TextEncoder().encode(`${header(headers, "webhook-id")}.${timestamp}.`);
  const signed = new Uint8Array(head.length + bytes.length);
  signed.set(head);
  signed.set(bytes, head.length);
  for (const entry of header(headers, "webhook-signature").split(" ")) {
    const base64 = /^v1,([A-Za-z0-9+/]{43}=)$/.exec(entry)?.[1];
    if (base64 && await isOf(Uint8Array.from(atob(base64), (c) => c.charCodeAt(0)), signed)) return true;
  }
  return false;
}

function header(headers: WebhookHeaders, name: string): string {
  if (typeof headers.get === "function") {
    return (headers as { get(name: string): string | null }).get(name) ?? "";
  }
  const entry = Object.entries(headers).find(([key]) => key.toLowerCase() === name)?.[1];
  return typeof entry === "string" ? entry : "";
}

function fromHex(hex: string, otherwise: string): Uint8Array<ArrayBuffer> {
  if (!/^(?:[0-9a-fA-F]{2})+$/.test(hex)) throw new TypeError(otherwise);
  return Uint8Array.from(hex.match(/../g)!, (digits) => parseInt(digits, 16));
}
