/** Permits for what takes much memory until its answer has gone. See docs/security/load.md#large-reads. */

import { PermitQueue } from "../sharing/permit_queue.ts";
import { Turns } from "../sharing/turns.ts";
import type { World } from "../base/world.ts";
import { LIMITS } from "../contract/limits.ts";
import type { Caller } from "./caller.ts";

export interface LargeReadsOptions {
  readonly world: Pick<World, "sleep">;
  /** Whether the service has several principals: then none has all permits. */
  readonly isShared: boolean;
}

/** After so long a refused caller may come back: an answer is seldom on its way for longer. */
const RETRY_SECONDS = 5;

export class LargeReads implements Disposable {
  readonly #world: Pick<World, "sleep">;
  readonly #decodes: PermitQueue;
  readonly #answers: PermitQueue;
  readonly #turns = new Turns();

  constructor({ world, isShared }: LargeReadsOptions) {
    this.#world = world;
    const common = {
      waiterLimit: LIMITS.read.waitingMax,
      isShared,
      refusal: "provider_saturated",
      retryAfterSeconds: RETRY_SECONDS,
    } as const;
    this.#decodes = new PermitQueue({
      ...common,
      limit: LIMITS.read.decodesMax,
      what: "reads of long decodes",
    });
    this.#answers = new PermitQueue({ ...common, limit: LIMITS.read.answersMax, what: "long answers" });
  }

  /**
   * Before the signals of a long decode are read. The permit comes back when the answer has gone. Errors:
   * 503.
   */
  async decode(caller: Caller): Promise<void> {
    await this.#hold(this.#decodes, caller);
  }

  /**
   * Before the second piece of an answer is written. The permit comes back when the answer has gone. Errors:
   * 503.
   */
  async answer(caller: Caller): Promise<void> {
    await this.#hold(this.#answers, caller);
  }

  /** Before the next piece of a long answer: the pieces of all of them are made one at a time. */
  nextPiece(): Promise<void> {
    return this.#turns.next();
  }

  /** Refuses those that wait. */
  [Symbol.dispose](): void {
    this.#decodes.close();
    this.#answers.close();
  }

  async #hold(permits: PermitQueue, caller: Caller): Promise<void> {
    const { principalKey, signal } = caller;
    const within = { world: this.#world, timeoutMs: LIMITS.read.waitMs };
    caller.holdUntilAnswered(await permits.acquire({ principalKey, signal, within }));
  }
}
