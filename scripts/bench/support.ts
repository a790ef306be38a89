/** Shared parts of the benchmarks: a temporary folder, a world without log messages, percentiles, child processes. */

import { fileURLToPath } from "node:url";
import type { Log } from "../../src/base/log.ts";
import { realWorld, type World } from "../../src/base/world.ts";

/** Where clips that take long to make are kept for the next time. */
export const CLIP_CACHE = fileURLToPath(new URL("../../.tools/bench-clips", import.meta.url));

export class TemporaryFolder implements Disposable {
  readonly path = Deno.makeTempDirSync({ prefix: "service-bench-" });

  [Symbol.dispose](): void {
    Deno.removeSync(this.path, { recursive: true });
  }
}

/** The real clock. Warnings and errors go to stderr, so that they are not overlooked. */
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

export function median(numbers: Iterable<number>): number {
  return percentile(numbers, 0.5);
}

/** The number at this share of the sorted ones: 0 is the least, 1 the largest; NaN of none. */
export function percentile(numbers: Iterable<number>, share: number): number {
  const sorted = Float64Array.from(numbers).sort();
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? NaN;
}

/** How many milliseconds `work` takes. */
export async function timed(work: () => void | Promise<void>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

/**
 * Runs `script` in a process of its own, and returns the JSON line that it prints and its resident memory (VmRSS), read
 * while it still has the timeline open.
 */
export async function measureInChild<T>(
  script: string,
  args: readonly string[],
): Promise<T & { readonly rssMb: number }> {
  const process = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--frozen=false", fileURLToPath(script), ...args],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const reader = process.stdout.getReader();
  const { value } = await reader.read();
  const measured = JSON.parse(new TextDecoder().decode(value));
  const rssKb = Number(/VmRSS:\s+(\d+)/.exec(Deno.readTextFileSync(`/proc/${process.pid}/status`))![1]);
  await process.stdin.close();
  await reader.cancel();
  // At its end it writes the snapshot that the next round opens.
  if (!(await process.status).success) throw new Error("the process that opens the timeline failed");
  return { ...measured, rssMb: rssKb / 1024 };
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
