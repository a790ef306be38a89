/** Loads the WebAssembly kernels and checks that a module exports what its TypeScript class expects. */

import { PROJECT } from "../../base/program_paths.ts";

/** `"memory"`, `"global"` or `"function"` for each name in the interface of a module's exports. */
export type ExportKinds<Exports> = {
  readonly [Name in keyof Exports]: Exports[Name] extends WebAssembly.Memory ? "memory"
    : Exports[Name] extends WebAssembly.Global ? "global"
    : "function";
};

/**
 * Compiles `wasm/<name>.wasm` and gives it memory of its own. `kinds` repeats the interface `Exports` as
 * values, because types do not exist at run time; throws when the module lacks one of them or has it as
 * another kind.
 */
export async function loadKernel<Exports>(name: string, kinds: ExportKinds<Exports>): Promise<Exports> {
  const { instance } = await WebAssembly.instantiate(await Deno.readFile(fileOf(name)));
  return checked(name, instance.exports, kinds);
}

/**
 * Does what `loadKernel` does, but at once, for a small module: it is read and compiled in less than a
 * millisecond.
 */
export function loadKernelNow<Exports>(name: string, kinds: ExportKinds<Exports>): Exports {
  const { exports } = new WebAssembly.Instance(new WebAssembly.Module(Deno.readFileSync(fileOf(name))));
  return checked(name, exports, kinds);
}

function fileOf(name: string): URL {
  return new URL(`wasm/${name}.wasm`, PROJECT);
}

function checked<Exports>(name: string, exports: WebAssembly.Exports, kinds: ExportKinds<Exports>): Exports {
  if (!hasExports(exports, kinds)) throw new Error(`Cannot use ${name}.wasm as ${faultOf(exports, kinds)}`);
  return exports;
}

function hasExports<Exports>(
  exports: WebAssembly.Exports,
  kinds: ExportKinds<Exports>,
): exports is WebAssembly.Exports & Exports {
  return faultOf(exports, kinds) === null;
}

/** The first export that is missing or of another kind, as part of an error message. */
function faultOf(exports: WebAssembly.Exports, kinds: Readonly<Record<string, string>>): string | null {
  const wrong = Object.entries(kinds).find(([name, kind]) => kindOf(exports[name]) !== kind);
  return wrong ? `it has no ${wrong[1]} ${wrong[0]}` : null;
}

function kindOf(value: unknown): string {
  if (value instanceof WebAssembly.Memory) return "memory";
  if (value instanceof WebAssembly.Global) return "global";
  return typeof value;
}
