/** Imported first by each Worker: takes away what would store files outside the Worker's folders. */

import { CODE } from "./program_paths.ts";

// The Cache API writes under DENO_DIR and asks for no permission. Its objects cannot be constructed, so no code gets them back.
for (const name of ["caches", "CacheStorage", "Cache"]) {
  delete (globalThis as unknown as Record<string, unknown>)[name];
}

// A Worker made from text would have them, so only the service's own modules, which all import this one, become Workers.
const Unrestricted = globalThis.Worker;

function OwnWorker(specifier: string | URL, options?: WorkerOptions): Worker {
  const { href } = new URL(specifier);
  if (!href.startsWith(CODE.href)) {
    throw new Deno.errors.NotCapable("Only modules of the service may be Workers");
  }
  return new Unrestricted(href, options);
}
OwnWorker.prototype = Unrestricted.prototype;
Object.defineProperty(Unrestricted.prototype, "constructor", { value: OwnWorker });
globalThis.Worker = OwnWorker as unknown as typeof Worker;
