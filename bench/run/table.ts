/** The table of a run of benchmarks, in Markdown. */

import { code, table } from "../../scripts/docs/markdown.ts";
import { shortNumber } from "../support.ts";
import type { BenchResult, FigureResult, Spread } from "./result.ts";

/**
 * The table: when, where and beside what else it was measured, then a row for each figure; those without a
 * ratio come after.
 */
export function markdownOf(result: BenchResult): string {
  const withRatio = result.figures.filter(({ ratio }) => ratio !== null);
  const others = result.figures.filter(({ ratio }) => ratio === null);
  const faults = result.scripts.filter(({ fault }) => fault !== null);
  return [
    heading(result),
    ...(faults.length > 0
      ? [faults.map(({ script, fault }) => `- ${code(script)} failed: ${fault}`).join("\n")]
      : []),
    table(
      ["Figure", "Ratio (least to most)", "Better", "Measured here", "Limit, here", "Rounds", "Script"],
      withRatio.map(ratioRow),
    ),
    ...(others.length > 0
      ? [
        "Without a limit to compare with, so for this machine only:",
        table(
          ["Figure", "Measured here (least to most)", "Better", "Rounds", "Script"],
          others.map(({ name, ours, unit, better, rounds, script }) => [
            ...[name, `${shown(ours)} ${unit}`, better, String(rounds), code(script)],
          ]),
        ),
      ]
      : []),
  ].join("\n\n");
}

function heading({ date, machine, scripts, isQuick }: BenchResult): string {
  const { processor, processors, memoryGb, deno, ffmpeg } = machine;
  const loads = scripts.flatMap(({ load }) => load);
  const span = loads.length > 0
    ? `load ${Math.min(...loads).toFixed(1)} to ${
      Math.max(...loads).toFixed(1)
    } (of the last minute, the benchmarks included)`
    : "load unknown";
  return `${date.slice(0, 10)}${
    isQuick ? ", with few rounds" : ""
  }: ${processors} processors (${processor}), ${memoryGb} GB, ` +
    `Deno ${deno}, ffmpeg ${ffmpeg}; ${span}.`;
}

function ratioRow({ name, ratio, better, ours, limit, unit, rounds, script }: FigureResult): string[] {
  return [
    name,
    shown(ratio!),
    better,
    `${shortNumber(ours.median)} ${unit}`,
    `${shortNumber(limit!.median)} ${unit}, ${limit!.name}`,
    String(rounds),
    code(script),
  ];
}

/** A spread as text: `0.64 (0.61 to 0.66)`, or `0.64` of one round. */
function shown({ median, least, most }: Spread): string {
  return least === most
    ? shortNumber(median)
    : `${shortNumber(median)} (${shortNumber(least)} to ${shortNumber(most)})`;
}
