/** Tries a real model provider with a service of this checkout: does it list its model, answer, see, and keep
 * to a schema?
 */

import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Client } from "../../client/mod.ts";
import { startServer } from "../server.ts";
import { done, expect, needed, runSteps } from "./steps.ts";

const CLIP = join(fileURLToPath(new URL("../../", import.meta.url)), "fixtures", "clips", "intel_bottle.mp4");
const baseUrl = needed("SERVICE_VLLM_BASE_URL", "the address of the provider, such as http://127.0.0.1:8000");
const model = needed("STAGING_MODEL", "the id of a model of the catalog (docs/models.md)");
const apiKey = crypto.randomUUID();
const dataDir = Deno.makeTempDirSync({ prefix: "service-staging-" });
addEventListener("unload", () => Deno.removeSync(dataDir, { recursive: true }));

await runSteps("staging provider", async ({ step }) => {
  await using server = await startServer({
    SERVICE_API_KEYS: apiKey,
    SERVICE_DATA_DIR: dataDir,
    SERVICE_INGEST_FILE_ROOTS: dirname(CLIP),
    SERVICE_VLLM_BASE_URL: baseUrl,
  });
  const client = new Client(server.url, { apiKey });
  await step("models", async (signal) => {
    const found = (await client.listModels({ signal })).find(({ id }) => id === model);
    expect(found !== undefined, `the catalog has no ${model}`);
    expect(found.availability !== "unavailable", `${model} is ${found.availability}`);
    return done(`${model} is ${found.availability}`, null);
  });
  await step("answer", async (signal) => {
    const { result, tokens, inference_latency_ms } = await client.infer(
      { model, prompt: "Answer with one word: which colour has the sky on a clear day?", max_tokens: 256 },
      { signal },
    );
    expect(Boolean(result?.trim()), "it is empty");
    return done(
      `${JSON.stringify(result!.slice(0, 60))}, ${tokens.total_tokens} tokens, ${inference_latency_ms} ms`,
      null,
    );
  });
  await step("film", async (signal) => {
    const { run_id } = await client.createRun({ mode: "balanced", model }, { signal });
    const request = {
      source_uri: CLIP,
      model,
      max_frames: 10,
      chunk_size: 10,
      sampling_policy: "fixed",
      fixed_fps: 2,
    };
    await client.reason(run_id, request, { signal });
    const events = await client.getEvents(run_id, undefined, { signal });
    const chunks = events.filter(({ kind }) => kind === "semantic_chunk_inferred");
    const described = chunks.filter(({ payload }) => !payload.semantic_fallback_used && payload.summary);
    expect(described.length > 0, `none of ${chunks.length} chunks was described by the model`);
    return done(
      `${described.length} chunks: ${JSON.stringify(String(described[0]!.payload.summary).slice(0, 80))}`,
      null,
    );
  });
});
