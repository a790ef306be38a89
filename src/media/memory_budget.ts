/** The memory that all programs on recorded media and all probes may take together, shared between principals. */

import { type Permit, PermitQueue } from "../sharing/permit_queue.ts";
import type { Sleeper } from "../base/wait.ts";
import { LIMITS } from "../contract/limits.ts";
import { mediaFault } from "./media_fault.ts";
import { type MediaSize, type MediaWork, memoryBytes } from "./media_memory.ts";
import { processors } from "./tool_limits.ts";

const GIB = 2 ** 30;
/** So many decodes of 1080p of each processor have their place, of all kinds, and one of 8K. */
const DEFAULT_BYTES = 4 * GIB;
const DEFAULT_BYTES_PER_PROCESSOR = 1 * GIB;
/** Callers that may wait. Each has a place among the decodes, probes or extractions already, of which there are fewer. */
const WAITERS_MAX = 4096;
/** After so long a caller may ask again. */
const RETRY_SECONDS = 30;

export interface MemoryRequest {
  readonly principalKey?: string | undefined;
  readonly signal: AbortSignal;
  readonly work: MediaWork;
  /** Null where it is not known. */
  readonly size: MediaSize | null;
  /** Programs of this work at the same time; 1 unless given. */
  readonly programs?: number;
}

/** Reserved before a program starts, by the same number that the kernel then bounds it with. */
export class MemoryBudget implements Disposable {
  readonly #queue: PermitQueue;
  readonly #world: Sleeper;

  /** `bytes` is SERVICE_DECODE_MEMORY_BUDGET_BYTES. */
  constructor({ bytes, isShared, world }: {
    readonly bytes: number | undefined;
    readonly isShared: boolean;
    readonly world: Sleeper;
  }) {
    this.#world = world;
    this.#queue = new PermitQueue({
      limit: bytes ?? DEFAULT_BYTES + processors() * DEFAULT_BYTES_PER_PROCESSOR,
      waiterLimit: WAITERS_MAX,
      what: "bytes of memory for decodes",
      refusal: "provider_saturated",
      retryAfterSeconds: RETRY_SECONDS,
      isShared,
    });
  }

  /** Bytes that are reserved now. */
  get used(): number {
    return this.#queue.active;
  }

  /**
   * Waits for its turn, LIMITS.media.memoryWaitMs at most. Refuses (422 `source_uri`) what needs more than there is in all, and (503, with
   * a time to come back) what has waited too long.
   */
  async reserve({ principalKey, signal, work, size, programs = 1 }: MemoryRequest): Promise<Permit> {
    const amount = programs * memoryBytes(work, size, processors());
    const { limit } = this.#queue;
    if (amount > limit) {
      throw mediaFault(
        `decoding it may take ${amount} bytes of memory, and SERVICE_DECODE_MEMORY_BUDGET_BYTES allows ${limit}`,
      );
    }
    const within = { world: this.#world, timeoutMs: LIMITS.media.memoryWaitMs };
    return await this.#queue.acquire({ principalKey, signal, amount, within });
  }

  [Symbol.dispose](): void {
    this.#queue.close();
  }
}
