/** A table of what was made. */

import type { MadeVideo } from "./make.ts";

const COLUMNS = [
  "videos",
  "frames",
  "seconds",
  "cuts",
  "gradual",
  "flash",
  "freeze",
  "black",
  "repeat",
  "fault",
  "damage",
];

export function editTable(made: readonly MadeVideo[]): string {
  const rows = new Map<string, number[]>();
  const total = COLUMNS.map(() => 0);
  for (const { plan, frames, truth } of made) {
    const row = rows.get(plan.kind) ?? COLUMNS.map(() => 0);
    rows.set(plan.kind, row);
    const counts = [
      ...[1, frames, frames / plan.fps, truth.cuts.length, truth.gradual.length, truth.flashes.length],
      ...[
        truth.freezes.length,
        truth.black.length,
        truth.loops.length,
        truth.artifacts.length,
        truth.corruption.length,
      ],
    ];
    counts.forEach((count, column) => {
      row[column]! += count;
      total[column]! += count;
    });
  }
  const line = (name: string, cells: readonly (string | number)[]) =>
    name.padEnd(14) +
    cells.map((cell) => String(typeof cell === "number" ? Math.round(cell) : cell).padStart(8)).join("");
  return [
    line("kind", COLUMNS),
    ...[...rows].sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, row]) => line(name, row)),
    line("TOTAL", total),
  ].join("\n");
}
