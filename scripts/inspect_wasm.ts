/** What is in a built kernel, read by WABT and so by another program than the compiler that wrote it. */

import wabt from "wabt";

export interface InspectedKernel {
  /** The module in the text format of WebAssembly. */
  readonly text: string;
  /** What it imports, such as `env.abort`. */
  readonly imports: readonly string[];
  /** What it exports: names, sorted. */
  readonly exports: readonly string[];
  readonly growsMemory: boolean;
}

/** What is in a built kernel. Throws when the bytes are no valid module. */
export async function inspectKernel(bytes: Uint8Array): Promise<InspectedKernel> {
  const module = (await wabt()).readWasm(bytes, { readDebugNames: true, simd: true, bulk_memory: true });
  try {
    module.validate();
    module.applyNames();
    const text = module.toText({ foldExprs: false, inlineExport: false });
    const found = (pattern: RegExp) => [...text.matchAll(pattern)];
    return {
      text,
      imports: found(/^\s*\(import "([^"]*)" "([^"]*)"/gm).map(([, from, name]) => `${from}.${name}`),
      exports: found(/^\s*\(export "([^"]*)"/gm).map(([, name]) => name!).sort(),
      growsMemory: /\bmemory\.grow\b/.test(text),
    };
  } finally {
    module.destroy();
  }
}
