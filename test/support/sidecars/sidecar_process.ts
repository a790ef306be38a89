/** A reference sidecar as a process of its own on loopback, confined as its script confines it. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../../", import.meta.url));

export interface SidecarProcess extends AsyncDisposable {
  readonly port: number;
  readonly pid: number;
  /** Asks it to end; its exit code. */
  end(): Promise<number>;
}

/** Runs an entry of src/sidecar until it says where it listens; `permissions` are flags of `deno run`. */
export async function startSidecarProcess(
  entry: string,
  permissions: readonly string[],
  env: Record<string, string>,
): Promise<SidecarProcess> {
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--quiet", "--no-prompt", "--config", join(ROOT, "deno.json")],
      ...permissions,
      join(ROOT, "src", "sidecar", entry),
    ],
    env,
    stdin: "null",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  const listening = Promise.withResolvers<number>();
  const reading = (async () => {
    let text = "";
    for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) {
      text += part;
      const port = /listening on tcp:\/\/127\.0\.0\.1:(\d+)\n/.exec(text)?.[1];
      if (port) listening.resolve(Number(port));
    }
    listening.reject(new Error(`the sidecar ended:\n${text}`));
  })();
  let ending: Promise<number> | undefined;
  const end = () =>
    ending ??= (async () => {
      child.kill("SIGTERM");
      const [{ code }] = await Promise.all([child.status, reading]);
      return code;
    })();
  try {
    const port = await listening.promise;
    return { port, pid: child.pid, end, [Symbol.asyncDispose]: async () => void await end() };
  } catch (error) {
    await Promise.all([child.status, reading]);
    throw error;
  }
}
