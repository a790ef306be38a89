/** Compares the ratios of a run of benchmarks with earlier ones. */

import type { BenchResult, FigureResult } from "./result.ts";

/**
 * How many times worse a figure is that is lost: it has less than two thirds of what it had. A figure that
 * differed more than that from round to round even then is lost where it is worse than in the worst of those
 * rounds.
 */
export const LOST_AT = 1.5;

export interface Compared {
  readonly name: string;
  readonly script: string;
  /** The ratio to the limit, before and in this run; null where this run has none. */
  readonly before: number;
  readonly ratio: number | null;
  /** How many times worse the ratio is: below 1 it is better; infinite where this run has none. */
  readonly worse: number;
  /** Whether it is worse than in any round before. */
  readonly isWorst: boolean;
}

/**
 * All figures with a ratio that the scripts of this run had measured before. A figure that its script does
 * not measure any more is infinitely worse, so that none disappears unseen.
 */
export function compared(before: BenchResult, result: Pick<BenchResult, "scripts" | "figures">): Compared[] {
  const ran = new Set(result.scripts.filter(({ fault }) => fault === null).map(({ script }) => script));
  const measured = new Map(result.figures.map((figure) => [figure.name, figure]));
  return before.figures.flatMap(({ name, script, better, ratio }) => {
    if (ratio === null || !ran.has(script)) return [];
    const after = measured.get(name)?.ratio?.median ?? null;
    const worst = better === "more" ? ratio.least : ratio.most;
    return [{
      ...{ name, script, before: ratio.median, ratio: after },
      worse: timesWorse(better, ratio.median, after),
      isWorst: timesWorse(better, worst, after) > 1,
    }];
  });
}

export function isLost({ worse, isWorst }: Compared): boolean {
  return worse > LOST_AT && isWorst;
}

function timesWorse(better: FigureResult["better"], before: number, after: number | null): number {
  // A ratio that is no positive number says that something was not measured.
  if (after === null || !(after > 0) || !Number.isFinite(after)) return Infinity;
  return better === "more" ? before / after : after / before;
}

/** A comparison as a line, such as `http: health: ratio 0.41, was 0.68: 1.66 times worse`. */
export function comparisonLine({ name, before, ratio, worse }: Compared): string {
  if (ratio === null) return `${name}: not measured any more, was ${before}`;
  const change = worse > 1 ? `${worse.toFixed(2)} times worse` : `${(1 / worse).toFixed(2)} times as good`;
  return `${name}: ratio ${ratio}, was ${before}: ${change}`;
}
