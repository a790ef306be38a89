/** The HTTP side of one model backend: requests to the operator's URL, and answers of limited length. */

import { joinedBytes } from "../../base/bytes.ts";
import { retryAfterMs } from "../../base/retry_after.ts";
import { jsonSizeFault } from "../../model/json_size.ts";
import { InferenceFailed, type InferenceFailure, type ProviderKind } from "../../model/infer/inference.ts";
import { AddressRefused, operatorAddresses } from "../guard/address_guard.ts";
import type { Backend, BackendContext } from "./backend.ts";
import { type PinnedBody, pinnedRequest, type PinnedResponse } from "../guard/pinned_request.ts";
import { RequestFailed } from "../guard/request_failed.ts";
import { serverWords, waitMsIn } from "./server_words.ts";

export interface Exchange {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** The URL of the request, with its query. It may have a key, so no error and no log message shows it. */
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array | string;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface ExchangeAnswer {
  readonly answer: Pick<PinnedResponse, "headers">;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/**
 * Sends requests to one server, at any address of the URL's host, private networks included, without a proxy
 * and without redirects, so that the key is sent to no other server. The host is looked up again after two
 * seconds or a failure. See docs/models.md#backends.
 */
export class ModelEndpoint {
  readonly #name: string;
  readonly #kind: ProviderKind;
  readonly #context: BackendContext;
  readonly #resolved = new Map<string, { readonly addresses: readonly string[]; readonly atMs: number }>();

  constructor({ name, kind }: Pick<Backend, "name" | "kind">, context: BackendContext) {
    this.#name = name;
    this.#kind = kind;
    this.#context = context;
  }

  /** The whole body of a 2xx answer. Errors: `InferenceFailed`, or the reason of the signal. */
  async exchange(exchange: Exchange, bytesMax = LIST_BYTES_MAX): Promise<ExchangeAnswer> {
    const { world, agent } = this.#context;
    const { url, method, headers = {}, body, timeoutMs, signal } = exchange;
    const endMs = world.monotonicMs() + timeoutMs;
    signal.throwIfAborted();
    if (timeoutMs <= 0) throw this.#late();
    const traceparent = world.tracing.traceparent();
    try {
      const addresses = await this.#addresses(url, Math.min(timeoutMs, RESOLVE_MS), signal);
      const answer = await pinnedRequest({
        world,
        agent,
        url,
        addresses,
        method,
        headers: {
          accept: "application/json",
          "accept-encoding": "identity",
          ...(traceparent && { traceparent }),
          ...headers,
        },
        ...(body !== undefined && { body }),
        connectTimeoutMs: CONNECT_MS,
        timeoutMs: Math.max(1, endMs - world.monotonicMs()),
        signal,
      });
      const isGood = answer.status >= 200 && answer.status < 300;
      const bytes = await this.#readBody(answer.body, isGood ? bytesMax : REFUSAL_BYTES_MAX, isGood);
      if (isGood) return { answer, bytes };
      throw this.#refused(answer, bytes, exchange);
    } catch (error) {
      if (error instanceof InferenceFailed) throw error;
      signal.throwIfAborted();
      this.#resolved.delete(url.hostname);
      throw this.#failed(error);
    }
  }

  /** The body of a 2xx answer as JSON. Errors: as for `exchange`, and `invalid_response`. */
  async json(exchange: Exchange): Promise<unknown> {
    const { bytes } = await this.exchange(exchange, ANSWER_BYTES_MAX);
    return this.parsed(bytes);
  }

  /**
   * Like `json`, for answers of a model: one that is an error in spite of its status is a refusal with the
   * status that the error names, or else no answer. Routers that stand before other servers give such
   * answers.
   */
  async answer(exchange: Exchange): Promise<unknown> {
    const { answer: { headers }, bytes } = await this.exchange(exchange, ANSWER_BYTES_MAX);
    const answer = this.parsed(bytes);
    const error = errorIn(answer);
    if (error === null) return answer;
    const code = Number(Reflect.get(error, "code") ?? Reflect.get(error, "status"));
    if (code >= 400 && code <= 599) throw this.#refused({ status: code, headers }, bytes, exchange);
    const words = serverWords(bytes, keysOf(exchange));
    throw this.#failure("invalid_response", ` answered with an error${words === null ? "" : `: ${words}`}`);
  }

  /** The bytes as a JSON value. Errors: `invalid_response`. */
  parsed(bytes: Uint8Array): unknown {
    try {
      const text = STRICT_UTF8.decode(bytes);
      const fault = jsonSizeFault(text);
      if (fault === null) return JSON.parse(text);
      throw this.unreadable(`its answer ${fault}`);
    } catch (error) {
      if (error instanceof InferenceFailed) throw error;
      throw this.unreadable("its answer is not JSON");
    }
  }

  /** The error to throw for an answer that breaks the protocol. */
  unreadable(rule: string): InferenceFailed {
    return this.#failure("invalid_response", `: ${rule}`);
  }

  async #addresses({ hostname }: URL, timeoutMs: number, signal: AbortSignal): Promise<readonly string[]> {
    const { world, resolve } = this.#context;
    const known = this.#resolved.get(hostname);
    const nowMs = world.monotonicMs();
    if (known && nowMs - known.atMs < RESOLUTION_VALID_MS) return known.addresses;
    const addresses = await operatorAddresses(hostname, {
      world,
      timeoutMs,
      signal,
      ...(resolve && { resolve }),
    });
    // A backend has one host, or two where the uploads of gemini have another one.
    if (this.#resolved.size >= HOSTS_MAX) this.#resolved.clear();
    this.#resolved.set(hostname, { addresses, atMs: nowMs });
    return addresses;
  }

  /** Reads at most `bytesMax` bytes. If `mustBeWhole`, a longer body is an error, else it is cut off. */
  async #readBody(
    body: PinnedBody,
    bytesMax: number,
    mustBeWhole: boolean,
  ): Promise<Uint8Array<ArrayBuffer>> {
    const chunks = await body.collect(bytesMax);
    const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0);
    if (length > bytesMax && mustBeWhole) {
      throw this.unreadable(`its answer is longer than ${bytesMax} bytes`);
    }
    if (length > bytesMax) chunks.pop();
    return joinedBytes(...chunks);
  }

  #refused(
    { status, headers }: Pick<PinnedResponse, "status" | "headers">,
    bytes: Uint8Array,
    exchange: Exchange,
  ): InferenceFailed {
    const text = new TextDecoder().decode(bytes);
    const askedMs = retryAfterMs(headers, this.#context.world.now()) ?? waitMsIn(text);
    const isQuotaSpent = status === 402 ||
      status === 429 && (askedMs === null ? QUOTA : SPENT).test(text);
    const words = serverWords(bytes, keysOf(exchange));
    return this.#failure("http_status", ` answered ${status}${words === null ? "" : `: ${words}`}`, {
      status,
      isQuotaSpent,
      retryAfterMs: askedMs,
    });
  }

  #failed(error: unknown): InferenceFailed {
    if (error instanceof RequestFailed && error.kind === "timeout") return this.#late();
    if (error instanceof RequestFailed || error instanceof AddressRefused) {
      return this.#failure("transport", ` cannot be reached: ${error.message}`);
    }
    throw error;
  }

  #late(): InferenceFailed {
    return this.#failure("deadline_missed", " did not answer in time");
  }

  #failure(
    failure: InferenceFailure,
    what: string,
    of: { status?: number; isQuotaSpent?: boolean; retryAfterMs?: number | null } = {},
  ): InferenceFailed {
    return new InferenceFailed(failure, `backend ${this.#name}${what}`, { ...of, provider: this.#kind });
  }
}

const STRICT_UTF8 = new TextDecoder("utf-8", { fatal: true });
/**
 * Words by which OpenAI and Google report in a 429 that the quota is used up. Where a quota comes back by
 * itself, the answer says when.
 */
const QUOTA = /insufficient_quota|\bquota\b|\bbilling\b/i;
const SPENT = /insufficient_quota/i;
/** The longest answer in bytes: far more than a model can write with its output tokens. */
const ANSWER_BYTES_MAX = 512 * 2 ** 10;
/** The longest list of models in bytes: some servers know thousands of them. */
const LIST_BYTES_MAX = 4 * 2 ** 20;
const REFUSAL_BYTES_MAX = 64 * 2 ** 10;
/**
 * Limits for a host that is switched off, which does not answer at all. They are short, to leave time for the
 * next backend.
 */
const RESOLVE_MS = 3_000;
const CONNECT_MS = 3_000;
const RESOLUTION_VALID_MS = 2_000;
const HOSTS_MAX = 8;

/** The keys that were sent, and must not come back in the words of an error. */
function keysOf({ url, headers: sent = {} }: Exchange): string[] {
  return [url.searchParams.get("key") ?? "", sent.authorization?.replace(/^Bearer /, "") ?? ""];
}

function errorIn(answer: unknown): object | null {
  if (typeof answer !== "object" || answer === null) return null;
  const { error, choices, candidates } = answer as Record<string, unknown>;
  if (candidates !== undefined) return null;
  const found = Array.isArray(choices) ? choices[0]?.error : error;
  return typeof found === "string" && found !== "" ? answer : typeof found === "object" ? found : null;
}
