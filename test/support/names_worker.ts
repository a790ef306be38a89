/** Tells which names a Worker finds: as the runtime makes it, or as the service leaves it. */

import type { Scope } from "./worker_names.ts";

// deno-lint-ignore no-explicit-any -- names that no type has
const scope = globalThis as any;

scope.onmessage = async ({ data: { isBare } }: MessageEvent<{ isBare: boolean }>) => {
  if (!isBare) await import("../../src/base/worker_globals.ts");
  const names = (of: object) => Reflect.ownKeys(of).filter((key) => typeof key === "string");
  const node: Record<string, string[]> = {};
  for (const module of isBare ? [] : scope.process.getBuiltinModule("node:module").builtinModules) {
    node[module] = names(scope.process.getBuiltinModule(module)).toSorted();
  }
  scope.postMessage(
    {
      globals: names(globalThis),
      deno: names(Deno),
      navigator: names(Object.getPrototypeOf(navigator)),
      node,
    } satisfies Scope,
  );
};
