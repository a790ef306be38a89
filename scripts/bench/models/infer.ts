/**
 * The latency that `POST /v1/infer` adds to the model call that it makes: authentication, admission, model client,
 * event.
 *
 * The model server and the service are processes of their own. This process calls the model server directly, as the
 * service does, and then the service, alternating, so that other load on the machine affects both. The model server
 * answers after `--delay` milliseconds, so the difference of the latencies is the overhead. Prints p50 and p99.
 *
 *     ./scripts/deno run -A scripts/bench/models/infer.ts [--rounds 8] [--seconds 2] [--delay 50]
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startListening, startServer } from "../../server.ts";
import { percentile, TemporaryFolder } from "../support.ts";

const API_KEY = "bench-key";
const MODEL = "Qwen/Qwen3-VL-4B-Instruct";
const PROMPT = "Describe what waits at the dock. ".repeat(30).trim();
const CONCURRENT = 8;

const { values } = parseArgs({
  args: Deno.args,
  options: {
    rounds: { type: "string", default: "8" },
    seconds: { type: "string", default: "2" },
    delay: { type: "string", default: "50" },
  },
});

using folder = new TemporaryFolder();
await using model = await startListening(
  [fileURLToPath(new URL("infer_model.ts", import.meta.url)), values.delay],
  {},
);
await using service = await startServer({
  SERVICE_API_KEYS: API_KEY,
  SERVICE_DATA_DIR: join(folder.path, "data"),
  SERVICE_VLLM_BASE_URL: model.url,
  SERVICE_INFERENCE_PER_PRINCIPAL_LIMIT: String(CONCURRENT),
});
const headers = { "content-type": "application/json", "x-api-key": API_KEY };
const created = await fetch(`${service.url}/v1/runs`, { method: "POST", headers, body: "{}" });
const { run_id } = await created.json();

const asked = { model: MODEL, prompt: PROMPT };
const calls = {
  "the model server alone": () =>
    fetch(`${model.url}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        model: MODEL,
        messages: [{ role: "user", content: PROMPT }],
        max_tokens: 256,
        temperature: 0,
      }),
    }),
  "POST /v1/infer": () =>
    fetch(`${service.url}/v1/infer`, { method: "POST", headers, body: JSON.stringify(asked) }),
  "POST /v1/infer on a run": () =>
    fetch(`${service.url}/v1/infer`, { method: "POST", headers, body: JSON.stringify({ ...asked, run_id }) }),
};

const latenciesMs: Record<string, number[]> = {};
for (let round = 0; round <= Number(values.rounds); round++) {
  for (const [name, call] of Object.entries(calls)) {
    const measured = await latenciesOf(call, Number(values.seconds));
    if (round > 0) (latenciesMs[name] ??= []).push(...measured); // the first round is a warm-up
  }
}

let bare: { p50: number; p99: number } | undefined;
for (const [name, all] of Object.entries(latenciesMs)) {
  const [p50, p99] = [percentile(all, 0.5), percentile(all, 0.99)];
  const line = `${name.padEnd(25)} p50 ${p50.toFixed(2)} ms   p99 ${p99.toFixed(2)} ms   ${all.length} calls`;
  if (!bare) {
    bare = { p50, p99 };
    console.log(line);
  } else {
    console.log(`${line}   overhead ${(p50 - bare.p50).toFixed(2)} / ${(p99 - bare.p99).toFixed(2)} ms`);
  }
}

/** Milliseconds of all calls by `CONCURRENT` callers, each with one call at a time. */
async function latenciesOf(call: () => Promise<Response>, seconds: number): Promise<number[]> {
  const endMs = performance.now() + seconds * 1000;
  const measured: number[] = [];
  await Promise.all(Array.from({ length: CONCURRENT }, async () => {
    while (performance.now() < endMs) {
      const startedMs = performance.now();
      const response = await call();
      const text = await response.text();
      if (!response.ok) throw new Error(`unexpected answer: ${response.status} ${text}`);
      measured.push(performance.now() - startedMs);
    }
  }));
  return measured;
}
