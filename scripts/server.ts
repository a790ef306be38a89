/** Starts a server of this project in a process of its own, for the demo and the benchmarks. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../", import.meta.url));
/**
 * Longest start of a server, milliseconds: on a slow machine, the first start reads the sources from a slow
 * disk.
 */
const START_DEADLINE_MS = 180_000;
/** How much of the log is kept, to be shown if the server does not start. */
const KEPT_TEXT_CHARACTERS = 65_536;

export interface Server extends AsyncDisposable {
  /** Address of the server, `http://127.0.0.1:<port>`. */
  readonly url: string;
  readonly pid: number;
  /** Ends it with SIGKILL, like a crash; resolves when the process has ended. */
  kill(): Promise<void>;
}

/** Starts `main.ts` on a free loopback port; `env` is added to the environment of this process. */
export function startServer(env: Record<string, string>): Promise<Server> {
  return startListening([join(ROOT, "src", "main.ts")], { SERVICE_BIND_ADDR: "127.0.0.1:0", ...env });
}

/**
 * Starts a Deno program and waits for its line `listening on http://…`. Disposing sends SIGTERM and waits for
 * the end.
 */
export async function startListening(args: readonly string[], env: Record<string, string>): Promise<Server> {
  const child = new Deno.Command(Deno.execPath(), {
    args: ["run", "--quiet", "--no-prompt", "--allow-all", "--config", join(ROOT, "deno.json"), ...args],
    env,
    stdin: "null",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const listening = Promise.withResolvers<string>();
  const reading = (async () => {
    let text = "";
    for await (const chunk of child.stdout.pipeThrough(new TextDecoderStream())) {
      text = (text + chunk).slice(-KEPT_TEXT_CHARACTERS);
      const url = /listening on (http:\S+)\n/.exec(text)?.[1];
      if (url) listening.resolve(url);
    }
    listening.reject(new Error(`the server did not start:\n${text}`));
  })();
  const timer = setTimeout(() => {
    listening.reject(new Error(`the server did not start within ${START_DEADLINE_MS} ms`));
    child.kill("SIGKILL");
  }, START_DEADLINE_MS);
  const url = await listening.promise.finally(() => clearTimeout(timer));
  let ending: Promise<unknown> | undefined;
  return {
    url,
    pid: child.pid,
    kill: async () => {
      child.kill("SIGKILL");
      ending = Promise.all([child.status, reading]);
      await ending;
    },
    [Symbol.asyncDispose]: async () => {
      if (!ending) {
        child.kill("SIGTERM");
        ending = Promise.all([child.status, reading]);
      }
      await ending;
    },
  };
}
