/** Cross-validation by source: what judges a source was fitted without it. */

import assert from "node:assert/strict";
import type { CutRows, Label } from "../../lab/cuts/rows.ts";
import { cutsAmong, oddsApart } from "../../lab/cuts/validate.ts";
import { groupOf } from "../../lab/edits/files/origins.ts";

/** Origins in three different folds of three. */
const ORIGINS = [0, 1, 2].map((fold) =>
  Array.from({ length: 100 }, (_, n) => `film ${n}`).find((name) => groupOf(name, 3) === fold)!
);

/**
 * Rows by their description: for each one the origins before and after it, its only number, and its label.
 */
function rowsOf(
  rows: readonly (readonly [before: number, after: number, value: number, label: Label])[],
): CutRows {
  return {
    ...{ width: 1, kernelSum: "", origins: ORIGINS, values: Uint8Array.from(rows, ([, , value]) => value) },
    videos: [{
      ...{ name: "all", kind: "all", cuts: [], frames: rows.map((_, row) => 10 * row) },
      labels: rows.map(([, , , label]) => label),
      before: rows.map(([before]) => before),
      after: rows.map(([, after]) => after),
    }],
  };
}

Deno.test("a row is judged by trees that know neither the source before it nor the one after it", () => {
  const fifty = Array.from({ length: 50 }, (_, n) => n);
  // In the third source a large number is a cut, in the first and second ones it is none.
  const fittedOn = rowsOf([
    ...fifty.flatMap((n) => [[2, 2, 200 + n, 1], [2, 2, n, 0]] as const),
    ...[0, 1].flatMap((film) =>
      fifty.flatMap((n) => [[film, film, 200 + n, 0], [film, film, n, 1]] as const)
    ),
  ]);
  const odds = oddsApart(
    rowsOf([[0, 1, 220, 1], [1, 0, 20, 0], [2, 2, 220, 1], [2, 0, 220, 1]]),
    fittedOn,
    3,
  );
  assert.ok(odds[0]! > 0, "between the first and the second one the third one decides");
  assert.ok(odds[1]! < 0);
  assert.ok(odds[2]! < 0, "in the third one the others decide");
  assert.ok(odds[3]! < 0);
});

Deno.test("of candidates that are nearer than a shot only the surest is a cut", () => {
  assert.deepEqual(cutsAmong([5, 6, 9, 20], Float64Array.of(1, 2, 0.5, -1)), [6, 9]);
  assert.deepEqual(cutsAmong([5, 7, 30], Float64Array.of(1, 1, 0)), [5, 30]);
});
