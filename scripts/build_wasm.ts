/**
 * Builds `wasm/*.wasm` from `assembly/`. With `--check` it builds in memory and fails unless every committed
 * module equals the fresh build byte for byte and, unless it is scalar, uses SIMD. With `--text NAME`, such
 * as `--text gate`, it prints the committed module as text.
 */

import asc from "assemblyscript/asc";
import { basename, join } from "node:path";
import type { WeightsFile } from "../src/base/fitted_trees.ts";
import { inspectKernel } from "./inspect_wasm.ts";

/**
 * The modules. The size of the memory of each is fixed, because growing it would detach all views of it in
 * TypeScript.
 */
export const MODULES = [
  { entry: "assembly/frame_filter.ts", output: "wasm/frame_filter.wasm", memoryPages: 34 },
  { entry: "assembly/gate.ts", output: "wasm/gate.wasm", memoryPages: 16 },
  { entry: "assembly/damage.ts", output: "wasm/damage.wasm", memoryPages: 1 },
  { entry: "assembly/history.ts", output: "wasm/history.wasm", memoryPages: 9 },
  { entry: "assembly/reduce.ts", output: "wasm/reduce.wasm", memoryPages: 8 },
  { entry: "assembly/repeat.ts", output: "wasm/repeat.wasm", memoryPages: 2 },
  { entry: "assembly/trigger.ts", output: "wasm/trigger.wasm", memoryPages: 48, isScalar: true },
  { entry: "assembly/zone.ts", output: "wasm/zone.wasm", memoryPages: 4, isScalar: true },
] as const satisfies readonly WasmModule[];

/** A source file, which imports others, the file it is compiled to, and its memory in pages of 64 KiB. */
export interface WasmModule {
  readonly entry: string;
  readonly output: string;
  readonly memoryPages: number;
  /**
   * Whether the module is a state machine in which each sample depends on the one before, so that SIMD cannot
   * be used.
   */
  readonly isScalar?: boolean;
}

const root = join(import.meta.dirname!, "..");

/** One compiled module and how many of its instructions work on 128-bit vectors. */
export interface Build {
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly vectorInstructions: number;
}

/** Compiles one module in memory. Throws with the compiler's messages when that fails. */
export async function build(module: WasmModule): Promise<Build> {
  const written = new Map<string, string | Uint8Array>();
  const stderr = asc.createMemoryStream();
  const { error } = await asc.main([
    module.entry,
    ...["--outFile", "module.wasm", "--textFile", "module.wat"],
    ...["-O3", "--noAssert", "--enable", "simd", "--runtime", "stub"],
    ...["--initialMemory", `${module.memoryPages}`, "--maximumMemory", `${module.memoryPages}`],
  ], {
    stderr,
    readFile: (name) => readSource(name),
    writeFile: (name, contents) => void written.set(name, contents),
    listFiles: () => [],
  });
  if (error) throw new Error(`Cannot compile ${module.entry}: ${error.message}\n${stderr.toString()}`);
  return {
    bytes: new Uint8Array(written.get("module.wasm") as Uint8Array),
    vectorInstructions: countVectorInstructions(written.get("module.wat") as string),
  };
}

/**
 * How many instructions of a module work on vectors: in the text format each of these starts with its lane
 * shape, for example `i32x4.dot_i16x8_s`.
 */
function countVectorInstructions(text: string): number {
  return text.match(/\b(?:v128|i8x16|i16x8|i32x4|i64x2|f32x4|f64x2)\.\w/g)?.length ?? 0;
}

function readSource(name: string): string | null {
  try {
    if (/^weights\/\w+\.ts$/.test(name)) return treesSource(name.replace(".ts", ".json"));
    return Deno.readTextFileSync(join(root, name));
  } catch (error) {
    // The compiler asks for `x.ts` first and for `x/index.ts` next.
    if (error instanceof Deno.errors.NotFound) return null;
    throw error;
  }
}

/** The only trees of a file of `weights/` as lists in the memory of a module. */
function treesSource(name: string): string {
  const [trees] = Object.values((JSON.parse(Deno.readTextFileSync(join(root, name))) as WeightsFile).trees);
  const { bias, roots, features, thresholds, low, high, leaves } = trees!;
  const list = (name: string, type: string, numbers: readonly number[]) =>
    `export const ${name}: usize = memory.data<${type}>([${numbers}]);`;
  return [
    `export const BIAS: i32 = ${bias};`,
    `export const TREES: i32 = ${roots.length};`,
    list("ROOTS", "i16", roots),
    list("FEATURES_ASKED", "u8", features),
    list("THRESHOLDS", "u8", thresholds),
    list("LOW", "i16", low),
    list("HIGH", "i16", high),
    list("LEAVES", "i16", leaves),
  ].join("\n");
}

/** What is wrong with the committed module; undefined when it is up to date. */
export async function staleness(module: WasmModule): Promise<string | undefined> {
  const { bytes, vectorInstructions } = await build(module);
  if (vectorInstructions === 0 && !module.isScalar) return `${module.output} has no SIMD instruction`;
  const committed = await Deno.readFile(join(root, module.output)).catch(() => undefined);
  if (!committed) return `${module.output} is missing: run "./scripts/deno task wasm"`;
  const equal = committed.length === bytes.length && committed.every((byte, i) => byte === bytes[i]);
  if (!equal) {
    return `${module.output} is not what ${module.entry} builds to (${committed.length} bytes committed, ` +
      `${bytes.length} built): run "./scripts/deno task wasm"`;
  }
}

async function writeAll(): Promise<void> {
  for (const module of MODULES) {
    const { bytes, vectorInstructions } = await build(module);
    await Deno.mkdir(join(root, "wasm"), { recursive: true });
    await Deno.writeFile(join(root, module.output), bytes);
    console.log(`${module.output}: ${bytes.length} bytes, ${vectorInstructions} SIMD instructions`);
  }
}

async function checkAll(): Promise<void> {
  const faults = (await Promise.all(MODULES.map(staleness))).filter((fault) => fault !== undefined);
  for (const fault of faults) console.error(fault);
  if (faults.length > 0) Deno.exit(1);
  console.log(`wasm/: ${MODULES.length} modules equal a fresh build of assembly/`);
}

async function printText(name: string | undefined): Promise<void> {
  const names = MODULES.map(({ output }) => nameOf(output));
  const module = MODULES.find(({ output }) => nameOf(output) === name);
  if (!module) {
    console.error(`--text takes one of ${names.join(", ")}, got ${name ?? "nothing"}`);
    Deno.exit(2);
  }
  console.log((await inspectKernel(await Deno.readFile(join(root, module.output)))).text);
}

function nameOf(output: string): string {
  return basename(output, ".wasm");
}

if (import.meta.main) {
  const [option, name] = Deno.args;
  await (option === "--check" ? checkAll() : option === "--text" ? printText(name) : writeAll());
}
