/** What the timeline benches share: a folder that goes away, a world without a log, and the middle of many rounds. */

import type { Log } from "../../src/base/log.ts";
import { realWorld, type World } from "../../src/base/world.ts";

export class TemporaryFolder implements Disposable {
  readonly path = Deno.makeTempDirSync({ prefix: "service-bench-" });

  [Symbol.dispose](): void {
    Deno.removeSync(this.path, { recursive: true });
  }
}

/** The real clock; warnings and errors go to stderr, so that a bench that meets one does not look fine. */
export function quietWorld(): World {
  const log: Log = {
    trace: () => {},
    debug: () => {},
    info: () => {},
    warn: (message, fields) => console.error(message, fields ?? ""),
    error: (message, fields) => console.error(message, fields ?? ""),
    child: () => log,
  };
  return realWorld(log);
}

export function median(numbers: readonly number[]): number {
  return numbers.toSorted((a, b) => a - b)[numbers.length >> 1]!;
}

/** Milliseconds that `work` takes. */
export async function timed(work: () => void | Promise<void>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}
