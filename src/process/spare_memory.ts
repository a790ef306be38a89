/** Gives memory back: what a start leaves behind, and what the C library keeps after a peak. */

import { type Sleeper, timer } from "../base/wait.ts";

/**
 * The engine's collector, where the process was started with `--expose-gc`; see `process/clean_process.ts`.
 */
type Collect = (options: { type: "major"; execution: "sync"; flavor: "last-resort" }) => void;

/** Stops this thread, after a start for about 0.1 s. Does nothing where the engine does not offer it. */
export function giveBackMemory(): void {
  const { gc } = globalThis as { gc?: Collect };
  gc?.({ type: "major", execution: "sync", flavor: "last-resort" });
}

/**
 * Calls `then` once, after the first `windowMs` in which `count` did not change. Disposing it ends the wait.
 */
export function onceQuiet(
  world: Sleeper,
  { windowMs, count, then }: {
    readonly windowMs: number;
    readonly count: () => number;
    readonly then: () => void;
  },
): Disposable {
  let before = count();
  let waiting = timer(world, windowMs, look);
  return { [Symbol.dispose]: () => waiting[Symbol.dispose]() };

  function look(): void {
    const now = count();
    if (now === before) return then();
    before = now;
    waiting = timer(world, windowMs, look);
  }
}

/**
 * From one trim to the next. Each takes a few milliseconds, and some 35 MB come back where four cameras are
 * watched, of which most are needed again soon.
 */
const TRIM_EVERY_MS = 30_000;

/**
 * Gives pages back, again and again, in which the C library keeps nothing: it would otherwise keep those
 * below the last piece that is in use for good, so that each peak made the process larger. For the thread
 * that may use native code; `trim` is glibc's unless given.
 */
export function keepTrimmed(world: Sleeper, trim: (() => void) | null = openTrim()): Disposable {
  let waiting: Disposable | undefined;
  wait();
  return { [Symbol.dispose]: () => waiting?.[Symbol.dispose]() };

  function wait(): void {
    if (trim === null) return;
    waiting = timer(world, TRIM_EVERY_MS, () => {
      trim();
      wait();
    });
  }
}

/**
 * Finds the C library's `malloc_trim`; null where native code may not be used, or is not that of Linux with
 * glibc. The library stays loaded: it is part of every process.
 */
function openTrim(): (() => void) | null {
  if (Deno.build.os !== "linux" || Deno.permissions.querySync({ name: "ffi" }).state !== "granted") {
    return null;
  }
  try {
    const { symbols } = Deno.dlopen("libc.so.6", {
      malloc_trim: { parameters: ["usize"], result: "i32" },
    });
    return () => void symbols.malloc_trim(0n);
  } catch {
    return null; // another C library
  }
}
