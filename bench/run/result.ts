/** The result of a run of benchmarks: each figure beside its limit, medians with spread, and what else the
 * machine did.
 */

import { type Figure, median, ratiosOf } from "../support.ts";

/** The median of the rounds, with the least and the most. */
export interface Spread {
  readonly median: number;
  readonly least: number;
  readonly most: number;
}

/** A figure with all its rounds put together. */
export interface FigureResult extends Pick<Figure, "name" | "unit" | "better"> {
  /** The file that measured it, in bench. */
  readonly script: string;
  readonly rounds: number;
  readonly ours: Spread;
  readonly limit: ({ readonly name: string } & Spread) | null;
  /** The ratio of each round, ours over the limit; null without a limit. */
  readonly ratio: Spread | null;
}

export interface ScriptResult {
  readonly script: string;
  /** What went wrong; null when it ended well. */
  readonly fault: string | null;
  readonly seconds: number;
  /**
   * Processes that wanted a processor in the last minute, before it and after it; its own are in the second.
   */
  readonly load: readonly [before: number, after: number];
}

export interface BenchResult {
  /** When it was measured, such as `2026-11-23T08:00:00Z`. */
  readonly date: string;
  readonly machine: Machine;
  readonly isQuick: boolean;
  readonly scripts: readonly ScriptResult[];
  readonly figures: readonly FigureResult[];
}

export interface Machine {
  readonly processor: string;
  readonly processors: number;
  readonly memoryGb: number;
  readonly deno: string;
  readonly ffmpeg: string;
}

/**
 * Puts the rounds of figures of one name together, in the order in which they first came. Throws where two of
 * one name are not the same figure.
 */
export function figureResults(measured: readonly { script: string; figure: Figure }[]): FigureResult[] {
  const byName = Map.groupBy(measured, ({ figure }) => figure.name);
  return [...byName.values()].map((same) => {
    const [{ script, figure }] = same as [typeof same[number]];
    for (const other of same) {
      const isSame = other.script === script && other.figure.unit === figure.unit &&
        other.figure.better === figure.better && other.figure.limit?.name === figure.limit?.name;
      if (!isSame) throw new Error(`two figures are called ${figure.name}`);
    }
    const figures = same.map((one) => one.figure);
    return {
      script,
      name: figure.name,
      unit: figure.unit,
      better: figure.better,
      rounds: figures.reduce((sum, { ours }) => sum + ours.length, 0),
      ours: spreadOf(figures.flatMap(({ ours }) => ours)),
      limit: figure.limit && {
        name: figure.limit.name,
        ...spreadOf(figures.flatMap(({ limit }) => limit!.values)),
      },
      ratio: figure.limit && spreadOf(figures.flatMap(ratiosOf)),
    };
  });
}

/**
 * A result with those of other scripts of an earlier one, in the order of `order`: after a change that moves
 * a few figures, the others need not be measured again. Throws where they are not of the same kind of run, or
 * of another machine.
 */
export function mergedResults(
  earlier: BenchResult,
  result: BenchResult,
  order: readonly string[],
): BenchResult {
  const isSame = earlier.isQuick === result.isQuick &&
    JSON.stringify(earlier.machine) === JSON.stringify(result.machine);
  if (!isSame) throw new Error("the earlier result is of another machine or another kind of run");
  const ran = new Set(result.scripts.map(({ script }) => script));
  const sorted = <T extends { readonly script: string }>(before: readonly T[], after: readonly T[]): T[] =>
    [...before.filter(({ script }) => !ran.has(script)), ...after]
      .toSorted((a, b) => order.indexOf(a.script) - order.indexOf(b.script));
  return {
    ...result,
    scripts: sorted(earlier.scripts, result.scripts),
    figures: sorted(earlier.figures, result.figures),
  };
}

function spreadOf(numbers: readonly number[]): Spread {
  return {
    median: rounded(median(numbers)),
    least: rounded(Math.min(...numbers)),
    most: rounded(Math.max(...numbers)),
  };
}

/** A number with four digits: the others differ from round to round. */
function rounded(value: number): number {
  return Number(value.toPrecision(4));
}

/** What is known of the machine at hand. */
export async function machineAtHand(): Promise<Machine> {
  const processor = /^model name\s*:\s*(.*)$/m.exec(textOf("/proc/cpuinfo"))?.[1]?.trim() ?? Deno.build.arch;
  const ffmpeg = await new Deno.Command("ffmpeg", { args: ["-version"], stderr: "null" }).output()
    .then(
      ({ stdout }) => /^ffmpeg version (\d[\d.]*)/.exec(new TextDecoder().decode(stdout))?.[1],
      () => undefined,
    );
  return {
    processor,
    processors: navigator.hardwareConcurrency,
    memoryGb: Math.round(Deno.systemMemoryInfo().total / 2 ** 30),
    deno: Deno.version.deno,
    ffmpeg: ffmpeg ?? "unknown",
  };
}

function textOf(path: string): string {
  try {
    return Deno.readTextFileSync(path);
  } catch {
    return "";
  }
}
