/**
 * Trigger programs, p50 and p95 of:
 *
 *   - one live step of an example program, and the heap bytes it allocates;
 *   - 10,000 samples in one call, for the example and for a program of 64 instructions;
 *   - compiling a source of 64 instructions;
 *   - an evaluate request with 10,000 samples, from the first byte sent to the last byte read, compared with
 *     a bare
 *     `Deno.serve` that parses the same body and sends a prepared answer of the same length.
 *
 *     ./scripts/deno run -A bench/trigger.ts [--rounds 60]
 */

import { join } from "node:path";
import v8 from "node:v8";
import { parseArgs } from "node:util";
import { TriggerKernel } from "../src/media/kernels/trigger_kernel.ts";
import { compileTrigger } from "../src/model/triggers/compile.ts";
import { fillColumns } from "../src/model/triggers/samples.ts";
import { tableOf } from "../src/model/triggers/program_table.ts";
import type { ValidProgram } from "../src/model/triggers/validate.ts";
import { startListening, startServer } from "../scripts/server.ts";
import { median, percentile, report, TemporaryFolder } from "./support.ts";

const { values } = parseArgs({ args: Deno.args, options: { rounds: { type: "string", default: "60" } } });
const SAMPLES = 10_000;
const SAMPLES_OBSERVED = 5_000;
const STEPS_PER_ROUND = 100_000;
const API_KEY = "bench-key";

const EXAMPLE = `trigger dock-entry version 3
when motion_score >= 0.5 for 2 frames
edge rising
cooldown 4000ms
emit dock_entry
capture keyframe
notify webhook
end
`;

/** A large program: 15 conditions on different signals, 64 instructions. */
const LARGE = [
  "trigger large version 1",
  ...Array.from({ length: 15 }, (_, index) => `and object_count:label-${index}@zone > ${index / 16}`),
  "edge rising",
  "emit large_event",
  "notify webhook",
  "end",
].join("\n");

const random = randomFrom(4_711);
const kernel = await TriggerKernel.load();

benchStep();
benchBlock("the example", compileTrigger(EXAMPLE));
benchBlock("64 instructions", compileTrigger(LARGE));
benchCompile();
await benchRequests();
Deno.exit(0);

/** One call from TypeScript for each step, as in a live session. */
function benchStep(): void {
  kernel.begin(tableOf(compileTrigger(EXAMPLE)));
  const scores = Float64Array.from({ length: 1024 }, random);
  const nanoseconds: number[] = [];
  let leastBytes = Infinity;
  for (let round = 0; round < Number(values.rounds); round++) {
    const before = heapBytes();
    const startedMs = performance.now();
    stepMany(scores, STEPS_PER_ROUND);
    nanoseconds.push((performance.now() - startedMs) * 1e6 / STEPS_PER_ROUND);
    leastBytes = Math.min(leastBytes, Math.abs(heapBytes() - before));
  }
  print("one step of the example, ns", nanoseconds, 1);
  report({
    name: "trigger: one step of 11 instructions",
    unit: "ns",
    better: "less",
    ours: nanoseconds,
    limit: null,
  });
  print("the same, instructions / s in millions", nanoseconds.map((ns) => 11_000 / ns), 0);
  // Reading the clock and the heap allocates some bytes too; an allocation of a step would be there 100,000
  // times.
  print(`heap bytes a step leaves, least of ${nanoseconds.length} rounds`, [leastBytes / STEPS_PER_ROUND], 3);
}

function stepMany(scores: Float64Array, count: number): void {
  for (let step = 0; step < count; step++) {
    const score = scores[step & 1023]!;
    kernel.step(step * 33, score, score, score);
  }
}

function heapBytes(): number {
  return v8.getHeapStatistics().used_heap_size;
}

/** Times 10,000 samples in one call. */
function benchBlock(name: string, program: ValidProgram): void {
  const { signals, words } = tableOf(program);
  const samples = Array.from({ length: SAMPLES }, (_, index) => sampleOf(index, signals.length));
  const milliseconds: number[] = [];
  for (let round = 0; round < Number(values.rounds); round++) {
    kernel.begin({ signals, words });
    fillColumns(samples, signals, kernel);
    const startedMs = performance.now();
    kernel.run(SAMPLES);
    milliseconds.push(performance.now() - startedMs);
  }
  print(`${SAMPLES} samples of ${name} in one call, ms`, milliseconds, 3);
}

function sampleOf(index: number, signals: number) {
  return {
    pts_ms: index * 33,
    motion_score: random(),
    observations: Array.from({ length: signals }, (_, label) => ({
      signal: { kind: "object_count", label: `label-${label}`, zone: "zone" } as const,
      value: 1,
    })),
  };
}

function benchCompile(): void {
  const milliseconds: number[] = [];
  for (let round = -200; round < Number(values.rounds) * 10; round++) {
    const startedMs = performance.now();
    const { instructions } = compileTrigger(LARGE);
    if (round >= 0) milliseconds.push(performance.now() - startedMs); // the rounds before are a warm-up
    if (instructions.length !== 64) throw new Error(`the source has ${instructions.length} instructions`);
  }
  print("compile a source of 64 instructions, ms", milliseconds, 3);
}

async function benchRequests(): Promise<void> {
  using folder = new TemporaryFolder();
  const plain = Array.from({ length: SAMPLES }, (_, index) => ({
    pts_ms: index * 33,
    motion_score: random(),
    novelty_score: random(),
    confidence: random(),
  }));
  // A body has at most so many values.
  const observed = plain.slice(0, SAMPLES_OBSERVED).map((sample) => ({
    ...sample,
    observations: [
      { signal: { kind: "object_count", label: "person", zone: null }, value: 2 },
      { signal: { kind: "dwell_ms", label: "person", zone: "bay" }, value: 1200.5 },
    ],
  }));
  await using service = await startServer({
    SERVICE_API_KEYS: API_KEY,
    SERVICE_DATA_DIR: join(folder.path, "data"),
  });
  const example = compileTrigger(EXAMPLE);
  const url = `${service.url}/v1/triggers/evaluate`;
  const body = JSON.stringify({ program: example, samples: plain });
  const { text: answer, p50: ours } = await timeRequests(`evaluate ${SAMPLES} samples, ms`, url, body);
  await timeRequests(
    `${SAMPLES_OBSERVED} with two observations each, ms`,
    url,
    JSON.stringify({ program: example, samples: observed }),
  );
  const answerFile = join(folder.path, "answer.json");
  Deno.writeTextFileSync(answerFile, answer);
  const bareFile = join(folder.path, "bare.ts");
  Deno.writeTextFileSync(bareFile, bareServer(answerFile));
  await using bare = await startListening([bareFile], {});
  const limit = await timeRequests("  limit: parse the body, answer as long, ms", bare.url, body);
  report({
    ...{ name: `trigger: evaluate ${SAMPLES} samples, p50`, unit: "ms", better: "less", ours: [ours] },
    limit: { name: "parse and answer", values: [limit.p50] },
  });
}

function bareServer(answerFile: string): string {
  return `
    const answer = Deno.readTextFileSync(${JSON.stringify(answerFile)});
    const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
      await request.json();
      return new Response(answer, { headers: { "content-type": "application/json" } });
    });
    console.log("listening on http://127.0.0.1:" + server.addr.port);
  `;
}

/** Requests one after the other; their median, and the text of the last answer. */
async function timeRequests(name: string, url: string, body: string): Promise<{ text: string; p50: number }> {
  const milliseconds: number[] = [];
  let text = "";
  for (let round = -5; round < Number(values.rounds); round++) {
    const startedMs = performance.now();
    const response = await fetch(url, {
      method: "POST",
      headers: { "content-type": "application/json", "x-api-key": API_KEY, "accept-encoding": "identity" },
      body,
    });
    text = await response.text();
    if (round >= 0) milliseconds.push(performance.now() - startedMs); // the rounds before are a warm-up
    if (!response.ok) throw new Error(`unexpected answer: ${response.status} ${text.slice(0, 200)}`);
  }
  print(
    name,
    milliseconds,
    1,
    `${(body.length / 1e6).toFixed(1)} MB to and ${(text.length / 1e6).toFixed(1)} MB back`,
  );
  return { text, p50: median(milliseconds) };
}

function print(name: string, numbers: readonly number[], digits: number, more = ""): void {
  const at = (share: number) => percentile(numbers, share).toFixed(digits).padStart(9);
  const figures = numbers.length === 1 ? at(0) : `${at(0.5)} p50${at(0.95)} p95`;
  console.log(`${name.padEnd(50)}${figures}   ${more}`.trimEnd());
}

function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => (state = (Math.imul(state, 1664525) + 1013904223) >>> 0) / 2 ** 32;
}
