/** The run of all benchmarks: what it makes of their figures, what counts as lost, and scripts that fail or
 * hang.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import { compared, comparisonLine, isLost } from "../../bench/run/comparison.ts";
import { type BenchResult, figureResults, machineAtHand, mergedResults } from "../../bench/run/result.ts";
import { lostFigures, type Measured, type RunnerOptions, runScripts } from "../../bench/run/runner.ts";
import { type BenchScript, chosenScripts, SCRIPTS } from "../../bench/run/scripts.ts";
import { markdownOf } from "../../bench/run/table.ts";
import type { Figure } from "../../bench/support.ts";
import { TemporaryFolder } from "../support/folders.ts";

/** A figure of script `a.ts`, with a limit of 100 in each round. */
function figure(
  name: string,
  ours: readonly number[],
  better: Figure["better"] = "more",
): Measured["figures"][0] {
  const limit = { name: "bare", values: ours.map(() => 100) };
  return { script: "a.ts", figure: { name, unit: "/s", better, ours, limit } };
}

function result(
  figures: Measured["figures"],
  scripts: BenchResult["scripts"] = [ended("a.ts")],
): BenchResult {
  const machine = { processor: "A|B", processors: 2, memoryGb: 8, deno: "2.9.6", ffmpeg: "5.1" };
  return { date: "2026-11-23T08:00:00Z", machine, isQuick: false, scripts, figures: figureResults(figures) };
}

function ended(script: string, fault: string | null = null): BenchResult["scripts"][0] {
  return { script, fault, seconds: 1.5, load: [0.5, 2.25] };
}

Deno.test("rounds of several passes are one figure, with the median of their ratios", () => {
  const { figures } = result([figure("health", [50, 70]), figure("state", [30]), figure("health", [60])]);
  assert.deepEqual(figures.map(({ name, rounds, ours, ratio }) => ({ name, rounds, ours, ratio })), [
    {
      name: "health",
      rounds: 3,
      ours: { median: 60, least: 50, most: 70 },
      ratio: { median: 0.6, least: 0.5, most: 0.7 },
    },
    {
      name: "state",
      rounds: 1,
      ours: { median: 30, least: 30, most: 30 },
      ratio: { median: 0.3, least: 0.3, most: 0.3 },
    },
  ]);
});

Deno.test("figures of scripts that were not run again are kept, in the order of the scripts", () => {
  const of = (script: string, name: string, ours: number) => ({ ...figure(name, [ours]), script });
  const earlier = result([
    of("a.ts", "a", 10),
    of("b.ts", "b", 20),
    of("b.ts", "gone", 20),
    of("c.ts", "c", 30),
  ], [
    ...["a.ts", "b.ts", "c.ts"].map((script) => ended(script)),
  ]);
  const again = result([of("b.ts", "b", 25)], [ended("b.ts", "exit code 1")]);
  const { scripts, figures } = mergedResults(earlier, again, ["a.ts", "b.ts", "c.ts"]);
  assert.deepEqual(scripts.map(({ script, fault }) => [script, fault]), [
    ["a.ts", null],
    ["b.ts", "exit code 1"],
    ["c.ts", null],
  ]);
  assert.deepEqual(figures.map(({ name, ratio }) => [name, ratio!.median]), [["a", 0.1], ["b", 0.25], [
    "c",
    0.3,
  ]]);
  assert.throws(() => mergedResults({ ...earlier, isQuick: true }, again, []), /another kind of run/);
  const machine = { ...earlier.machine, processors: 64 };
  assert.throws(() => mergedResults({ ...earlier, machine }, again, []), /another machine/);
});

Deno.test("two different figures of one name are a fault of the scripts", () => {
  const other = { ...figure("health", [50]), script: "b.ts" };
  assert.throws(() => figureResults([figure("health", [50]), other]), /two figures are called health/);
  assert.throws(() => figureResults([figure("health", [50]), figure("health", [50], "less")]), /health/);
});

Deno.test("a figure is lost when it has less than two thirds of what it had", () => {
  const rows: [better: Figure["better"], before: number, after: number, isLost: boolean][] = [
    ["more", 60, 61, false],
    ["more", 60, 41, false],
    ["more", 60, 39, true],
    ["less", 120, 60, false],
    ["less", 120, 179, false],
    ["less", 120, 181, true],
    ["more", 60, 0, true],
    ["less", 120, -1, true],
  ];
  for (const [better, before, after, expected] of rows) {
    const [one] = compared(result([figure("x", [before], better)]), result([figure("x", [after], better)]));
    assert.equal(isLost(one!), expected, `${better}: ${before} to ${after}`);
  }
});

Deno.test("a figure that differs much from round to round is lost only where it is worse than its worst round", () => {
  for (const [after, expected] of [[31, false], [29, true]] as const) {
    const [one] = compared(result([figure("x", [30, 60, 90])]), result([figure("x", [after])]));
    assert.equal(isLost(one!), expected, String(after));
  }
});

Deno.test("what was not run is not compared, what is measured no more is lost, and what is new is neither", () => {
  const before = result([
    figure("kept", [50]),
    figure("gone", [50]),
    { ...figure("elsewhere", [50]), script: "b.ts" },
    { ...figure("broken", [50]), script: "c.ts" },
    { script: "a.ts", figure: { ...figure("bare", [50]).figure, limit: null } },
  ]);
  const after = result([figure("kept", [50]), figure("new", [1])], [
    ended("a.ts"),
    ended("c.ts", "exit code 1"),
  ]);
  const all = compared(before, after);
  assert.deepEqual(all.map((one) => [one.name, isLost(one)]), [["kept", false], ["gone", true]]);
  assert.deepEqual(all.map(comparisonLine), [
    "kept: ratio 0.5, was 0.5: 1.00 times as good",
    "gone: not measured any more, was 0.5",
  ]);
});

Deno.test("a figure that seems lost is measured again, and only one that stays so is lost", async () => {
  const before = result([figure("once slow", [60]), figure("slow", [60]), figure("fine", [60])]);
  const first = result([figure("once slow", [20]), figure("slow", [20]), figure("fine", [55])]);
  const repeats: (readonly string[])[] = [];
  const again = (scripts: readonly string[]): Promise<Measured> => {
    repeats.push(scripts);
    const figures = [figure("once slow", [58]), figure("slow", [22]), figure("fine", [10])];
    return Promise.resolve({ scripts: [ended("a.ts")], figures });
  };
  const lost = await lostFigures(before, first, again);
  assert.deepEqual(lost.map(({ name, ratio }) => [name, ratio]), [["slow", 0.22]]);
  assert.deepEqual(repeats, [["a.ts"], ["a.ts"]]);
});

Deno.test("nothing is measured again where nothing seems lost, and a repeat that fails saves no figure", async () => {
  const before = result([figure("x", [60])]);
  const fails = () => Promise.resolve({ scripts: [ended("a.ts", "exit code 1")], figures: [] });
  assert.deepEqual(await lostFigures(before, before, () => assert.fail("it ran again")), []);
  const lost = await lostFigures(before, result([figure("x", [20])]), fails);
  assert.deepEqual(lost.map(({ name, ratio }) => [name, ratio]), [["x", 0.2]]);
});

Deno.test("the table has a row for each ratio, then what has none, with date, machine and load", () => {
  const scripts = [ended("a.ts"), ended("b.ts", "exit code 3")];
  const bare = {
    script: "a.ts",
    figure: { ...figure("memory", [51.25], "less").figure, unit: "MB", limit: null },
  };
  const text = markdownOf(result([figure("health", [50, 70, 65]), bare], scripts));
  assert.equal(
    text,
    [
      "2026-11-23: 2 processors (A|B), 8 GB, Deno 2.9.6, ffmpeg 5.1; load 0.5 to 2.3 (of the last minute, the benchmarks included).",
      "",
      "- `b.ts` failed: exit code 3",
      "",
      "| Figure | Ratio (least to most) | Better | Measured here | Limit, here | Rounds | Script |",
      "| ------ | --------------------- | ------ | ------------- | ----------- | ------ | ------ |",
      "| health | 0.65 (0.5 to 0.7)     | more   | 65 /s         | 100 /s, bare | 3      | `a.ts` |",
      "",
      "Without a limit to compare with, so for this machine only:",
      "",
      "| Figure | Measured here (least to most) | Better | Rounds | Script |",
      "| ------ | ----------------------------- | ------ | ------ | ------ |",
      "| memory | 51.3 MB                       | less   | 1      | `a.ts` |",
    ].join("\n").replace("| Limit, here |", "| Limit, here  |").replace(
      "| ----------- |",
      "| ------------ |",
    ),
  );
});

Deno.test("scripts are chosen by name, with or without folder and ending; a quick run leaves slow ones out", () => {
  const all: BenchScript[] = [{ path: "a.ts", quick: [] }, { path: "models/b.ts", quick: null }];
  const chosen = (only: string[], isQuick = false) =>
    chosenScripts(all, { only, isQuick }).map(({ path }) => path);
  assert.deepEqual(chosen([]), ["a.ts", "models/b.ts"]);
  assert.deepEqual(chosen([], true), ["a.ts"]);
  assert.deepEqual(chosen(["b"], true), ["models/b.ts"]);
  assert.deepEqual(chosen(["models/b.ts", "a"]), ["a.ts", "models/b.ts"]);
  assert.throws(() => chosen(["c", "a"]), /no benchmark is called c/);
});

Deno.test("every benchmark of the table is there", () => {
  for (const { path } of SCRIPTS) Deno.statSync(new URL(`../../bench/${path}`, import.meta.url));
});

Deno.test("the committed ratios are a quick run in which nothing failed", () => {
  const file = new URL("../../fixtures/bench/ratios.json", import.meta.url);
  const committed: BenchResult = JSON.parse(Deno.readTextFileSync(file));
  const quick = new Set(chosenScripts(SCRIPTS, { only: [], isQuick: true }).map(({ path }) => path));
  assert.deepEqual(committed.scripts.filter(({ script, fault }) => fault !== null || !quick.has(script)), []);
  assert.ok(committed.isQuick);
  assert.deepEqual(compared(committed, committed).filter(({ worse }) => worse !== 1), []);
});

Deno.test("the machine is named", async () => {
  const { processors, deno, ffmpeg } = await machineAtHand();
  assert.equal(processors, navigator.hardwareConcurrency);
  assert.equal(deno, Deno.version.deno);
  assert.match(ffmpeg, /^\d/);
});

Deno.test("a script that fails is named, what it had measured is kept, and the others run", async () => {
  using folder = new TemporaryFolder();
  const support = new URL("../../bench/support.ts", import.meta.url).href;
  const write = (name: string, body: string) =>
    Deno.writeTextFileSync(
      join(folder.path, name),
      `import { report } from ${JSON.stringify(support)};
       const figure = (name) => report({ name, unit: "ms", better: "less", ours: [2], limit: null });
       ${body}`,
    );
  write("fails.ts", `figure("before the failure"); Deno.exit(Deno.args.length === 0 ? 9 : 3);`);
  write("works.ts", `figure("works");`);
  const said: string[] = [];
  const options = { ...runnerOptions(folder.path), passes: 2, say: (line: string) => said.push(line) };
  const all = [{ path: "fails.ts", quick: ["few"] }, { path: "works.ts", quick: [] }];
  const { scripts, figures } = await runScripts(all, options);
  const once = [["fails.ts", "exit code 3"], ["works.ts", null]];
  assert.deepEqual(scripts.map(({ script, fault }) => [script, fault]), [...once, ...once]);
  const measured = [["fails.ts", "before the failure"], ["works.ts", "works"]];
  assert.deepEqual(figures.map(({ script, figure: { name } }) => [script, name]), [...measured, ...measured]);
  assert.ok(said.includes("fails.ts failed: exit code 3"));
});

Deno.test("a script that removes its figures is named, and the next one runs", async () => {
  using folder = new TemporaryFolder();
  const removes = `Deno.removeSync(Deno.env.get("BENCH_FIGURES_FILE"));`;
  Deno.writeTextFileSync(join(folder.path, "removes.ts"), removes);
  Deno.writeTextFileSync(join(folder.path, "works.ts"), "");
  const all = ["removes.ts", "works.ts"].map((path) => ({ path, quick: null }));
  const { scripts } = await runScripts(all, runnerOptions(folder.path));
  assert.deepEqual(scripts.map(({ fault }) => fault), ["the file of its figures is gone", null]);
});

Deno.test("a script that hangs is ended", async () => {
  using folder = new TemporaryFolder();
  Deno.writeTextFileSync(join(folder.path, "hangs.ts"), "setInterval(() => {}, 1000);");
  const options = { ...runnerOptions(folder.path), deadlineMs: 2_000 };
  const { scripts } = await runScripts([{ path: "hangs.ts", quick: null }], options);
  assert.deepEqual(scripts.map(({ fault }) => fault), ["it took longer than 2 s"]);
});

function runnerOptions(folder: string): RunnerOptions {
  return { folder: pathToFileURL(`${folder}/`), isQuick: true, passes: 1, deadlineMs: 60_000, say: () => {} };
}
