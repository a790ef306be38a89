/** Gives memory back that a start leaves behind: objects that nobody holds, and compiled code that ran once. */

import { type Sleeper, timer } from "./base/wait.ts";

/** Of the engine, where the process was started with `--expose-gc`; see `clean_process.ts`. */
type Collect = (options: { type: "major"; execution: "sync"; flavor: "last-resort" }) => void;

/** Stops this thread, after a start for about 0.1 s. Does nothing where the engine does not offer it. */
export function giveBackMemory(): void {
  const { gc } = globalThis as { gc?: Collect };
  gc?.({ type: "major", execution: "sync", flavor: "last-resort" });
}

/** Calls `then` once, after the first `windowMs` in which `count` did not change. Disposing it ends the wait. */
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
