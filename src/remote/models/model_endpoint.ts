/** The HTTP side of one model backend: requests to a URL that the operator has named, answers of bounded length. */

import { joinedBytes } from "../../base/bytes.ts";
import { InferenceFailed, type InferenceFailure, type ProviderKind } from "../../model/infer/inference.ts";
import { AddressRefused, operatorAddresses } from "../guard/address_guard.ts";
import type { Backend, BackendContext } from "./backend.ts";
import { type PinnedBody, pinnedRequest } from "../guard/pinned_request.ts";
import { RequestFailed } from "../guard/request_failed.ts";

export interface Exchange {
  readonly method: "GET" | "POST" | "PUT" | "DELETE";
  /** With its query; no fault and no log ever shows it, as it may carry a key. */
  readonly url: URL;
  readonly headers?: Readonly<Record<string, string>>;
  readonly body?: Uint8Array;
  readonly timeoutMs: number;
  readonly signal: AbortSignal;
}

export interface ExchangeAnswer {
  readonly headers: Headers;
  readonly bytes: Uint8Array<ArrayBuffer>;
}

/**
 * Connects to whatever the host of the URL resolves to, private networks included, straight and without redirects, so
 * that a key reaches nobody else. A name is looked up again after two seconds or a failure.
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

  /** An answer of 2xx, whole. Errors: `InferenceFailed`, or the reason of the signal. */
  async exchange(exchange: Exchange): Promise<ExchangeAnswer> {
    const { world, agent } = this.#context;
    const { url, method, headers = {}, body, timeoutMs, signal } = exchange;
    const endMs = world.monotonicMs() + timeoutMs;
    signal.throwIfAborted();
    if (timeoutMs <= 0) throw this.#late();
    try {
      const addresses = await this.#addresses(url, Math.min(timeoutMs, RESOLVE_MS), signal);
      const answer = await pinnedRequest({
        world,
        agent,
        url,
        addresses,
        method,
        headers: { accept: "application/json", "accept-encoding": "identity", ...headers },
        ...(body && { body }),
        connectTimeoutMs: CONNECT_MS,
        timeoutMs: Math.max(1, endMs - world.monotonicMs()),
        signal,
      });
      const isGood = answer.status >= 200 && answer.status < 300;
      const bytes = await this.#whole(answer.body, isGood ? ANSWER_BYTES_MAX : REFUSAL_BYTES_MAX, isGood);
      if (isGood) return { headers: answer.headers, bytes };
      throw this.#refused(answer.status, bytes);
    } catch (error) {
      if (error instanceof InferenceFailed) throw error;
      signal.throwIfAborted();
      this.#resolved.delete(url.hostname);
      throw this.#failed(error);
    }
  }

  /** An answer of 2xx as JSON. Errors: as for `exchange`, and `invalid_response`. */
  async json(exchange: Exchange): Promise<unknown> {
    const { bytes } = await this.exchange(exchange);
    return this.parsed(bytes);
  }

  /** Errors: `invalid_response`. */
  parsed(bytes: Uint8Array): unknown {
    try {
      return JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
    } catch {
      throw this.unreadable("its answer is not JSON");
    }
  }

  /** To throw when an answer is not what the protocol says. */
  unreadable(rule: string): InferenceFailed {
    return this.#failure("invalid_response", `: ${rule}`);
  }

  async #addresses({ hostname }: URL, timeoutMs: number, signal: AbortSignal): Promise<readonly string[]> {
    const { world, resolve } = this.#context;
    const known = this.#resolved.get(hostname);
    const nowMs = world.monotonicMs();
    if (known && nowMs - known.atMs < RESOLVED_FOR_MS) return known.addresses;
    const addresses = await operatorAddresses(hostname, {
      world,
      timeoutMs,
      signal,
      ...(resolve && { resolve }),
    });
    // A backend has one host, and gemini's uploads may have a second one.
    if (this.#resolved.size >= HOSTS_MAX) this.#resolved.clear();
    this.#resolved.set(hostname, { addresses, atMs: nowMs });
    return addresses;
  }

  /** What is longer than `bytesMax` is a fault, or cut off where nobody reads it to the end. */
  async #whole(body: PinnedBody, bytesMax: number, isAll: boolean): Promise<Uint8Array<ArrayBuffer>> {
    const chunks: Uint8Array[] = [];
    let length = 0;
    for await (const chunk of body) {
      length += chunk.length;
      if (length > bytesMax) {
        if (isAll) throw this.unreadable(`its answer is longer than ${bytesMax} bytes`);
        break;
      }
      chunks.push(chunk);
    }
    return joinedBytes(...chunks);
  }

  #refused(status: number, bytes: Uint8Array): InferenceFailed {
    const isQuotaSpent = status === 402 || (status === 429 && QUOTA.test(new TextDecoder().decode(bytes)));
    return this.#failure("http_status", ` answered ${status}`, { status, isQuotaSpent });
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
    of: { status?: number; isQuotaSpent?: boolean } = {},
  ): InferenceFailed {
    return new InferenceFailed(failure, `backend ${this.#name}${what}`, { ...of, provider: this.#kind });
  }
}

/** How OpenAI and Google say that there is nothing left to use. */
const QUOTA = /insufficient_quota|\bquota\b|\bbilling\b/i;
/** Far more than any model writes in the tokens that it gets. */
const ANSWER_BYTES_MAX = 4 * 2 ** 20;
const REFUSAL_BYTES_MAX = 64 * 2 ** 10;
/** A host that is switched off says nothing at all: this leaves time for the next backend. */
const RESOLVE_MS = 3_000;
const CONNECT_MS = 3_000;
const RESOLVED_FOR_MS = 2_000;
const HOSTS_MAX = 8;
