/** The reference embedding sidecar as a process of its own on a free port of loopback. */

import { EMBEDDING_VARIABLES } from "../../../src/sidecar/embedding/embedding_settings.ts";
import { type SidecarProcess, startSidecarProcess } from "./sidecar_process.ts";

/** Starts the reference sidecar of embeddings; `env` holds EMBEDDING_SIDECAR_* variables. */
export function startReferenceEmbedding(env: Record<string, string> = {}): Promise<SidecarProcess> {
  const permissions = ["--allow-net=127.0.0.1", `--allow-env=${EMBEDDING_VARIABLES.join(",")}`];
  return startSidecarProcess("embedding/embedding_main.ts", permissions, {
    EMBEDDING_SIDECAR_BIND_ADDR: "127.0.0.1:0",
    ...env,
  });
}
