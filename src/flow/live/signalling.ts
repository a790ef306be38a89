/** What the publisher of a live session is answered: its offer, and each restart of ICE. */

import { Refusal, refuse } from "../../contract/refusal.ts";
import { within } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { ReportOf } from "../../live/messages/messages.ts";
import type { SessionOrder } from "../../live/worker_pool.ts";
import type { CandidateSender } from "../../model/live/candidate.ts";
import type { Caller } from "../caller.ts";

/** How long the Worker may take to answer an offer, or to restart ICE. */
const ANSWER_MS = 10_000;

export interface SignallingOptions {
  readonly world: World;
  readonly send: (order: SessionOrder) => void;
  /** Aborts when the session takes no more orders. */
  readonly signal: AbortSignal;
}

export class Signalling {
  readonly #options: SignallingOptions;
  readonly #answer = Promise.withResolvers<string>();
  readonly #restarts = new Map<number, PromiseWithResolvers<string | null>>();
  #restartCount = 0;

  constructor(options: SignallingOptions) {
    this.#options = options;
    this.#answer.promise.catch(() => {/* whoever waits in `answer` gets it */});
  }

  /**
   * The SDP answer to the offer. Errors: 503 where none comes in time or the session cannot start, 500 for a
   * fault of its Worker.
   */
  async answer(signal: AbortSignal): Promise<string> {
    try {
      return await within(this.#options.world, ANSWER_MS, this.#answer.promise, signal);
    } catch (error) {
      throw error instanceof Refusal
        ? error
        : refuse.because("provider_saturated", "no answer was found in time");
    }
  }

  candidate(fragment: string, { isOnLoopback }: CandidateSender): void {
    this.#options.send({ kind: "candidate", fragment, isOnLoopback });
  }

  /** The answering SDP fragment; null when the session cannot restart ICE. */
  async restartIce(fragment: string, { isOnLoopback, signal }: Caller): Promise<string | null> {
    const { world, send, signal: over } = this.#options;
    const orderId = ++this.#restartCount;
    const answer = Promise.withResolvers<string | null>();
    this.#restarts.set(orderId, answer);
    try {
      send({ kind: "restart_ice", fragment, isOnLoopback, orderId });
      return await within(world, ANSWER_MS, answer.promise, AbortSignal.any([signal, over]));
    } catch {
      return null;
    } finally {
      this.#restarts.delete(orderId);
    }
  }

  onAnswered({ answer }: ReportOf<"answered">): void {
    this.#answer.resolve(answer);
  }

  onRefused({ message }: ReportOf<"refused">): void {
    this.#answer.reject(refuse.because("internal_error", message));
  }

  onClosed(): void {
    this.#answer.reject(refuse.because("provider_saturated", "the session could not be started"));
  }

  onIceRestarted({ orderId, fragment }: ReportOf<"ice_restarted">): void {
    this.#restarts.get(orderId)?.resolve(fragment);
  }
}
