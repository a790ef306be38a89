/** The reference embedding sidecar as a process of its own on a free port of loopback. */

import { EMBEDDING_VARIABLES } from "../../../src/sidecar/embedding/embedding_settings.ts";
import { programOnPath } from "../needs.ts";
import { type SidecarProcess, startSidecarProcess } from "./sidecar_process.ts";

/**
 * Starts the reference sidecar of embeddings; `env` holds EMBEDDING_SIDECAR_* variables. Without one for
 * ffmpeg it is found on PATH.
 */
export function startReferenceEmbedding(env: Record<string, string> = {}): Promise<SidecarProcess> {
  const ffmpeg = env.EMBEDDING_SIDECAR_FFMPEG_PATH ?? programOnPath("ffmpeg");
  if (ffmpeg === null) throw new Error("ffmpeg is not on PATH");
  const permissions = [
    "--allow-net=127.0.0.1",
    `--allow-env=${EMBEDDING_VARIABLES.join(",")}`,
    `--allow-run=${ffmpeg}`,
  ];
  return startSidecarProcess("embedding/embedding_main.ts", permissions, {
    EMBEDDING_SIDECAR_BIND_ADDR: "127.0.0.1:0",
    EMBEDDING_SIDECAR_FFMPEG_PATH: ffmpeg,
    ...env,
  });
}
