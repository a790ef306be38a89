/** To be imported before packages that look at the environment of the process: in the sandbox they find an
 * empty one.
 */

import process from "node:process";

// Looking would be an error there. Where the environment may be seen, as in a test, it stays.
if (Deno.permissions.querySync({ name: "env" }).state !== "granted") {
  Object.defineProperty(process, "env", { value: {}, configurable: true });
}
