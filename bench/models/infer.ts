/**
 * The latency that `POST /v1/infer` adds to the model call that it makes: authentication, admission, model
 * client, event.
 *
 * The model server and the service are processes of their own. This process calls the model server directly,
 * as the service does, and then a bare proxy and the service, alternating, so that other load on the machine
 * affects all. The model server says in its answer how long it took: what a call takes beyond that, less what
 * a direct call takes beyond it, is the overhead. Prints p50 and p99, and the processor time of a call,
 * compared with that of the bare proxy.
 *
 * Eight callers have one call each under way. The model answers after `--delay` milliseconds, up to half more
 * or less, as answers of a model differ in length. With a constant delay the eight soon ask, and are
 * answered, all at the same moment, so that each call waits for seven others in every process: that is
 * measured too, as `in step`.
 *
 *     ./scripts/deno run -A bench/models/infer.ts [--rounds 8] [--seconds 2] [--delay 50]
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startListening, startServer } from "../../scripts/server.ts";
import { cpuMs, load, median, pause, percentile, report, TemporaryFolder } from "../support.ts";

const API_KEY = "bench-key";
const MODEL = "Qwen/Qwen3-VL-4B-Instruct";
const PROMPT = "Describe what waits at the dock. ".repeat(30).trim();
const CONCURRENT = 8;
/**
 * Milliseconds after which the start of the service is over: it gives memory back, compiled code too, when
 * nobody has asked for anything for 3 s after its start.
 */
const START_OVER_MS = 7000;
/**
 * Calls of each target after its start and before the first round, so that a process has compiled what it
 * runs often.
 */
const WARM_UP_CALLS = 4000;

const { values } = parseArgs({
  args: Deno.args,
  options: {
    rounds: { type: "string", default: "8" },
    seconds: { type: "string", default: "2" },
    delay: { type: "string", default: "50" },
  },
});
const delayMs = Number(values.delay);

using folder = new TemporaryFolder();
await using model = await startListening([fileURLToPath(new URL("infer_model.ts", import.meta.url))], {});
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

/** A call whose model takes about `max_tokens` milliseconds; resolves to what it really took. */
type Call = (max_tokens: number) => Promise<number>;

function completing(url: string): Call {
  return async (max_tokens) => {
    const asked = { model: MODEL, messages: [{ role: "user", content: PROMPT }], max_tokens, temperature: 0 };
    const { choices } = await posted(`${url}/v1/chat/completions`, asked);
    return Number(choices[0].message.content);
  };
}

function inferring(of: { readonly run_id?: string }): Call {
  return async (max_tokens) => {
    const { output_text } = await posted(`${service.url}/v1/infer`, {
      ...{ model: MODEL, prompt: PROMPT, max_tokens },
      ...of,
    });
    return Number(output_text);
  };
}

const DIRECT = "the model server alone";
const PROXY = "a bare proxy";
const INFER = "POST /v1/infer";
const targets: Record<string, [pid: number, call: Call]> = {
  [DIRECT]: [model.pid, completing(model.url)],
  [PROXY]: [proxy.pid, completing(proxy.url)],
  [INFER]: [service.pid, inferring({})],
  [`${INFER} on a run`]: [service.pid, inferring({ run_id })],
};
await pause(START_OVER_MS);
for (const [, call] of Object.values(targets)) {
  let left = WARM_UP_CALLS;
  await beyondOf(call, { until: () => left-- <= 0, delayMs: () => 1 });
}

for (
  const [how, ofCall] of Object.entries({
    "8 at once": () => Math.round(delayMs * (0.5 + Math.random())),
    "8 in step": () => delayMs,
  })
) {
  const measured: Record<string, { beyondMs: number[]; cpuUs: number[] }> = {};
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const [name, [pid, call]] of Object.entries(targets)) {
      const beforeMs = cpuMs(pid);
      const endMs = performance.now() + Number(values.seconds) * 1000;
      const beyondMs = await beyondOf(call, { until: () => performance.now() >= endMs, delayMs: ofCall });
      const of = measured[name] ??= { beyondMs: [], cpuUs: [] };
      of.beyondMs.push(...beyondMs);
      of.cpuUs.push((cpuMs(pid) - beforeMs) * 1000 / beyondMs.length);
    }
  }

  const p = (name: string, share: number) => percentile(measured[name]!.beyondMs, share);
  const overhead = (name: string, share: number) => p(name, share) - p(DIRECT, share);
  const cpu = (name: string) => median(measured[name]!.cpuUs);
  for (const [name, { beyondMs }] of Object.entries(measured)) {
    const over = (share: number) => overhead(name, share).toFixed(2);
    console.log(
      `${how}: ${name.padEnd(24)} beyond the model p50 ${p(name, 0.5).toFixed(2)} ms   p99 ${
        p(name, 0.99).toFixed(2)
      } ms   overhead ${over(0.5)} / ${over(0.99)} ms   ${cpu(name).toFixed(0)} µs of CPU a call, ` +
        `${(cpu(name) / cpu(PROXY)).toFixed(2)} of the proxy   ${beyondMs.length} calls`,
    );
  }
  report({
    ...{ name: `infer: CPU time of a call, ${how}`, unit: "µs", better: "less" },
    ours: measured[INFER]!.cpuUs,
    limit: { name: "bare proxy", values: measured[PROXY]!.cpuUs },
  });
  for (const [what, share] of [["p50", 0.5], ["p99", 0.99]] as const) {
    report({
      ...{ name: `infer: beyond the model, ${how}, ${what}`, unit: "ms", better: "less" },
      ours: [p(INFER, share)],
      limit: { name: "bare proxy", values: [p(PROXY, share)] },
    });
  }
}
console.log(`load ${load()}`);
for (const server of [service, proxy, model]) await server[Symbol.asyncDispose]();
Deno.exit(0);

/**
 * Milliseconds that each call took beyond those of its model, by `CONCURRENT` callers, each with one call at
 * a time.
 */
async function beyondOf(
  call: Call,
  { until, delayMs }: { readonly until: () => boolean; readonly delayMs: () => number },
): Promise<number[]> {
  const measured: number[] = [];
  await Promise.all(Array.from({ length: CONCURRENT }, async () => {
    while (!until()) {
      const startedMs = performance.now();
      const tookMs = await call(delayMs());
      measured.push(performance.now() - startedMs - tookMs);
    }
  }));
  return measured;
}

// deno-lint-ignore no-explicit-any -- answers of two servers, read where they are asked for
async function posted(url: string, body: unknown): Promise<any> {
  const response = await fetch(url, { method: "POST", headers, body: JSON.stringify(body) });
  const text = await response.text();
  if (!response.ok) throw new Error(`unexpected answer: ${response.status} ${text}`);
  return JSON.parse(text);
}
