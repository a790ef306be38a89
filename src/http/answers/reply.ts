/** Responses: the headers that every one has, JSON, the error envelope, and rejections in plain text. */

import {
  CursorExpired,
  type Refusal,
  RefusalForNow,
  type RefusalKind,
  refuse,
} from "../../contract/refusal.ts";
import { preferredType } from "./accept.ts";

/**
 * Headers of every response. One constant list per content type, so that a response builds no headers of its
 * own. They are few and short: a small response is then sent at once, head and body together.
 */
export const COMMON_HEADERS = {
  "x-content-type-options": "nosniff",
  "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
  "cache-control": "no-store",
} as const;

/**
 * Headers of the files of web pages instead: everything that a page loads comes from the service itself, as
 * files, and no other page may show it in a frame. `data:` is for the pictures in style sheets.
 */
export const PAGE_HEADERS = {
  "x-content-type-options": "nosniff",
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "x-frame-options": "DENY",
  "referrer-policy": "no-referrer",
  "permissions-policy": "camera=(), microphone=(), geolocation=()",
} as const;

/**
 * Headers of the console, which also shows pictures and films that it has fetched, has a service worker that
 * fetches them, and may use the camera, the microphone and the screen when the person allows it.
 */
export const CONSOLE_HEADERS = {
  ...PAGE_HEADERS,
  "content-security-policy":
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; media-src 'self' blob:; " +
    "connect-src 'self'; worker-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
  "permissions-policy": "camera=(self), microphone=(self), display-capture=(self), geolocation=()",
} as const;

/**
 * Says that the service is asked over TLS only, where the request came so: over HTTP/3, or through a proxy
 * that says it.
 */
export function expectTls({ url, headers }: Request, response: Response): void {
  if (!url.startsWith("https:") && headers.get("x-forwarded-proto") !== "https") return;
  response.headers.set("strict-transport-security", "max-age=63072000; includeSubDomains");
}

const PLAIN_TYPE = "text/plain";
const JSON_TYPE_NAME = "application/json";
const JSON_TYPE = { "content-type": JSON_TYPE_NAME } as const;
const JSON_HEADERS = Object.entries({ ...JSON_TYPE, ...COMMON_HEADERS });
const TEXT_HEADERS = Object.entries({ "content-type": "text/plain; charset=utf-8", ...COMMON_HEADERS });
const EMPTY_HEADERS = Object.entries(COMMON_HEADERS);

/** A response whose whole body is at hand: over HTTP/3 it is sent without a stream (`http3/exchange.ts`). */
class WholeResponse extends Response {
  readonly wholeBody: string;

  constructor(body: string, init: ResponseInit) {
    super(body, init);
    this.wholeBody = body;
  }
}

/** A response that is long enough to compress; `http/answers/compress.ts` checks what the request accepts. */
export class CompressibleResponse extends Response {
  /** Its whole body, where that is at hand. */
  readonly wholeBody: string | null;

  constructor(body: string | ReadableStream<Uint8Array>, init: ResponseInit) {
    super(body, init);
    this.wholeBody = typeof body === "string" ? body : null;
  }
}

/**
 * Characters from which compression saves more than it costs: a shorter response fits into one packet anyway.
 */
const COMPRESSIBLE_CHARACTERS = 1024;

/** A JSON response of text that is JSON already. */
export function jsonText(body: string, status = 200): Response {
  if (body.length >= COMPRESSIBLE_CHARACTERS) {
    return new CompressibleResponse(body, { status, headers: JSON_HEADERS as [string, string][] });
  }
  return shortText(body, status, JSON_TYPE);
}

function shortText(body: string, status: number, type: Readonly<Record<"content-type", string>>): Response {
  const response = new WholeResponse(body, { status, headers: type });
  addCommonHeaders(response.headers);
  return response;
}

/**
 * The headers that every response has, one by one: of a response that is made with several, Deno 2.9 makes a
 * native twin that the garbage collector has to watch (1.5 µs more a response, measured on 23 November 2026).
 */
function addCommonHeaders(headers: Headers): void {
  for (const [name, value] of EMPTY_HEADERS) headers.append(name, value);
}

/**
 * A short JSON response that is the same for every request: a copy of a response costs less than a new one.
 */
export function constantJson(value: unknown): () => Response {
  const response = json(value);
  return () => response.clone();
}

export function json(value: unknown, status = 200): Response {
  return jsonText(JSON.stringify(value), status);
}

export function plainText(body: string, status = 200, extra: Record<string, string> = {}): Response {
  const headers = [...(body === "" ? EMPTY_HEADERS : TEXT_HEADERS), ...Object.entries(extra)];
  return new Response(body === "" ? null : body, { status, headers: headers as [string, string][] });
}

/**
 * A JSON response written chunk by chunk: memory holds one chunk and not the whole, and the next chunk is
 * made only when the connection has taken the last one. An error in the middle cuts the connection, so that
 * the client does not take a part for the whole.
 */
export function jsonStream(chunks: Iterable<string> | AsyncIterable<string>): Response {
  return new CompressibleResponse(bodyOf(chunks), { headers: JSON_HEADERS as [string, string][] });
}

function bodyOf(chunks: Iterable<string> | AsyncIterable<string>): ReadableStream<Uint8Array> {
  const encoder = new TextEncoder();
  const iterator = Symbol.asyncIterator in chunks
    ? chunks[Symbol.asyncIterator]()
    : chunks[Symbol.iterator]();
  return new ReadableStream<Uint8Array>({
    async pull(controller) {
      const { done, value } = await iterator.next();
      if (done) controller.close();
      else controller.enqueue(encoder.encode(value));
    },
    async cancel() {
      await iterator.return?.();
    },
  });
}

/** How an answer is written that may have one chunk or many. */
export interface ChunkTerms {
  readonly status?: number;
  /** What an answer of several chunks waits for. */
  readonly admit?: () => Promise<void>;
}

/** A JSON response of chunks that may be few: a single one is a response that is sent at once. */
export function jsonChunks(chunks: AsyncIterable<string>, terms?: ChunkTerms): Promise<Response> {
  return textChunks(chunks, JSON_TYPE["content-type"], terms);
}

/** A response of chunks of text of any content type; a single one is sent at once. */
export async function textChunks(
  chunks: AsyncIterable<string>,
  contentType: string,
  { status = 200, admit = async () => {} }: ChunkTerms = {},
): Promise<Response> {
  const type = { "content-type": contentType };
  const headers = Object.entries({ ...type, ...COMMON_HEADERS });
  const iterator = chunks[Symbol.asyncIterator]();
  const first = await iterator.next();
  const second = await iterator.next();
  if (!second.done) {
    try {
      await admit();
    } catch (error) {
      await iterator.return?.();
      throw error;
    }
    return new CompressibleResponse(bodyOf(startingWith([first.value, second.value], iterator)), {
      status,
      headers,
    });
  }
  const whole = first.done ? "" : first.value;
  return whole.length < COMPRESSIBLE_CHARACTERS
    ? shortText(whole, status, type)
    : new CompressibleResponse(whole, { status, headers });
}

async function* startingWith(
  begun: readonly string[],
  iterator: AsyncIterator<string>,
): AsyncIterable<string> {
  try {
    yield* begun;
    for (let next = await iterator.next(); !next.done; next = await iterator.next()) yield next.value;
  } finally {
    await iterator.return?.();
  }
}

/** A response of any content type whose body is read as fast as the client takes it; never compressed. */
export function streamed(
  body: ReadableStream<Uint8Array>,
  contentType: string,
  extra: Record<string, string> = {},
): Response {
  return new Response(body, { headers: { "content-type": contentType, ...COMMON_HEADERS, ...extra } });
}

/**
 * The JSON error envelope; `details` is always an array. A refusal that ends by itself adds `retry-after`.
 * See docs/api.md#errors.
 */
export function refusal(refused: Refusal, requestId: string): Response {
  const { code, message, details } = refused;
  const more = refused instanceof CursorExpired ? { first_seq: refused.firstSeq } : {};
  const response = json(
    { error: { code, message, request_id: requestId, details, ...more } },
    refused.status,
  );
  if (refused instanceof RefusalForNow) {
    response.headers.set("retry-after", String(refused.retryAfterSeconds));
  }
  return response;
}

/** The refusals of requests that no handler gets, by status. */
export const REJECTIONS: Readonly<Record<number, RefusalKind>> = {
  400: "bad_request",
  404: "not_found",
  405: "method_not_allowed",
  408: "request_timeout",
  413: "payload_too_large",
  414: "uri_too_long",
  415: "unsupported_media_type",
};

/**
 * A request that is rejected before a use case gets it: in plain text, or in the envelope for a caller that
 * asks for JSON. See docs/api.md#plain-rejections.
 */
export class Rejection extends Error {
  override readonly name = "Rejection";

  constructor(readonly status: number, message: string, readonly headers: Record<string, string> = {}) {
    super(message);
  }

  /** `request` says by `Accept` what the caller reads. */
  response({ headers }: Pick<Request, "headers">, requestId: string): Response {
    const kind = REJECTIONS[this.status];
    const accept = headers.get("accept");
    if (
      kind === undefined || accept === null ||
      preferredType(accept, [PLAIN_TYPE, JSON_TYPE_NAME]) === PLAIN_TYPE
    ) {
      return plainText(this.message, this.status, this.headers);
    }
    const response = refusal(refuse.because(kind, this.message), requestId);
    for (const [name, value] of Object.entries(this.headers)) response.headers.set(name, value);
    return response;
  }
}

/** What a live session refuses: always in plain text, as WHIP has it. */
export class PlainRejection extends Rejection {
  override response(): Response {
    return plainText(this.message, this.status, this.headers);
  }
}
