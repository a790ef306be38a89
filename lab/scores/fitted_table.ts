/** A table of what a fitted detector finds of what it was fitted on, and of sources that took no part. */

import { addCounts, type Counts, rates } from "./score.ts";

/** The table of what was found in sample and apart, both as counts for each kind of video. */
export function fittedTable(
  inSample: ReadonlyMap<string, Counts>,
  apart: ReadonlyMap<string, Counts>,
): string {
  const total = (counts: ReadonlyMap<string, Counts>) => [...counts.values()].reduce(addCounts);
  return [
    `${"kind".padEnd(24)} fitted  other sources   hits false missed`,
    ...[...apart.keys()].sort().map((kind) => line(kind, inSample.get(kind)!, apart.get(kind)!)),
    line("all", total(inSample), total(apart)),
  ].join("\n");
}

function line(name: string, fitted: Counts, other: Counts): string {
  const { hits, falseAlarms, misses } = other;
  return `${name.padEnd(24)} ${rates(fitted).f1.toFixed(3)}  ${rates(other).f1.toFixed(3).padEnd(14)}` +
    [hits, falseAlarms, misses].map((n) => `${n}`.padStart(6)).join("");
}
