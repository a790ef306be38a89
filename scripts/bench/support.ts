/** What the timeline benches share: a folder that goes away, a world without a log, and the middle of many rounds. */

import { fileURLToPath } from "node:url";
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

/** Memory is read from outside, while the child still holds the timeline. */
export async function toldByChild<T>(
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
  const told = JSON.parse(new TextDecoder().decode(value));
  const rssKb = Number(/VmRSS:\s+(\d+)/.exec(Deno.readTextFileSync(`/proc/${process.pid}/status`))![1]);
  await process.stdin.close();
  await reader.cancel();
  // Its end includes the snapshot that the next round opens.
  if (!(await process.status).success) throw new Error("the process that opens the timeline failed");
  return { ...told, rssMb: rssKb / 1024 };
}
