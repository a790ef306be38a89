/** The process of the reference embedding sidecar: environment in, signals in, exit code out. */

import { openLog } from "../../base/log.ts";
import { EmbeddingServer } from "./embedding_server.ts";
import { EMBEDDING_VARIABLES, readEmbeddingSettings } from "./embedding_settings.ts";
import { JpegDecoder } from "./jpeg_decoder.ts";

async function main(): Promise<number> {
  const log = openLog("info").child("embedding_sidecar");
  const ended = Promise.withResolvers<void>();
  Deno.addSignalListener("SIGINT", ended.resolve);
  Deno.addSignalListener("SIGTERM", ended.resolve);
  try {
    const settings = readEmbeddingSettings(
      Object.fromEntries(EMBEDDING_VARIABLES.map((name) => [name, Deno.env.get(name)])),
    );
    await using decoder = new JpegDecoder(settings.ffmpegProgram);
    await using server = new EmbeddingServer({ log, decoder, ...settings });
    const { hostname } = settings.bindAddr;
    log.info("describes pictures by the layout of their colours and edges; no model is loaded");
    log.info(`listening on tcp://${hostname.includes(":") ? `[${hostname}]` : hostname}:${server.port}`);
    await ended.promise;
  } catch (error) {
    log.error(error instanceof Error ? error.message : String(error));
    return 1;
  }
  return 0;
}

if (import.meta.main) Deno.exit(await main());
