/** What each kind of work may take of the machine when ffmpeg or ffprobe does it; `prlimit` enforces it. */

import type { ResourceLimits } from "./process.ts";

const GIB = 2 ** 30;
const MIB = 2 ** 20;

/** Address space, which is more than the memory in use: every thread reserves a stack and an allocation arena. */
interface AddressSpace {
  readonly bytes: number;
  /** More for each processor, where ffmpeg starts a thread on each. */
  readonly bytesPerProcessor: number;
}

const ADDRESS_SPACE = {
  /** Probing and decoding a file: 4K takes 0.7 GiB on two processors. */
  decode: { bytes: 8 * GIB, bytesPerProcessor: 256 * MIB },
  /** Decoding on hardware, whose drivers reserve addresses for the memory of the card and of the machine. */
  hardware: { bytes: 1024 * GIB, bytesPerProcessor: 0 },
  /** Cutting a window out of a file: decoding and encoding 4K take 1.5 GiB on two processors. */
  window: { bytes: 8 * GIB, bytesPerProcessor: 256 * MIB },
  /** Decoding a live stream, on one thread: 4K takes 0.5 GiB. */
  live: { bytes: 4 * GIB, bytesPerProcessor: 0 },
  /** One JPEG encoder of a live Worker, on one thread. */
  jpeg: { bytes: 2 * GIB, bytesPerProcessor: 0 },
  /** A few seconds of Opus. */
  audio: { bytes: 2 * GIB, bytesPerProcessor: 0 },
  /** Listing what ffmpeg can do. */
  query: { bytes: 2 * GIB, bytesPerProcessor: 0 },
} as const satisfies Record<string, AddressSpace>;

/** A program that computes takes so many times longer at most where others want the processors too. Its processor time stays the same. */
export const BUSY_FACTOR = 6;

/** The kinds of work that a tool is started for. */
export type ToolWork = keyof typeof ADDRESS_SPACE;

/**
 * CPU time, in seconds, of a program that lives as long as its session, which may be days. It is no useful limit: a decoder
 * that loops is noticed much earlier by the watchdog of whoever started it. A program that uses up a month is replaced
 * like any other that ends.
 */
export const SESSION_CPU_SECONDS = 30 * 24 * 3600;

/** The limits of one program. `cpuSeconds` counts all its threads; without `fileBytes` it may write no file. */
export function toolLimits(
  work: ToolWork,
  { prlimit, cpuSeconds, fileBytes }: {
    readonly prlimit: string | null;
    readonly cpuSeconds: number;
    readonly fileBytes?: number | undefined;
  },
): ResourceLimits {
  const { bytes, bytesPerProcessor } = ADDRESS_SPACE[work];
  return {
    prlimit,
    cpuSeconds,
    addressSpaceBytes: bytes + processors() * bytesPerProcessor,
    ...(fileBytes !== undefined && { fileBytes }),
  };
}

/** What ffmpeg starts of its own: each of a decoder, a filter and an encoder has up to one and a half threads for each processor. */
const THREADS_PER_PROCESSOR = 8;
/** And those that do not grow with the processors, such as the 64 of a decoder that splits its work as the file says. */
const THREADS = 256;

/** How many threads may run in one cage, where the cage can bound them. */
export function threadsMax(): number {
  return THREADS + processors() * THREADS_PER_PROCESSOR;
}

export function processors(): number {
  return navigator.hardwareConcurrency;
}
