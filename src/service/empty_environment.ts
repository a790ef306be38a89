/** Packages that look at the environment of the process find an empty one in the sandbox, where looking would be an error. */

import process from "node:process";

/** To be called before such a package is loaded. Where the environment may be seen, as in a test, it stays. */
export function emptyEnvironment(): void {
  if (Deno.permissions.querySync({ name: "env" }).state === "granted") return;
  Object.defineProperty(process, "env", { value: {}, configurable: true });
}
