import assert from "node:assert/strict";
import { basename } from "node:path";
import wabt from "wabt";
import { MODULES, staleness, type WasmModule } from "../../../scripts/build_wasm.ts";
import { inspectKernel } from "../../../scripts/inspect_wasm.ts";

const ROOT = new URL("../../../", import.meta.url);
const KERNELS = "src/media/kernels/";
/** The service's own, and the scripts that read more of a kernel than the service does. */
const KERNEL_USERS = [
  ...[...Deno.readDirSync(new URL(KERNELS, ROOT))].map(({ name }) => KERNELS + name),
  "lab/cuts/kernel_rows.ts",
  "lab/faults/measure_faults.ts",
];

for (const module of MODULES as readonly WasmModule[]) {
  const uses = module.isScalar ? "" : ", which uses SIMD";
  Deno.test(`${module.output} equals a fresh build of ${module.entry}${uses}`, async () => {
    assert.equal(await staleness(module), undefined);
  });

  Deno.test(`${module.output} imports nothing and its memory cannot grow`, async () => {
    const bytes = await Deno.readFile(new URL(module.output, ROOT));
    const { imports, growsMemory } = await inspectKernel(bytes);
    assert.deepEqual(imports, []);
    assert.equal(growsMemory, false);
    const compiled = await WebAssembly.compile(bytes);
    const memory = (await WebAssembly.instantiate(compiled)).exports.memory as WebAssembly.Memory;
    assert.equal(memory.buffer.byteLength, module.memoryPages * 65_536);
    assert.throws(() => memory.grow(1), RangeError);
  });
}

Deno.test("an import and a growing memory would be found", async () => {
  const text = `(module
    (import "env" "abort" (func $abort (param i32)))
    (import "env" "now" (global $now i32))
    (memory (export "memory") 1)
    (func (export "more") (result i32) i32.const 1 memory.grow))`;
  const module = (await wabt()).parseWat("grows.wat", text);
  const { imports, exports, growsMemory } = await inspectKernel(module.toBinary({}).buffer);
  module.destroy();
  assert.deepEqual(imports, ["env.abort", "env.now"]);
  assert.deepEqual(exports, ["memory", "more"]);
  assert.equal(growsMemory, true);
});

Deno.test("what a kernel exports is what the code uses of it, in name and kind", async () => {
  const used = usedExports();
  for (const { output } of MODULES) {
    const { exports, text } = await inspectKernel(await Deno.readFile(new URL(output, ROOT)));
    assert.deepEqual([...used.get(basename(output, ".wasm")) ?? []].sort(), exports, output);
    assert.match(text, /^\(module/);
  }
});

/** Names of exports by the kernel that they belong to, as the files say that load kernels. */
function usedExports(): Map<string, Set<string>> {
  const used = new Map<string, Set<string>>();
  for (const file of KERNEL_USERS) {
    const text = Deno.readTextFileSync(new URL(file, ROOT));
    const kernel = /loadKernel(?:Now)?\("(\w+)"/.exec(text)?.[1];
    if (kernel === undefined) continue;
    const names = used.get(kernel) ?? new Set(["memory"]);
    used.set(kernel, names);
    for (const [, name] of text.matchAll(/\b(\w+): (?:"global"|call<)/g)) names.add(name!);
  }
  return used;
}

Deno.test("a module that is missing, stale or does not compile is named", async () => {
  const [filter, gate] = MODULES;
  const check = async (module: Parameters<typeof staleness>[0], expected: RegExp) =>
    assert.match(await staleness(module) ?? "nothing wrong", expected);
  await check(
    { ...gate, output: "wasm/no_such.wasm" },
    /no_such\.wasm is missing: run "\.\/scripts\/deno task wasm"/,
  );
  await check(
    { ...gate, output: filter.output },
    /frame_filter\.wasm is not what assembly\/gate\.ts builds to/,
  );
  await check({ ...gate, memoryPages: gate.memoryPages + 1 }, /gate\.wasm is not what/);
  await assert.rejects(
    staleness({ ...gate, entry: "assembly/no_such.ts" }),
    /Cannot compile assembly\/no_such\.ts/,
  );
});
