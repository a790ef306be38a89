/** What each kind of work may take of the machine when ffmpeg or ffprobe does it; `prlimit` enforces it. */

import { type MediaSize, type MediaWork, memoryBytes } from "./media_memory.ts";
import type { ResourceLimits } from "./process.ts";

const GIB = 2 ** 30;
const MIB = 2 ** 20;

/** Stack of each thread, bytes. All of it counts as memory that may be filled, however little is. */
const STACK_BYTES = 8 * MIB;
/**
 * Threads that ffmpeg usually has, most of which wait: some for its own parts, and one or two of decoder and
 * encoder for each processor.
 */
const THREADS = 16;
const THREADS_PER_PROCESSOR = 3;
/**
 * Bytes of addresses without memory behind them: libraries, and what the C library reserves for each thread.
 */
const ADDRESS_BYTES = 1 * GIB;
const ADDRESS_BYTES_PER_PROCESSOR = 256 * MIB;
/** Memory of small work, bytes: a few seconds of sound, or a list of what ffmpeg can do. */
const SMALL_BYTES = 512 * MIB;

/**
 * How many times longer a program that computes may take where others want the processors too. Its processor
 * time stays the same.
 */
export const BUSY_FACTOR = 6;

/**
 * The kinds of work that a tool is started for. Drivers of hardware reserve addresses for the memory of the
 * card and of the machine.
 */
export type ToolWork = MediaWork | "small" | "hardware";

/**
 * CPU time, in seconds, of a program that lives as long as its session, which may be days. It is no useful
 * limit: a decoder that loops is noticed much earlier by the watchdog of whoever started it. A program that
 * uses up a month is replaced like any other that ends.
 */
export const SESSION_CPU_SECONDS = 30 * 24 * 3600;

/**
 * The limits of one program. `cpuSeconds` counts all its threads; without `fileBytes` it may write no file.
 * `size` is the size of the pictures that it decodes, null where that is not known.
 */
export function toolLimits(
  work: ToolWork,
  { prlimit, cpuSeconds, fileBytes, size = null }: {
    readonly prlimit: string | null;
    readonly cpuSeconds: number;
    readonly fileBytes?: number | undefined;
    readonly size?: MediaSize | null;
  },
): ResourceLimits {
  const common = { prlimit, cpuSeconds, ...(fileBytes !== undefined && { fileBytes }) };
  if (work === "hardware") return common;
  const filled = work === "small" ? SMALL_BYTES : memoryBytes(work, size, processors());
  const stacks = STACK_BYTES * (THREADS + THREADS_PER_PROCESSOR * processors());
  const addresses = ADDRESS_BYTES + ADDRESS_BYTES_PER_PROCESSOR * processors();
  return {
    ...common,
    memory: {
      stackBytes: STACK_BYTES,
      dataBytes: filled + stacks,
      addressSpaceBytes: filled + stacks + addresses,
    },
  };
}

/**
 * Most threads that ffmpeg starts for each processor: every decoder, filter and encoder has up to one and a
 * half of them.
 */
const MOST_THREADS_PER_PROCESSOR = 8;
/**
 * Most threads that do not grow with the processors, such as the 64 of a decoder that splits its work as the
 * file says.
 */
const MOST_THREADS = 256;

/** How many threads may run in one cage, where the cage can bound them. */
export function threadsMax(): number {
  return MOST_THREADS + processors() * MOST_THREADS_PER_PROCESSOR;
}

export function processors(): number {
  return navigator.hardwareConcurrency;
}
