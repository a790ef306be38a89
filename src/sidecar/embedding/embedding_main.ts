/** Entry of the process of the reference embedding sidecar. */

import type { World } from "../../base/world.ts";
import { type RunningSidecar, runSidecar } from "../sidecar_process.ts";
import type { SidecarEnvironment } from "../sidecar_settings.ts";
import { EmbeddingServer } from "./embedding_server.ts";
import { EMBEDDING_VARIABLES, readEmbeddingSettings } from "./embedding_settings.ts";

function start(env: SidecarEnvironment, world: World): RunningSidecar {
  const settings = readEmbeddingSettings(env);
  const server = EmbeddingServer.listen({ world, ...settings });
  return {
    bindAddr: settings.bindAddr,
    port: server.port,
    summary: "describes pictures by the layout of their colours and edges; no model is loaded",
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

if (import.meta.main) {
  Deno.exit(await runSidecar({ name: "embedding_sidecar", variables: EMBEDDING_VARIABLES, start }));
}
