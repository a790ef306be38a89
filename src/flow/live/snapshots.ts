/** Pictures of what a live session sees now: one a second at most is made, however many callers want it. */

import { unlessAborted, within } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { Snapshot } from "../../live/messages.ts";
import { LIMITS } from "../../contract/limits.ts";

export class Snapshots {
  readonly #options: { readonly world: World; readonly order: () => void };
  #newest: Snapshot | null = null;
  /** The next one, which was ordered. */
  #next: PromiseWithResolvers<Snapshot> | null = null;
  #waiting: Promise<Snapshot | null> | null = null;

  /** `order` asks the Worker for one. */
  constructor(options: { readonly world: World; readonly order: () => void }) {
    this.#options = options;
  }

  /** One whose frame came less than a second ago; null where no frame comes in time. */
  async newest(signal: AbortSignal): Promise<Snapshot | null> {
    if (this.#newest && this.#ageMs(this.#newest) < LIMITS.live.snapshotAgeMs) return this.#newest;
    return await unlessAborted(this.#waiting ??= this.#order(), signal);
  }

  /** The Worker has made one. */
  onSnapshot(snapshot: Snapshot): void {
    this.#newest = snapshot;
    this.#next?.resolve(snapshot);
  }

  async #order(): Promise<Snapshot | null> {
    const { world, order } = this.#options;
    this.#next = Promise.withResolvers();
    order();
    try {
      return await within(world, LIMITS.live.snapshotWaitMs, this.#next.promise);
    } catch {
      return null;
    } finally {
      this.#next = null;
      this.#waiting = null;
    }
  }

  #ageMs({ arrivedMs }: Snapshot): number {
    return this.#options.world.now() - arrivedMs;
  }
}
