/** What live generations may hold together, memory and threads: reserved before one starts, or it never does. */

import type { Metrics } from "../../base/metrics.ts";
import type { World } from "../../base/world.ts";

export interface Reservation {
  readonly memoryBytes: number;
  readonly threads: number;
}

export interface MediaCapacityOptions {
  /** SERVICE_MEDIA_MEMORY_BUDGET_BYTES. */
  readonly memoryBudgetBytes: number;
  /** SERVICE_MEDIA_WORKER_THREAD_BUDGET. */
  readonly threadBudget: number;
  readonly metrics: Metrics;
  readonly world: Pick<World, "now">;
}

/** One budget is used up. */
export class CapacityExhausted extends Error {
  override readonly name = "CapacityExhausted";
}

export class MediaCapacity {
  readonly #options: MediaCapacityOptions;
  #memoryBytes = 0;
  #threads = 0;

  constructor(options: MediaCapacityOptions) {
    this.#options = options;
    const { metrics, memoryBudgetBytes, threadBudget } = options;
    metrics.set("service_media_capacity_memory_limit_bytes", memoryBudgetBytes);
    metrics.set("service_media_capacity_worker_thread_limit", threadBudget);
    metrics.read("service_media_capacity_memory_reserved_bytes", () => this.#memoryBytes);
    metrics.read("service_media_capacity_worker_threads_reserved", () => this.#threads);
  }

  /** Both or nothing; given back by disposing it, once. Throws {@link CapacityExhausted}. */
  reserve({ memoryBytes, threads }: Reservation): Disposable {
    const { memoryBudgetBytes, threadBudget } = this.#options;
    if (this.#memoryBytes + memoryBytes > memoryBudgetBytes) {
      throw this.#exhausted(
        `it needs ${memoryBytes} bytes and ${memoryBudgetBytes - this.#memoryBytes} are left`,
      );
    }
    if (this.#threads + threads > threadBudget) {
      throw this.#exhausted(`it needs ${threads} threads and ${threadBudget - this.#threads} are left`);
    }
    this.#memoryBytes += memoryBytes;
    this.#threads += threads;
    let isHeld = true;
    return {
      [Symbol.dispose]: () => {
        if (!isHeld) return;
        isHeld = false;
        this.#memoryBytes -= memoryBytes;
        this.#threads -= threads;
      },
    };
  }

  #exhausted(why: string): CapacityExhausted {
    const { metrics, world } = this.#options;
    metrics.add("service_media_capacity_rejections_total");
    metrics.set("service_media_capacity_last_rejection_timestamp_seconds", Math.floor(world.now() / 1000));
    return new CapacityExhausted(`Cannot start a live generation: ${why}`);
  }
}
