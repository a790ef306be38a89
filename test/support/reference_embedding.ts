/** The reference embedding sidecar as a process of its own on a free port of loopback, confined as its script confines it. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { EMBEDDING_VARIABLES } from "../../src/sidecar/embedding_settings.ts";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export interface ReferenceEmbedding extends AsyncDisposable {
  readonly port: number;
  readonly pid: number;
  /** Asks it to end; its exit code. */
  end(): Promise<number>;
}

/** `env` holds EMBEDDING_SIDECAR_* variables; without one for ffmpeg it is found on PATH. */
export async function startReferenceEmbedding(env: Record<string, string> = {}): Promise<ReferenceEmbedding> {
  const ffmpeg = env.EMBEDDING_SIDECAR_FFMPEG_PATH ?? programPath("ffmpeg");
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--quiet", "--no-prompt", "--config", join(ROOT, "deno.json")],
      "--allow-net=127.0.0.1",
      `--allow-env=${EMBEDDING_VARIABLES.join(",")}`,
      `--allow-run=${ffmpeg}`,
      join(ROOT, "src", "sidecar", "embedding_main.ts"),
    ],
    env: { EMBEDDING_SIDECAR_BIND_ADDR: "127.0.0.1:0", EMBEDDING_SIDECAR_FFMPEG_PATH: ffmpeg, ...env },
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

/** The real path of a program on PATH; throws where there is none. */
function programPath(name: string): string {
  for (const folder of (Deno.env.get("PATH") ?? "").split(":")) {
    try {
      return Deno.realPathSync(join(folder, name));
    } catch {
      // Not there.
    }
  }
  throw new Error(`${name} is not on PATH`);
}
