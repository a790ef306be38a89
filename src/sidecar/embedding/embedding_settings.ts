/** The settings of the reference embedding sidecar: its variables and their defaults. */

import { type Address, address, integer } from "../../contract/setting_parsers.ts";
import { readSettings, type SidecarEnvironment } from "../sidecar_settings.ts";

export interface EmbeddingSettings {
  readonly bindAddr: Address;
  /** Requests that may wait for the one that is worked on. */
  readonly queue: number;
  /** Deadline of one request, its wait included. */
  readonly timeoutMs: number;
}

/** Listed one by one, as the process has permission to read only these. */
export const EMBEDDING_VARIABLES = [
  "EMBEDDING_SIDECAR_BIND_ADDR",
  "EMBEDDING_SIDECAR_QUEUE",
  "EMBEDDING_SIDECAR_TIMEOUT_MS",
] as const;

/** Throws an Error with one line for each variable that is wrong. */
export function readEmbeddingSettings(env: SidecarEnvironment): EmbeddingSettings {
  return readSettings<typeof EMBEDDING_VARIABLES[number], EmbeddingSettings>(env, (setting) => ({
    bindAddr: setting("EMBEDDING_SIDECAR_BIND_ADDR", address) ?? { hostname: "127.0.0.1", port: 7791 },
    queue: setting("EMBEDDING_SIDECAR_QUEUE", integer(0, 1024)) ?? 8,
    // Shorter than the 2 s after which the service disconnects, so that the service receives the reason.
    timeoutMs: setting("EMBEDDING_SIDECAR_TIMEOUT_MS", integer(10, 600_000)) ?? 1_500,
  }));
}
