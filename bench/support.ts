/** Shared parts of the benchmarks: a temporary folder, a world without log messages, percentiles, child
 * processes.
 */

import { fileURLToPath } from "node:url";
import type { Log } from "../src/base/log.ts";
import { realWorld, type World } from "../src/base/world.ts";

/** Where clips that take long to make are kept for the next time. */
export const CLIP_CACHE = fileURLToPath(new URL("bench-clips", toolsFolder()));

/** Folder of the tools, without symbolic links, as the service reads no clip through one. */
function toolsFolder(): URL {
  const folder = new URL("../.tools/", import.meta.url);
  try {
    return new URL(`${Deno.realPathSync(folder)}/`, folder);
  } catch {
    return folder;
  }
}

export class TemporaryFolder implements Disposable {
  readonly path = Deno.makeTempDirSync({ prefix: "service-bench-" });

  [Symbol.dispose](): void {
    try {
      Deno.removeSync(this.path, { recursive: true });
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
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

/**
 * What a script measured, beside what it is compared with. Only the ratio of the two says something on
 * another machine.
 */
export interface Figure {
  /**
   * Name of the figure, such as `http: health, requests`. It stays the same from run to run, as figures are
   * compared by it.
   */
  readonly name: string;
  /** Unit of the values, such as `ms`, `/s` or `MB`. */
  readonly unit: string;
  readonly better: "less" | "more";
  /** Values of each round, in their order; the rounds that warm up are left out. */
  readonly ours: readonly number[];
  /**
   * What bounds it, from the same rounds and in the same unit: a bare server, a bare decode, a bare write.
   * Null where there is nothing to compare with, so that no ratio is told.
   */
  readonly limit: { readonly name: string; readonly values: readonly number[] } | null;
}

/** The file to which `task bench` lets scripts append their figures, one as JSON on each line. */
export const FIGURES_FILE = "BENCH_FIGURES_FILE";

/** Prints a figure, and hands it to `task bench` when that runs this script. */
export function report(figure: Figure): void {
  console.log(figureLine(figure));
  const file = Deno.env.get(FIGURES_FILE);
  if (file !== undefined) Deno.writeTextFileSync(file, `${JSON.stringify(figure)}\n`, { append: true });
}

/**
 * A figure as a line, such as `http: health, requests 51200 /s (49800 to 52000), bare Deno.serve 80100: ratio
 * 0.64 (0.61 to 0.66)`.
 */
function figureLine({ name, unit, ours, limit }: Figure): string {
  const own = `${name.padEnd(50)} ${shortNumber(median(ours))} ${unit} (${rangeOf(ours)})`;
  if (limit === null) return own;
  const ratios = ratiosOf({ ours, limit });
  return `${own}, ${limit.name} ${shortNumber(median(limit.values))}: ratio ${shortNumber(median(ratios))} (${
    rangeOf(ratios)
  })`;
}

/** The ratio of each round, as both were measured one after the other. */
export function ratiosOf({ ours, limit }: Pick<Figure, "ours" | "limit">): number[] {
  if (limit === null) return [];
  if (limit.values.length !== ours.length) {
    throw new Error(`${ours.length} rounds beside ${limit.values.length} of ${limit.name}`);
  }
  return ours.map((value, round) => value / limit.values[round]!);
}

function rangeOf(numbers: readonly number[]): string {
  return `${shortNumber(Math.min(...numbers))} to ${shortNumber(Math.max(...numbers))}`;
}

/** A number with three digits, and all of those before the point: 0.0123, 1.23, 12.3, 12345. */
export function shortNumber(value: number): string {
  return Math.abs(value) >= 100 ? value.toFixed(0) : String(Number(value.toPrecision(3)));
}

/** How many milliseconds `work` takes. */
export async function timed(work: () => void | Promise<void>): Promise<number> {
  const startedMs = performance.now();
  await work();
  return performance.now() - startedMs;
}

/**
 * The CPU time of all that has run on the machine, or in the container, as the kernel counts it, in
 * milliseconds.
 */
export function machineCpuMs(): number {
  const [of1, of2] = ["/sys/fs/cgroup/cpuacct/cpuacct.usage", "/sys/fs/cgroup/cpu.stat"].map((path) => {
    try {
      return Deno.readTextFileSync(path);
    } catch {
      return null;
    }
  });
  if (of1) return Number(of1) / 1e6;
  const usage = /^usage_usec (\d+)$/m.exec(of2 ?? "")?.[1];
  if (usage === undefined) throw new Error("the kernel tells no CPU time of control groups");
  return Number(usage) / 1e3;
}

/**
 * Runs `script` in a process of its own, and returns the JSON line that it prints and its resident memory
 * (VmRSS), read while it still has the timeline open.
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

/** Milliseconds of processor time that a process has taken so far, all its threads together. */
export function cpuMs(pid: number): number {
  let nanoseconds = 0;
  for (const { name } of Deno.readDirSync(`/proc/${pid}/task`)) {
    try {
      nanoseconds += Number(Deno.readTextFileSync(`/proc/${pid}/task/${name}/schedstat`).split(" ")[0]);
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error; // a thread that has just ended
    }
  }
  return nanoseconds / 1e6;
}

/** How busy the machine was: the load of the last minute. */
export function load(): number {
  return Math.round(Deno.loadavg()[0]! * 10) / 10;
}

export function pause(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
