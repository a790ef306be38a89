import assert from "node:assert/strict";
import { MODULES, staleness, type WasmModule } from "../../../scripts/build_wasm.ts";

for (const module of MODULES as readonly WasmModule[]) {
  const uses = module.isScalar ? "" : ", which uses SIMD";
  Deno.test(`${module.output} equals a fresh build of ${module.entry}${uses}`, async () => {
    assert.equal(await staleness(module), undefined);
  });

  Deno.test(`${module.output} imports nothing and its memory cannot grow`, async () => {
    const bytes = await Deno.readFile(new URL(`../../../${module.output}`, import.meta.url));
    const compiled = await WebAssembly.compile(bytes);
    assert.deepEqual(WebAssembly.Module.imports(compiled), []);
    const memory = (await WebAssembly.instantiate(compiled)).exports.memory as WebAssembly.Memory;
    assert.equal(memory.buffer.byteLength, module.memoryPages * 65_536);
    assert.throws(() => memory.grow(1), RangeError);
  });
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
