/** How answers look: headers that every one carries, JSON, the error envelope, and the plain rejections of D4. */

import { RateLimited } from "../base/rate_limit.ts";
import type { Refusal } from "../base/refusal.ts";

/** Contract 13.2. One frozen record a content type, so that a response costs no header work of its own. */
export const COMMON_HEADERS = {
  "x-content-type-options": "nosniff",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "strict-transport-security": "max-age=63072000; includeSubDomains",
  "permissions-policy": "camera=(), microphone=(), geolocation=()",
  "cache-control": "no-store",
} as const;

const JSON_HEADERS = Object.entries({ "content-type": "application/json", ...COMMON_HEADERS });
const TEXT_HEADERS = Object.entries({ "content-type": "text/plain; charset=utf-8", ...COMMON_HEADERS });
const EMPTY_HEADERS = Object.entries(COMMON_HEADERS);

/** An answer that is long enough for compression to pay; `http/compress.ts` decides by what the request accepts. */
export class CompressibleResponse extends Response {}

/** Characters from which compression saves more than it costs: below, the answer fits one packet anyway. */
const COMPRESSIBLE_CHARACTERS = 1024;

/** A JSON answer of text that is JSON already. */
export function jsonText(body: string, status = 200): Response {
  const init = { status, headers: JSON_HEADERS as [string, string][] };
  return body.length < COMPRESSIBLE_CHARACTERS
    ? new Response(body, init)
    : new CompressibleResponse(body, init);
}

export function json(value: unknown, status = 200): Response {
  return jsonText(JSON.stringify(value), status);
}

export function plainText(body: string, status = 200, extra: Record<string, string> = {}): Response {
  const headers = [...(body === "" ? EMPTY_HEADERS : TEXT_HEADERS), ...Object.entries(extra)];
  return new Response(body === "" ? null : body, { status, headers: headers as [string, string][] });
}

/**
 * A JSON answer written piece by piece: memory holds one piece and not the whole, and the next piece is only made
 * when the reader has taken the last. An error in the middle cuts the connection, so nobody takes half for whole.
 */
export function jsonStream(pieces: Iterable<string> | AsyncIterable<string>): Response {
  const encoder = new TextEncoder();
  const iterator = Symbol.asyncIterator in pieces
    ? pieces[Symbol.asyncIterator]()
    : pieces[Symbol.iterator]();
  const body = new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    async cancel() {
      await iterator.return?.();
    },
  });
  return new CompressibleResponse(body, { headers: JSON_HEADERS as [string, string][] });
}

/** An answer of any content type whose body is read as fast as the caller takes it; never compressed. */
export function streamed(
  body: ReadableStream<Uint8Array>,
  contentType: string,
  extra: Record<string, string> = {},
): Response {
  return new Response(body, { headers: { "content-type": contentType, ...COMMON_HEADERS, ...extra } });
}

/** Interface 7: the JSON envelope; `details` is always an array. A limited rate says when to come back. */
export function refusal(refused: Refusal, requestId: string): Response {
  const { code, message, details } = refused;
  const response = json({ error: { code, message, request_id: requestId, details } }, refused.status);
  if (refused instanceof RateLimited) response.headers.set("retry-after", String(refused.retryAfterSeconds));
  return response;
}

/** A request that is turned away before any story hears of it: plain text (D4). */
export class Rejection extends Error {
  override readonly name = "Rejection";

  constructor(readonly status: number, message: string, readonly headers: Record<string, string> = {}) {
    super(message);
  }

  response(): Response {
    return plainText(this.message, this.status, this.headers);
  }
}
