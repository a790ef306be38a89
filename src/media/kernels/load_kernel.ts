/** Loads the WebAssembly kernels and checks that a module exports what its TypeScript class expects. */

/** `"memory"`, `"global"` or `"function"` for each name in the interface of a module's exports. */
export type ExportKinds<Exports> = {
  readonly [Name in keyof Exports]: Exports[Name] extends WebAssembly.Memory ? "memory"
    : Exports[Name] extends WebAssembly.Global ? "global"
    : "function";
};

/**
 * Compiles `wasm/<name>.wasm` and gives it memory of its own. `kinds` repeats the interface `Exports` as values, because types
 * do not exist at run time; throws when the module lacks one of them or has it as another kind.
 */
export async function loadKernel<Exports>(name: string, kinds: ExportKinds<Exports>): Promise<Exports> {
  const bytes = await Deno.readFile(new URL(`../../../wasm/${name}.wasm`, import.meta.url));
  const { instance: { exports } } = await WebAssembly.instantiate(bytes);
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
