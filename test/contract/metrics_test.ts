/** The metrics text holds every family from the start, and the values that were counted. */

import assert from "node:assert/strict";
import { FAMILIES, type Family } from "../../src/contract/metric_families.ts";
import { Metrics } from "../../src/contract/metrics.ts";

Deno.test("every family with every label combination is there before anything happened", async () => {
  const text = await new Metrics().text();
  for (const [name, family] of Object.entries(FAMILIES) as [string, Family][]) {
    assert.ok(text.includes(`# HELP ${name} ${family.help}\n`), name);
    assert.ok(text.includes(`# TYPE ${name} ${family.type}\n`), name);
    const combinations = Object.values(family.labels ?? {}).reduce(
      (count, values) => count * values.length,
      1,
    );
    const bucketLines = family.buckets ? family.buckets.length + 3 : 1;
    const lines = samples(text, name);
    assert.equal(lines.length, combinations * bucketLines, name);
    for (const line of lines) assert.equal(Number(line.split(" ").at(-1)), family.initialValue ?? 0, line);
  }
});

Deno.test("values are counted, set and observed where they belong", async () => {
  const metrics = new Metrics();
  metrics.add("service_runs_created_total");
  metrics.add("service_runs_created_total", 2);
  metrics.add("service_infer_requests_total", { provider: "sglang", status: "error" });
  metrics.add("service_infer_tokens_total", { provider: "gemini", kind: "thinking" }, 40);
  metrics.set("service_sse_subscribers_active", 3);
  metrics.set("service_sse_subscribers_active", 2);
  metrics.observe("service_pipeline_gate_latency_us", 7);
  metrics.observe("service_pipeline_gate_latency_us", 1e9);
  const text = await metrics.text();
  const check = (sample: string) => assert.ok(text.split("\n").includes(sample), sample);

  check("service_runs_created_total 3");
  check('service_infer_requests_total{provider="sglang",status="error"} 1');
  check('service_infer_requests_total{provider="sglang",status="ok"} 0');
  check('service_infer_tokens_total{provider="gemini",kind="thinking"} 40');
  check("service_sse_subscribers_active 2");
  check('service_pipeline_gate_latency_us_bucket{le="5"} 0');
  check('service_pipeline_gate_latency_us_bucket{le="10"} 1');
  check('service_pipeline_gate_latency_us_bucket{le="+Inf"} 2');
  check("service_pipeline_gate_latency_us_count 2");
});

Deno.test("a value of another module is read at every scrape", async () => {
  const metrics = new Metrics();
  let seq = 5;
  let depth = 1;
  metrics.observeValue("service_timeline_events_total", () => seq);
  metrics.observeValue("service_infer_admission_waiting", () => depth);
  metrics.observeValue("service_infer_admission_timeouts_total", { limit: "global" }, () => seq * 2);
  const scrape = async () => {
    const text = await metrics.text();
    return [
      "service_timeline_events_total",
      "service_infer_admission_waiting",
      "service_infer_admission_timeouts_total",
    ]
      .flatMap((name) => samples(text, name)).toSorted();
  };
  assert.deepEqual(await scrape(), [
    'service_infer_admission_timeouts_total{limit="global"} 10',
    'service_infer_admission_timeouts_total{limit="principal"} 0',
    "service_infer_admission_waiting 1",
    "service_timeline_events_total 5",
  ]);
  seq = 9;
  depth = 0;
  assert.deepEqual(await scrape(), [
    'service_infer_admission_timeouts_total{limit="global"} 18',
    'service_infer_admission_timeouts_total{limit="principal"} 0',
    "service_infer_admission_waiting 0",
    "service_timeline_events_total 9",
  ]);
});

Deno.test("two services in one process do not share their metrics", async () => {
  const [one, other] = [new Metrics(), new Metrics()];
  one.add("service_runs_created_total");
  assert.deepEqual(samples(await other.text(), "service_runs_created_total"), [
    "service_runs_created_total 0",
  ]);
});

Deno.test("a misspelt family, label or value does not compile", () => {
  const metrics = new Metrics();
  // Only the compiler reads these lines.
  const misspelt = () => {
    // @ts-expect-error no such family
    metrics.add("service_run_created_total");
    // @ts-expect-error a gauge is set, not added to
    metrics.add("service_sse_subscribers_active");
    // @ts-expect-error the labels are missing
    metrics.add("service_infer_requests_total");
    // @ts-expect-error no such provider
    metrics.add("service_infer_requests_total", { provider: "other", status: "ok" });
    // @ts-expect-error the status is missing
    metrics.add("service_infer_requests_total", { provider: "vllm" });
    // @ts-expect-error no labels here
    metrics.add("service_runs_created_total", { provider: "vllm" });
    // @ts-expect-error a counter is not observed
    metrics.observe("service_runs_created_total", 1);
  };
  assert.equal(typeof misspelt, "function");
});

function samples(text: string, name: string): string[] {
  return text.split("\n").filter((line) => new RegExp(`^${name}(_bucket|_sum|_count)?[ {]`).test(line));
}
