/** Posts signed bodies to the URL of one webhook, at checked addresses only, and says why an attempt failed.
 */

import { retryAfterMs } from "../base/retry_after.ts";
import type { World } from "../base/world.ts";
import { LIMITS } from "../contract/limits.ts";
import { AddressRefused, checkedTarget, type Resolve } from "./guard/address_guard.ts";
import type { PinnedAgent } from "./guard/pinned_agent.ts";
import { pinnedRequest, type PinnedResponse } from "./guard/pinned_request.ts";
import { RequestFailed } from "./guard/request_failed.ts";

export interface WebhookSenderOptions {
  readonly world: World;
  readonly agent: PinnedAgent;
  /** SERVICE_WEBHOOK_TIMEOUT_MS: the time for one attempt. */
  readonly timeoutMs: number;
  /** SERVICE_ALLOW_PRIVATE_WEBHOOKS. See docs/security/sources.md#outbound-addresses. */
  readonly allowPrivate: boolean;
  /** Looks up host names; the system's resolver unless given. */
  readonly resolve?: Resolve;
}

/**
 * The result of one attempt: undefined when the receiver accepted the event, else the reason of the failure.
 */
export type SendFault = undefined | {
  readonly error: string;
  /** How long a receiver that is busy wants no attempt. */
  readonly retryAfterMs?: number;
  /** Whether the receiver answered 410: it wants no more events. */
  readonly isGone?: true;
};

/**
 * Posts to one URL. The addresses of its host are checked before every attempt. Addresses that were checked
 * less than two seconds ago, and have answered since, are not checked again, so that a fast series of
 * deliveries does not ask the resolver each time. That is safe: connections go to the checked addresses only,
 * even if the name has got other addresses since. After a failure the name is looked up again.
 */
export class WebhookSender {
  readonly #url: URL;
  readonly #options: WebhookSenderOptions;
  #checked: { readonly addresses: readonly string[]; readonly atMs: number } | undefined;

  constructor(url: string, options: WebhookSenderOptions) {
    this.#url = new URL(url);
    this.#options = options;
  }

  /**
   * Makes one attempt, of at most the given time in total. It uses no proxy, and every answer that is not 2xx
   * is a failure, redirects included. Throws only the reason of `signal`. See docs/events/webhooks.md.
   */
  async post(
    headers: Readonly<Record<string, string>>,
    body: Uint8Array,
    signal: AbortSignal,
  ): Promise<SendFault> {
    const { world, agent, timeoutMs } = this.#options;
    const startedMs = world.monotonicMs();
    const leftMs = () => timeoutMs - (world.monotonicMs() - startedMs);
    try {
      const addresses = await this.#addresses(leftMs(), signal);
      const request = { world, agent, url: this.#url, addresses, method: "POST", headers, body, signal };
      const answer = await pinnedRequest({ ...request, isSentOnce: true, timeoutMs: Math.max(1, leftMs()) });
      const fault = await faultOfAnswer(answer, world.now());
      if (fault !== undefined) this.#checked = undefined;
      return fault;
    } catch (error) {
      signal.throwIfAborted();
      this.#checked = undefined;
      return faultOf(error);
    }
  }

  async #addresses(timeoutMs: number, signal: AbortSignal): Promise<readonly string[]> {
    const { world, allowPrivate, resolve } = this.#options;
    const nowMs = world.monotonicMs();
    if (this.#checked && nowMs - this.#checked.atMs < CHECK_VALID_MS) return this.#checked.addresses;
    const guard = { world, allowPrivate, timeoutMs, signal, ...(resolve && { resolve }) };
    const addresses = await checkedTarget(this.#url, guard);
    this.#checked = { addresses, atMs: nowMs };
    return addresses;
  }
}

const CHECK_VALID_MS = 2_000;
/**
 * The longest answer in bytes that is read to its end although it is ignored, so that the connection can be
 * used again.
 */
const DRAINED_BYTES_MAX = 64 * 1024;

async function faultOfAnswer({ status, headers, body }: PinnedResponse, nowMs: number): Promise<SendFault> {
  await body.drain(DRAINED_BYTES_MAX);
  if (status >= 200 && status < 300) return undefined;
  const isBusy = status === 429 || status === 503;
  return {
    error: `webhook returned HTTP ${status}`,
    ...(isBusy && { retryAfterMs: retryAfterMs(headers, nowMs) ?? 0 }),
    ...(status === 410 && { isGone: true }),
  };
}

function faultOf(error: unknown): NonNullable<SendFault> {
  if (error instanceof RequestFailed) return { error: `webhook cannot be reached: ${error.message}` };
  if (error instanceof AddressRefused) return { error: `webhook host is refused: ${error.message}` };
  throw error;
}

/**
 * Checks a target before it is registered: throws `AddressRefused` unless every address of the URL's host may
 * be called.
 */
export async function checkWebhookTarget(
  url: string,
  options: Pick<WebhookSenderOptions, "world" | "allowPrivate" | "resolve">,
  signal: AbortSignal,
): Promise<void> {
  const { world, allowPrivate, resolve } = options;
  const timeoutMs = LIMITS.webhook.resolveTimeoutMs;
  await checkedTarget(new URL(url), { world, allowPrivate, timeoutMs, signal, ...(resolve && { resolve }) });
}
