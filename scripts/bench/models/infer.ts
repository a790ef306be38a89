/**
 * The latency that `POST /v1/infer` adds to the model call that it makes: authentication, admission, model client,
 * event.
 *
 * The model server and the service are processes of their own. This process calls the model server directly, as the
 * service does, and then the service, alternating, so that other load on the machine affects both. The model server
 * answers after `--delay` milliseconds, so the difference of the latencies is the overhead. Prints p50 and p99, and the
 * processor time of a call, compared with that of a bare proxy: with `--delay 0` nothing else is in it.
 *
 *     ./scripts/deno run -A scripts/bench/models/infer.ts [--rounds 8] [--seconds 2] [--delay 50]
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startListening, startServer } from "../../server.ts";
import { cpuMs, load, median, percentile, report, TemporaryFolder } from "../support.ts";

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
await using proxy = await startListening(
  [fileURLToPath(new URL("infer_proxy.ts", import.meta.url)), model.url],
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
const completion = {
  method: "POST",
  headers: { "content-type": "application/json" },
  body: JSON.stringify({
    model: MODEL,
    messages: [{ role: "user", content: PROMPT }],
    max_tokens: 256,
    temperature: 0,
  }),
};
const infer = (body: object) =>
  fetch(`${service.url}/v1/infer`, { method: "POST", headers, body: JSON.stringify(body) });
const targets: Record<string, [pid: number, call: () => Promise<Response>]> = {
  "the model server alone": [model.pid, () => fetch(`${model.url}/v1/chat/completions`, completion)],
  "a bare proxy": [proxy.pid, () => fetch(`${proxy.url}/v1/chat/completions`, completion)],
  "POST /v1/infer": [service.pid, () => infer(asked)],
  "POST /v1/infer on a run": [service.pid, () => infer({ ...asked, run_id })],
};

const measured: Record<string, { latenciesMs: number[]; cpuUs: number[] }> = {};
for (let round = 0; round <= Number(values.rounds); round++) {
  for (const [name, [pid, call]] of Object.entries(targets)) {
    const beforeMs = cpuMs(pid);
    const latenciesMs = await latenciesOf(call, Number(values.seconds));
    if (round === 0) continue; // a warm-up
    const of = measured[name] ??= { latenciesMs: [], cpuUs: [] };
    of.latenciesMs.push(...latenciesMs);
    of.cpuUs.push((cpuMs(pid) - beforeMs) * 1000 / latenciesMs.length);
  }
}

const p = (name: string, share: number) => percentile(measured[name]!.latenciesMs, share);
/** What is added to the latency of the model server alone. */
const overhead = (name: string, share: number) => p(name, share) - p("the model server alone", share);
const cpu = (name: string) => median(measured[name]!.cpuUs);
for (const [name, { latenciesMs }] of Object.entries(measured)) {
  const over = (share: number) => overhead(name, share).toFixed(2);
  console.log(
    `${name.padEnd(24)} p50 ${p(name, 0.5).toFixed(2)} ms   p99 ${p(name, 0.99).toFixed(2)} ms   ` +
      `overhead ${over(0.5)} / ${over(0.99)} ms   ${cpu(name).toFixed(0)} µs of CPU a call, ` +
      `${(cpu(name) / cpu("a bare proxy")).toFixed(2)} of the proxy   ${latenciesMs.length} calls`,
  );
}
report({
  ...{
    name: "infer: CPU time of a call",
    unit: "µs",
    better: "less",
    ours: measured["POST /v1/infer"]!.cpuUs,
  },
  limit: { name: "bare proxy", values: measured["a bare proxy"]!.cpuUs },
});
for (const [what, share] of [["p50", 0.5], ["p99", 0.99]] as const) {
  report({
    ...{ name: `infer: overhead, 8 at once, ${what}`, unit: "ms", better: "less" },
    ours: [overhead("POST /v1/infer", share)],
    limit: { name: "bare proxy", values: [overhead("a bare proxy", share)] },
  });
}
console.log(`load ${load()}`);
for (const server of [service, proxy, model]) await server[Symbol.asyncDispose]();
Deno.exit(0);

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
