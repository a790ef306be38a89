/** The reference audio sidecar as a process of its own on a free port of loopback. */

import { programOnPath } from "../needs.ts";
import { type SidecarProcess, startSidecarProcess } from "./sidecar_process.ts";

/** Path of espeak-ng; null where it is not installed. */
export function espeakPath(): string | null {
  return programOnPath("espeak-ng");
}

/**
 * Starts the reference sidecar of audio; `env` holds AUDIO_SIDECAR_* variables. The programs that they name
 * may be started.
 */
export function startReferenceSidecar(env: Record<string, string> = {}): Promise<SidecarProcess> {
  const programs = [espeakPath(), env.AUDIO_SIDECAR_WHISPER_PROGRAM].filter((path) => path);
  const permissions = [
    "--allow-net=127.0.0.1",
    "--allow-env",
    ...(programs.length > 0 ? [`--allow-run=${programs.join(",")}`] : []),
  ];
  return startSidecarProcess("audio/audio_main.ts", permissions, {
    AUDIO_SIDECAR_BIND_ADDR: "127.0.0.1:0",
    AUDIO_SIDECAR_ESPEAK_PROGRAM: espeakPath() ?? "espeak-ng",
    ...env,
  });
}
