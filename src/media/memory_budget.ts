/** The memory that all programs on recorded media and all probes may take together, shared between
 * principals.
 */

import { type Permit, PermitQueue } from "../sharing/permit_queue.ts";
import type { Sleeper } from "../base/wait.ts";
import { LIMITS } from "../contract/limits.ts";
import { mediaFault } from "./media_fault.ts";
import { type MediaSize, type MediaWork, memoryBytes } from "./media_memory.ts";
import { processors } from "./tool_limits.ts";

const GIB = 2 ** 30;
/**
 * The budget without a setting, with DEFAULT_BYTES_PER_PROCESSOR for each processor: room for the decodes of
 * 1080p of all kinds on each processor, and for one of 8K.
 */
const DEFAULT_BYTES = 4 * GIB;
const DEFAULT_BYTES_PER_PROCESSOR = 1 * GIB;
/**
 * Most callers that may wait. Each has a place among the decodes, probes or extractions already, and there
 * are fewer places.
 */
const WAITERS_MAX = 4096;
/** Seconds after which a refused caller may ask again. */
const RETRY_SECONDS = 30;

export interface MemoryRequest {
  readonly principalKey?: string | undefined;
  readonly signal: AbortSignal;
  readonly work: MediaWork;
  /** Size of the pictures; null where it is not known. */
  readonly size: MediaSize | null;
  /** Programs of this work at the same time; 1 unless given. */
  readonly programs?: number;
}

/**
 * The memory of all programs on media: reserved before a program starts, by the same number that the kernel
 * then bounds it with.
 */
export class MemoryBudget implements Disposable {
  readonly #queue: PermitQueue;
  readonly #world: Sleeper;

  /** Makes the budget; `bytes` is SERVICE_DECODE_MEMORY_BUDGET_BYTES. */
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
   * Waits for its turn, LIMITS.media.memoryWaitMs at most. Refuses (422 `source_uri`) what needs more than
   * there is in all, and (503, with a time to come back) what has waited too long.
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
