/** Requests to one service: headers, deadlines, retries, and the answers as values or errors. */

import { bodyOf, checkType, refusalText, textOf } from "./bodies.ts";
import { fromJson, toJson } from "./exact_json.ts";
import {
  HttpError,
  NetworkError,
  ParseError,
  readApiError,
  RetryExhaustedError,
  ServiceError,
} from "./errors.ts";
import { randomKey } from "./random_key.ts";
import { isStillRunning, isWorthRetrying, pauseMs, readRetryAfter } from "./retries.ts";
import { Deadline, pause } from "./waiting.ts";

export interface ClientOptions {
  /** Sent as `x-api-key`. It never stands in the message of an error. */
  apiKey?: string;
  /** Sent as `x-tenant-id`, which is metadata and decides nothing. */
  tenantId?: string;
  /** Attempts after the first one, for requests that are safe to repeat; 3. */
  maxRetries?: number;
  /**
   * Pause before the first retry; it doubles with each further one, and a random part of it is added; 200.
   */
  retryBaseDelayMs?: number;
  /**
   * Time for one attempt; Infinity is no limit. 30,000 unless given, and 600,000 for what takes as long as
   * its media or its model does: ingest, analyze, reason, infer, replay, and answers that are files.
   */
  timeoutMs?: number;
  /**
   * Whether integers beyond 2^53, such as `perceptual_hash`, are read as bigint. Without it they are numbers
   * whose last digits are lost. `JSON.stringify` refuses a bigint.
   */
  exactIntegers?: boolean;
  /**
   * An answer, or a line of a stream, of more bytes is a ParseError; 512 MiB, which is near the longest text
   * of most runtimes.
   */
  maxAnswerBytes?: number;
  /** Used in place of the global `fetch`. */
  fetch?: typeof fetch;
}

/** What every method takes as its last argument. */
export interface RequestOptions {
  /** Ends the call, which then rejects with the signal's reason. */
  signal?: AbortSignal;
  /** In place of the client's `timeoutMs`. */
  timeoutMs?: number;
  /** In place of the client's `maxRetries`. */
  maxRetries?: number;
}

/** What the methods take whose repetition the service recognises. */
export interface KeyedOptions extends RequestOptions {
  /** 1 to 128 visible ASCII characters; a random one unless given. All attempts of a call have the same. */
  idempotencyKey?: string;
}

/** One request, as the methods of the client describe it. */
export interface Call {
  readonly method: "GET" | "POST" | "PATCH" | "DELETE";
  /** With its query. */
  readonly path: string;
  /** Sent as JSON. */
  readonly json?: unknown;
  readonly body?: string | ReadableStream<Uint8Array>;
  readonly headers?: Readonly<Record<string, string>>;
  /** Sends an idempotency key, which makes the request safe to repeat. */
  readonly isKeyed?: boolean;
  /** Whether the answer may take as long as its media or its model does. */
  readonly isLong?: boolean;
  /** A field that the answer must have; empty for an answer that is a list. */
  readonly has?: string;
}

/** A call and what its caller wishes. */
export type Sent<T> = Call & { readonly options: KeyedOptions | undefined; readonly read: Read<T> };
/** Takes the value out of an answer; the deadline of the call is still running. */
export type Read<T> = (response: Response) => Promise<T>;

const TIMEOUT_MS = 30_000;
const LONG_TIMEOUT_MS = 600_000;
const MAX_ANSWER_BYTES = 512 * 1024 * 1024;

export class Connection {
  readonly baseUrl: string;
  readonly maxRetries: number;
  readonly retryBaseDelayMs: number;
  readonly maxAnswerBytes: number;
  readonly #timeoutMs: number | undefined;
  readonly #exactIntegers: boolean;
  readonly #headers: Readonly<Record<string, string>>;
  readonly #fetch: typeof fetch;

  constructor(baseUrl: string, options: ClientOptions) {
    this.baseUrl = checkedBase(baseUrl);
    this.maxRetries = atLeast0("maxRetries", options.maxRetries ?? 3);
    this.retryBaseDelayMs = atLeast0("retryBaseDelayMs", options.retryBaseDelayMs ?? 200);
    this.#timeoutMs = options.timeoutMs === undefined ? undefined : atLeast0("timeoutMs", options.timeoutMs);
    this.maxAnswerBytes = atLeast0("maxAnswerBytes", options.maxAnswerBytes ?? MAX_ANSWER_BYTES);
    this.#exactIntegers = options.exactIntegers ?? false;
    this.#headers = {
      ...(options.apiKey !== undefined && { "x-api-key": headerText("apiKey", options.apiKey) }),
      ...(options.tenantId !== undefined && { "x-tenant-id": headerText("tenantId", options.tenantId) }),
    };
    this.#fetch = options.fetch ?? ((input, init) => fetch(input, init));
  }

  /** The headers that say who calls. */
  get identity(): Readonly<Record<string, string>> {
    return this.#headers;
  }

  /** The answer as JSON; undefined where it is empty. */
  json<T>(call: Call, options?: KeyedOptions): Promise<T> {
    return this.send({
      ...call,
      options,
      read: async (response) => {
        const text = await textOf(nameOf(call), response, this.maxAnswerBytes);
        const value = this.parse<T>(call, text);
        if (isAnswer(value, call.has)) return value;
        throw new ParseError(`${nameOf(call)}: the answer is not one of this service`, text);
      },
    });
  }

  text(call: Call, options?: RequestOptions): Promise<string> {
    return this.send({
      ...call,
      options,
      read: (response) => textOf(nameOf(call), response, this.maxAnswerBytes),
    });
  }

  blob(call: Call, options?: RequestOptions): Promise<Blob> {
    return this.send({
      ...call,
      options,
      read: (response) => bodyOf(nameOf(call), response, this.maxAnswerBytes),
    });
  }

  /**
   * The values of an answer with one JSON value a line, while it is read. One attempt; the time is that for
   * the next piece.
   */
  async *jsonLines<T>(call: Call, options: RequestOptions = {}): AsyncGenerator<T, void> {
    const { signal } = options;
    signal?.throwIfAborted();
    const timeoutMs = this.timeoutOf(call, options);
    const deadline = new Deadline(timeoutMs, signal);
    try {
      const response = await this.open(call, deadline);
      checkType(nameOf(call), response, call.headers!.accept!);
      const reader = (response.body ?? new Blob().stream()).getReader();
      const decoder = new TextDecoder();
      let rest = "";
      for (;;) {
        const { done, value } = await reader.read();
        const lines = (rest + decoder.decode(value, { stream: !done })).split("\n");
        rest = done ? "" : lines.pop()!;
        if (rest.length > this.maxAnswerBytes) {
          throw new ParseError(`${nameOf(call)}: a line has more than ${this.maxAnswerBytes} characters`, "");
        }
        deadline.restart(Infinity); // what the consumer does is not silence of the service
        for (const line of lines) if (line !== "") yield this.parse<T>(call, line);
        if (done) return;
        deadline.restart(timeoutMs);
      }
    } catch (error) {
      throw failed(nameOf(call), error, { signal, timeoutMs: deadline.isOver ? timeoutMs : undefined });
    } finally {
      deadline.end(true);
    }
  }

  /** The answer of one attempt as soon as it begins, for which the time is; its body ends with the signal. */
  async begun(call: Call, options: RequestOptions = {}): Promise<Response> {
    const { signal } = options;
    signal?.throwIfAborted();
    const timeoutMs = this.timeoutOf(call, options);
    const deadline = new Deadline(timeoutMs, signal);
    try {
      const response = await this.open(call, deadline);
      deadline.restart(Infinity);
      return response;
    } catch (error) {
      deadline.end(true);
      throw failed(nameOf(call), error, { signal, timeoutMs: deadline.isOver ? timeoutMs : undefined });
    }
  }

  /** One attempt, whose answer is not looked at. */
  async once(call: Call, options: RequestOptions): Promise<void> {
    await this.#attempt({ ...call, options, read: refusalText }, undefined);
  }

  /** Sends a request, again where that is safe and may help. */
  async send<T>(sent: Sent<T>): Promise<T> {
    const { method, isKeyed, options = {} } = sent;
    const written = withBody(sent);
    const key = isKeyed
      ? headerText("idempotencyKey", options.idempotencyKey ?? await randomKey())
      : undefined;
    const { maxRetries = this.maxRetries } = options;
    const isRepeatable = method === "GET" || method === "DELETE" || key !== undefined;
    const endMs = performance.now() + this.timeoutOf(sent, options);
    for (let attempt = 1;; attempt++) {
      try {
        return await this.#attempt(written, key);
      } catch (error) {
        if (!isRepeatable || !isWorthRetrying(error)) throw error;
        // Waiting for an earlier attempt is none itself; it ends with the time that one attempt may take.
        if (isStillRunning(error) && performance.now() < endMs) attempt -= 1;
        else if (attempt > maxRetries) throw new RetryExhaustedError(attempt, error);
        await pause(pauseMs(attempt, this.retryBaseDelayMs, error), options.signal);
      }
    }
  }

  /**
   * The answer of one attempt, whose body is still to be read under `deadline`. Throws HttpError for a
   * failure.
   */
  async open(call: Call, deadline: Deadline, key?: string): Promise<Response> {
    const response = await this.#fetch(this.baseUrl + call.path, {
      method: call.method,
      headers: {
        accept: "application/json",
        ...this.#headers,
        ...(key !== undefined && { "idempotency-key": key }),
        ...call.headers,
      },
      body: call.body ?? null,
      signal: deadline.signal,
      redirect: "error", // A redirect would take the API key to another place.
      ...(call.body instanceof ReadableStream && { duplex: "half" }),
    } as RequestInit);
    if (!response.ok) throw failureOf(nameOf(call), response, await refusalText(response));
    return response;
  }

  parse<T>(call: Call, text: string): T {
    if (text === "") return undefined as T;
    try {
      return fromJson(text, this.#exactIntegers) as T;
    } catch (cause) {
      throw new ParseError(`${nameOf(call)}: the answer is no JSON`, text, { cause });
    }
  }

  timeoutOf({ isLong }: Call, options?: RequestOptions): number {
    return options?.timeoutMs ?? this.#timeoutMs ?? (isLong ? LONG_TIMEOUT_MS : TIMEOUT_MS);
  }

  async #attempt<T>(sent: Sent<T>, key: string | undefined): Promise<T> {
    const { signal } = sent.options ?? {};
    signal?.throwIfAborted();
    const timeoutMs = this.timeoutOf(sent, sent.options);
    const deadline = new Deadline(timeoutMs, signal);
    try {
      const value = await sent.read(await this.open(sent, deadline, key));
      deadline.end();
      return value;
    } catch (error) {
      deadline.end(true);
      throw failed(nameOf(sent), error, { signal, timeoutMs: deadline.isOver ? timeoutMs : undefined });
    }
  }
}

function isAnswer(value: unknown, field: string | undefined): boolean {
  if (value === undefined) return field === undefined;
  if (field === "") return Array.isArray(value);
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return field === undefined || (value as Record<string, unknown>)[field] !== undefined;
}

/** Written once for all attempts. What JSON cannot say is a fault of the caller, and none of the network. */
function withBody<T>(sent: Sent<T>): Sent<T> {
  if (sent.json === undefined) return sent;
  return {
    ...sent,
    body: toJson(sent.json),
    headers: { ...sent.headers, "content-type": "application/json" },
  };
}

/**
 * What a failed attempt is thrown as: the signal's reason, an error of the client as it is, else
 * NetworkError.
 */
export function failed(
  what: string,
  error: unknown,
  { signal, timeoutMs }: { signal?: AbortSignal | undefined; timeoutMs?: number | undefined },
): unknown {
  if (signal?.aborted) return signal.reason;
  if (timeoutMs !== undefined) {
    return new NetworkError(`${what}: no answer within ${timeoutMs} ms`, { cause: error });
  }
  return error instanceof ServiceError
    ? error
    : new NetworkError(`${what}: ${reasonOf(error)}`, { cause: error });
}

/** The request as a person names it. */
export function nameOf({ method, path }: Call): string {
  return `${method} ${path.split("?")[0]}`;
}

export function failureOf(what: string, response: Response, text: string): HttpError {
  return new HttpError(what, {
    status: response.status,
    apiError: readApiError(text),
    text,
    retryAfterMs: readRetryAfter(response.headers.get("retry-after")),
  });
}

/** Of nested errors the innermost says what went wrong: `connect ECONNREFUSED` below `fetch failed`. */
function reasonOf(error: unknown): string {
  const inner = error instanceof Error && error.cause instanceof Error ? error.cause : error;
  return inner instanceof Error ? inner.message || inner.name : String(inner);
}

/** Without one slash at the end. A relative one is allowed where there is a page to which it is relative. */
function checkedBase(baseUrl: string): string {
  const base = baseUrl.replace(/\/$/, "");
  let url: URL;
  try {
    url = new URL(base, (globalThis as { location?: { href: string } }).location?.href);
  } catch {
    throw new TypeError("baseUrl must be an absolute http or https URL");
  }
  if (!/^https?:$/.test(url.protocol)) throw new TypeError("baseUrl must be an http or https URL");
  if (url.username !== "" || url.password !== "") {
    throw new TypeError("baseUrl must have no user name or password");
  }
  if (url.search !== "" || url.hash !== "") throw new TypeError("baseUrl must have no query or fragment");
  return base;
}

/** Checked here, as `fetch` would put a value that it refuses into its message. */
function headerText(name: string, value: string): string {
  if (!/^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/.test(value)) {
    throw new TypeError(`${name} must be visible ASCII characters, and not empty`);
  }
  return value;
}

function atLeast0(name: string, value: number): number {
  if (!(value >= 0)) throw new TypeError(`${name} must be a number from 0, got ${value}`);
  return value;
}
