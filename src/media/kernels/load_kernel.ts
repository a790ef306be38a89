/** Loads the WebAssembly kernels and checks that a module exports what its TypeScript class expects. */

import { PROJECT } from "../../base/program_paths.ts";

/** What is expected of an export besides the memory: that it is a number or an address, or a function. */
type ExportKind = "global" | FunctionKind<unknown>;
type FunctionKind<Call> = "function" & { readonly type?: Call };

/** Says that an export is a function of this type; WebAssembly functions take numbers only. */
export function call<Call>(): FunctionKind<Call> {
  return "function" as FunctionKind<Call>;
}

/** The exports of a module that has a memory and what `Kinds` expects. */
export type ExportsOf<Kinds> =
  & { readonly memory: WebAssembly.Memory }
  & {
    readonly [Name in keyof Kinds]: Kinds[Name] extends FunctionKind<infer Call> ? Call
      : WebAssembly.Global;
  };

type ExportKinds = Readonly<Record<string, ExportKind>>;

/**
 * Compiles `wasm/<name>.wasm` and gives it memory of its own. Throws when the module lacks one of the `kinds`
 * or has it as another kind.
 */
export async function loadKernel<Kinds extends ExportKinds>(name: string, kinds: Kinds) {
  const { instance } = await WebAssembly.instantiate(await Deno.readFile(fileOf(name)));
  return checked(name, instance.exports, kinds);
}

/**
 * Does what `loadKernel` does, but at once, for a small module: it is read and compiled in less than a
 * millisecond.
 */
export function loadKernelNow<Kinds extends ExportKinds>(name: string, kinds: Kinds) {
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(Deno.readFileSync(fileOf(name))));
  return checked(name, exports, kinds);
}

function fileOf(name: string): URL {
  return new URL(`wasm/${name}.wasm`, PROJECT);
}

function checked<Kinds extends ExportKinds>(
  name: string,
  exports: WebAssembly.Exports,
  kinds: Kinds,
): ExportsOf<Kinds> {
  const wrong = Object.entries({ memory: "memory", ...kinds })
    .find(([name, kind]) => kindOf(exports[name]) !== kind);
  if (wrong) throw new Error(`Cannot use ${name}.wasm as it has no ${wrong[1]} ${wrong[0]}`);
  return exports as WebAssembly.Exports & ExportsOf<Kinds>;
}

function kindOf(value: unknown): string {
  if (value instanceof WebAssembly.Memory) return "memory";
  if (value instanceof WebAssembly.Global) return "global";
  return typeof value;
}
