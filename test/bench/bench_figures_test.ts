/** Figures of the benchmarks: their ratios, and how they reach the run of all benchmarks. */

import assert from "node:assert/strict";
import { FIGURES_FILE, ratiosOf, report, shortNumber } from "../../bench/support.ts";

const FIGURE = {
  name: "http: health",
  unit: "/s",
  better: "more",
  ours: [50, 60, 45],
  limit: { name: "bare", values: [100, 80, 90] },
} as const;

Deno.test("a ratio is that of one round, and a figure without a limit has none", () => {
  assert.deepEqual(ratiosOf(FIGURE), [0.5, 0.75, 0.5]);
  assert.deepEqual(ratiosOf({ ...FIGURE, limit: null }), []);
});

Deno.test("rounds that do not stand beside as many of the limit are no figure", () => {
  assert.throws(() => ratiosOf({ ...FIGURE, ours: [50, 60] }), /2 rounds beside 3 of bare/);
});

Deno.test("numbers have three digits, and all of those before the point", () => {
  for (
    const [value, text] of [[0.012345, "0.0123"], [1, "1"], [1.2345, "1.23"], [99.96, "100"], [
      12345.6,
      "12346",
    ], [
      -0.5,
      "-0.5",
    ]] as const
  ) {
    assert.equal(shortNumber(value), text);
  }
});

Deno.test("what a script reports is appended to the file that the run of all benchmarks names", () => {
  const file = Deno.makeTempFileSync();
  Deno.env.set(FIGURES_FILE, file);
  const print = console.log;
  const printed: string[] = [];
  console.log = (line: string) => printed.push(line);
  try {
    report(FIGURE);
    report({ ...FIGURE, name: "memory", limit: null });
  } finally {
    console.log = print;
    Deno.env.delete(FIGURES_FILE);
  }
  const lines = Deno.readTextFileSync(file).trim().split("\n").map((line) => JSON.parse(line));
  Deno.removeSync(file);
  assert.deepEqual(lines, [FIGURE, { ...FIGURE, name: "memory", limit: null }]);
  assert.match(printed[0]!, /^http: health +50 \/s \(45 to 60\), bare 90: ratio 0\.5 \(0\.5 to 0\.75\)$/);
  assert.match(printed[1]!, /^memory +50 \/s \(45 to 60\)$/);
});
