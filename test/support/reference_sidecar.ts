/** The reference audio sidecar as a process of its own on a free port of loopback, confined as its script confines it. */

import { join } from "node:path";
import { fileURLToPath } from "node:url";

const ROOT = fileURLToPath(new URL("../../", import.meta.url));

export interface ReferenceSidecar extends AsyncDisposable {
  readonly port: number;
  /** Asks it to end; its exit code. */
  end(): Promise<number>;
}

/** Null where espeak-ng is not installed. */
export function espeakPath(): string | null {
  for (const folder of (Deno.env.get("PATH") ?? "").split(":")) {
    try {
      return Deno.realPathSync(join(folder, "espeak-ng"));
    } catch {
      // Not there.
    }
  }
  return null;
}

/** `env` holds AUDIO_SIDECAR_* variables; the programs that they name may be started. */
export async function startReferenceSidecar(env: Record<string, string> = {}): Promise<ReferenceSidecar> {
  const programs = [espeakPath(), env.AUDIO_SIDECAR_WHISPER_PROGRAM].filter((path) => path);
  const child = new Deno.Command(Deno.execPath(), {
    args: [
      ...["run", "--quiet", "--no-prompt", "--config", join(ROOT, "deno.json")],
      "--allow-net=127.0.0.1",
      "--allow-env",
      ...(programs.length > 0 ? [`--allow-run=${programs.join(",")}`] : []),
      join(ROOT, "src", "sidecar", "audio_main.ts"),
    ],
    env: {
      AUDIO_SIDECAR_BIND_ADDR: "127.0.0.1:0",
      AUDIO_SIDECAR_ESPEAK_PROGRAM: espeakPath() ?? "espeak-ng",
      ...env,
    },
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
    return { port: await listening.promise, end, [Symbol.asyncDispose]: async () => void await end() };
  } catch (error) {
    await Promise.all([child.status, reading]);
    throw error;
  }
}
