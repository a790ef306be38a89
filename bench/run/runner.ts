/** Runs scripts of benchmarks one after the other, and collects their figures; one that fails or hangs does
 * not stop the others.
 */

import { fileURLToPath } from "node:url";
import { type Figure, FIGURES_FILE, load, TemporaryFolder } from "../support.ts";
import { type Compared, compared, isLost } from "./comparison.ts";
import { type BenchResult, figureResults, type ScriptResult } from "./result.ts";
import type { BenchScript } from "./scripts.ts";

export interface RunnerOptions {
  /** Where the scripts are; ends with a slash. */
  readonly folder: URL;
  readonly isQuick: boolean;
  /**
   * How often all scripts are run: what the machine does for some minutes then is not in one figure alone.
   */
  readonly passes: number;
  /** Longest run of one script. */
  readonly deadlineMs: number;
  readonly say: (line: string) => void;
}

export interface Measured {
  readonly scripts: readonly ScriptResult[];
  readonly figures: readonly { readonly script: string; readonly figure: Figure }[];
}

/** Runs each script once in every pass. */
export async function runScripts(scripts: readonly BenchScript[], options: RunnerOptions): Promise<Measured> {
  const results: ScriptResult[] = [];
  const figures: { script: string; figure: Figure }[] = [];
  for (let pass = 1; pass <= options.passes; pass++) {
    for (const script of scripts) {
      options.say(`\n== ${script.path}${options.passes > 1 ? `, pass ${pass} of ${options.passes}` : ""}`);
      const measured = await runScript(script, options);
      if (measured.result.fault !== null) options.say(`${script.path} failed: ${measured.result.fault}`);
      results.push(measured.result);
      figures.push(...measured.figures.map((figure) => ({ script: script.path, figure })));
    }
  }
  return { scripts: results, figures };
}

async function runScript(
  { path, quick }: BenchScript,
  { folder, isQuick, deadlineMs }: RunnerOptions,
): Promise<{ result: ScriptResult; figures: Figure[] }> {
  using temporary = new TemporaryFolder();
  const file = `${temporary.path}/figures`;
  Deno.writeTextFileSync(file, "");
  const before = load();
  const startedMs = performance.now();
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--quiet", fileURLToPath(new URL(path, folder)), ...(isQuick && quick ? quick : [])],
    env: { [FIGURES_FILE]: file },
    stdin: "null",
    stdout: "inherit",
    stderr: "inherit",
  }).spawn();
  let isLate = false;
  const timer = setTimeout(() => {
    isLate = true;
    child.kill("SIGKILL");
  }, deadlineMs);
  const { code, signal } = await child.status;
  clearTimeout(timer);
  const lines = linesOf(file);
  const fault = lines === null
    ? "the file of its figures is gone"
    : isLate
    ? `it took longer than ${deadlineMs / 1000} s`
    : code === 0
    ? null
    : signal === null
    ? `exit code ${code}`
    : `ended by ${signal}`;
  return {
    result: {
      script: path,
      fault,
      seconds: Math.round((performance.now() - startedMs) / 100) / 10,
      load: [before, load()],
    },
    figures: (lines ?? []).map((line) => JSON.parse(line)),
  };
}

/** The lines of a file; null where somebody removed it. */
function linesOf(file: string): string[] | null {
  try {
    return Deno.readTextFileSync(file).split("\n").filter((line) => line !== "");
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

/** How often a script is run again when a figure of it seems to be lost. */
const REPEATS = 2;

/**
 * The figures that are lost, each time again: a figure that seems so may only have had other work beside it,
 * so its script is repeated, and its best ratio counts.
 */
export async function lostFigures(
  before: BenchResult,
  result: Pick<BenchResult, "scripts" | "figures">,
  again: (scripts: readonly string[]) => Promise<Measured>,
): Promise<Compared[]> {
  let lost = compared(before, result).filter(isLost);
  for (let repeat = 0; repeat < REPEATS && lost.length > 0; repeat++) {
    const { scripts, figures } = await again([...new Set(lost.map(({ script }) => script))]);
    const best = new Map(
      compared(before, { scripts, figures: figureResults(figures) }).map((one) => [one.name, one]),
    );
    lost = lost.map((figure) => {
      const repeated = best.get(figure.name);
      return repeated && repeated.worse < figure.worse ? repeated : figure;
    }).filter(isLost);
  }
  return lost;
}
