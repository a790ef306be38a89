/** Calls the operator's program that puts a model into use. See docs/edge.md#hook. */

import { fileURLToPath } from "node:url";
import { LIMITS } from "../../src/contract/limits.ts";

/** The only program that the updater may start. */
const RUN_HOOK = fileURLToPath(new URL("../run_hook", import.meta.url));
/** For a call that an updater began which was killed: it has ended by then. */
const WAIT_SECS = 2 * LIMITS.edge.hookTimeoutMs / 1000;
/** What `timeout` ends with when it has killed what it ran. */
const KILLED_CODES = [124, 137];

/** Runs `HOOK ACTION MODEL_PATH RELEASE_ID` to its end; undefined when it succeeded, else what was wrong. */
export async function runHook(
  hook: string,
  args: readonly string[],
  { lockPath, timeoutMs }: { readonly lockPath: string; readonly timeoutMs: number },
): Promise<string | undefined> {
  const seconds = timeoutMs / 1000;
  const child = new Deno.Command(RUN_HOOK, {
    args: [lockPath, String(WAIT_SECS), String(seconds), hook, ...args],
    stdin: "null",
    stdout: "inherit",
    stderr: "inherit",
    // Ctrl-C is for the updater, which waits for the hook.
    detached: true,
  }).spawn();
  const { success, code, signal } = await child.status;
  if (success) return undefined;
  if (KILLED_CODES.includes(code)) return `it was killed after ${seconds} s, or by a signal`;
  return signal ? `it ended by ${signal}` : `it ended with exit code ${code}`;
}
