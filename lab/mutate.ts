/**
 * Whether a changed constant is noticed: each number of the kernels and detectors is changed in turn, and the
 * tests of their behaviour run, and where those pass the small quality set is measured.
 *
 *     ./scripts/deno run -A lab/mutate.ts [--files a,b] [--only NAME] [--factors 1.3,0.7] [--set FOLDER]
 *         [--no-measure-set]
 *
 * Prints a line for each constant and, at last, those whose change nobody noticed.
 */

import { basename, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { MODULES } from "../scripts/build_wasm.ts";
import { boundsIn, type Constant, constantsIn, scaled } from "./constants.ts";
import { FIGURES } from "./scores/score.ts";
import { rateOf, sumOf, type Totals, totalsOfVideos } from "./scores/score_table.ts";
import { makeSmallSet } from "./small_set.ts";
import { type Output, Variant } from "./variant.ts";
import { findVideos, type LabelledVideo } from "./scores/videos.ts";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
/**
 * How much a figure must fall to be noticed: it would then fail the floor, which lies slightly under what the
 * code reaches.
 */
const NOTICED_F1 = 0.015;

interface FileConstant extends Constant {
  readonly file: string;
}

const { values } = parseArgs({
  allowNegative: true,
  options: {
    files: { type: "string" },
    tests: { type: "string" },
    only: { type: "string", default: "" },
    factors: { type: "string", default: "1.3,0.7" },
    set: { type: "string" },
    "measure-set": { type: "boolean", default: true },
  },
});

const files = values.files?.split(",") ?? await kernelFiles();
const tests = values.tests?.split(",") ?? await behaviourTests();
const constants = (await Promise.all(files.map(constantsOf))).flat()
  .filter(({ name }) => name.includes(values.only));
console.log(
  `${constants.length} constants in ${files.length} files; tests: ${
    tests.map((file) => basename(file)).join(", ")
  }`,
);

const set = values.set ?? await Deno.makeTempDir({ prefix: "service-mutate-" });
const measuresSet = values["measure-set"];
if (values.set === undefined && measuresSet) await makeSmallSet(set);
const videos = measuresSet ? await findVideos([set]) : [];
await using variant = await Variant.make();
for (const test of tests) {
  const { success, stdout } = await run(variant, [test]);
  if (!success) throw new Error(`${test} fails without any change:\n${stdout.slice(-1500)}`);
}
const reached = await measured(variant, videos);
const unnoticed: string[] = [];
for (const constant of constants) {
  for (const factor of values.factors.split(",").map(Number)) {
    const changed = String(scaled(constant, factor));
    const by = await noticedBy(variant, constant, changed);
    const line = `${constant.file} ${constant.name} = ${constant.text} -> ${changed}`;
    console.log(`${by ?? "NOT NOTICED"}: ${line}`);
    if (by === null) unnoticed.push(line);
  }
}
if (values.set === undefined) await Deno.remove(set, { recursive: true });
console.log(`\n${unnoticed.length} changes were not noticed:\n${unnoticed.join("\n")}`);

/** Who notices: the compiler, a test, or a figure of the small set. */
async function noticedBy(variant: Variant, constant: FileConstant, changed: string): Promise<string | null> {
  const { file, at, text } = constant;
  const source = await variant.read(file);
  await variant.write(file, source.slice(0, at) + changed + source.slice(at + text.length));
  try {
    if (file.startsWith("assembly/")) {
      try {
        await variant.buildKernels();
      } catch {
        return "the compiler";
      }
    }
    const output = await run(variant, testsOf(file));
    if (!output.success) return /^(.*) \.\.\. FAILED/m.exec(output.stdout)?.[1] ?? "a test";
    if (videos.length === 0) return null;
    const now = await measured(variant, videos).catch(() => null);
    if (now === null) return "the small set cannot be measured";
    for (const figure of FIGURES) {
      const [before, after] = [rateOf(sumOf(reached), figure)?.f1 ?? 0, rateOf(sumOf(now), figure)?.f1 ?? 0];
      if (before - after > NOTICED_F1) {
        return `floor of ${figure} (${before.toFixed(3)} -> ${after.toFixed(3)})`;
      }
    }
    return null;
  } finally {
    await variant.restore(file);
    if (file.startsWith("assembly/")) {
      for (const { output } of MODULES) await variant.restore(output);
    }
  }
}

function run(variant: Variant, tests: readonly string[]): Promise<Output> {
  return variant.deno(["test", "-A", "--no-check", "--no-prompt", "--fail-fast", ...tests], { seconds: 300 });
}

async function measured(variant: Variant, videos: readonly LabelledVideo[]): Promise<Totals> {
  const found = await variant.measure(videos.map(({ path }) => path));
  return totalsOfVideos(videos, found.map(({ predictions }) => predictions));
}

async function constantsOf(file: string): Promise<FileConstant[]> {
  const source = await Deno.readTextFile(join(ROOT, file));
  return [...constantsIn(source), ...boundsIn(source)].map((constant) => ({ ...constant, file }));
}

/**
 * Tests that are named after the file, such as `freeze_test.ts` and `freeze_bounds_test.ts` for `freeze.ts`;
 * all where there are none.
 */
function testsOf(file: string): readonly string[] {
  const own = tests.filter((test) => basename(test).startsWith(basename(file).replace(".ts", "_")));
  return own.length > 0 ? own : tests;
}

/** Everything that the frame filter is compiled from, and the detectors. */
async function kernelFiles(): Promise<string[]> {
  const files: string[] = [];
  const seen = new Set<string>();
  const follow = async (file: string) => {
    if (seen.has(file) || file.startsWith("weights/")) return;
    seen.add(file);
    files.push(file);
    const source = await Deno.readTextFile(join(ROOT, file));
    for (const [, path] of source.matchAll(/from "(\.[^"]+)"/g)) await follow(join(file, "..", `${path}.ts`));
  };
  await follow("assembly/frame_filter.ts");
  for (const folder of [".", "ranges", "faults", "freeze", "gradual"]) {
    const path = join("src/media/detection", folder);
    files.push(...(await namesIn(path)).map((name) => join(path, name)));
  }
  return files;
}

/**
 * Tests of behaviour; not those that compare a kernel with its second implementation, which notice any
 * change.
 */
async function behaviourTests(): Promise<string[]> {
  const tests = ["test/media/kernels/cut_test.ts"];
  for (const folder of [".", "ranges", "faults", "freeze", "gradual"]) {
    const path = join("test/media/detection", folder);
    tests.push(...(await namesIn(path)).map((name) => join(path, name)));
  }
  return tests;
}

async function namesIn(folder: string): Promise<string[]> {
  try {
    const entries = await Array.fromAsync(Deno.readDir(join(ROOT, folder)));
    return entries.map(({ name }) => name).filter((name) => name.endsWith(".ts")).sort();
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return [];
    throw error;
  }
}
