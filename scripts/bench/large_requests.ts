/**
 * Requests with the largest effects: for each, how long the HTTP thread is busy in one piece, and how much memory and log
 * it costs, beside the bytes that were sent. A second connection asks for the health of the service all the time; its
 * longest wait is the longest piece. The table of docs/security.md#large-requests is made of it.
 *
 *     deno run -A scripts/bench/large_requests.ts [--rounds 3] [--only name]
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { startServer } from "../server.ts";
import { pause, TemporaryFolder } from "./support.ts";

const API_KEY = "bench-key";
const MODEL = "Qwen/Qwen3-VL-4B-Instruct";
const MIB = 2 ** 20;

const { values } = parseArgs({
  args: Deno.args,
  options: { rounds: { type: "string", default: "3" }, only: { type: "string" } },
});

using folder = new TemporaryFolder();
const dataDir = join(folder.path, "data");
await using service = await startServer({
  SERVICE_API_KEYS: API_KEY,
  SERVICE_DATA_DIR: dataDir,
  SERVICE_INGEST_FILE_ROOTS: folder.path,
  SERVICE_WEBHOOK_SECRET: "0123456789abcdef0123456789abcdef",
  SERVICE_VLLM_BASE_URL: "http://127.0.0.1:9",
  SERVICE_STREAM_TTL_SECS: "86400",
});

interface Attack {
  readonly name: string;
  /** What the caller sends in vain or not; a path may have `:id` for the run. */
  readonly path: string;
  readonly body: string;
  readonly headers?: Record<string, string>;
}

const frame = (index: number, flicker: number) =>
  `{"frame_index":${index},"pts_ms":${
    index * 40
  },"perceptual_hash":0,"luma_mean":0,"flicker_score":${flicker},"ghosting_score":0,"noise_variance_score":0}`;
const flickering = Array.from({ length: 4096 }, (_, index) => frame(index, index % 2)).join();
const name = '"'.repeat(256).replaceAll('"', '\\"');
const list = (item: string, bytes: number) =>
  `[${Array(Math.floor(bytes / (item.length + 1))).fill(item).join()}]`;
const program = (instructions: string) =>
  `{"isa_version":1,"program_id":"p","version":1,"instructions":${instructions}}`;
const FITTING = 131_000 * 3; // bytes of `{},` that just keep the limit of values

const ATTACKS: readonly Attack[] = [
  {
    name: "frames: 4096 markers, long names",
    path: "/v1/runs/:id/analyze",
    body: `{"model":"${MODEL}","stream_id":"${name}","trace_id":"${name}","frames":[${flickering}]}`,
  },
  {
    name: "frames: too long a stream_id",
    path: "/v1/runs/:id/analyze",
    body: `{"model":"${MODEL}","stream_id":"${"x".repeat(400_000)}","frames":[${flickering}]}`,
  },
  {
    name: "frames: {} as often as admitted",
    path: "/v1/runs/:id/analyze",
    body: `{"model":"${MODEL}","frames":${list("{}", FITTING)}}`,
  },
  {
    name: "frames: {} 4096 times",
    path: "/v1/runs/:id/analyze",
    body: `{"model":"${MODEL}","frames":${list("{}", 4096 * 3)}}`,
  },
  {
    name: "frames: [] in 4 MiB",
    path: "/v1/runs/:id/analyze",
    body: `{"model":"${MODEL}","frames":${list("[]", 4 * MIB - 200)}}`,
  },
  {
    name: "body: a string of commas",
    path: "/v1/runs/:id/analyze",
    body: `{"model":"${",".repeat(4 * MIB - 200)}"}`,
  },
  {
    name: "body: quotes and backslashes",
    path: "/v1/runs/:id/analyze",
    body: `{"model":"${'\\",'.repeat(MIB)}"}`,
  },
  {
    name: "body: an integer of 4 MiB",
    path: "/v1/runs/:id/analyze",
    body: `{"model":"x","segment_ms":${"9".repeat(4 * MIB - 200)}}`,
  },
  {
    name: "body: long integers",
    path: "/v1/runs/:id/analyze",
    body: `{"model":"x","frames":${list("18446744073709551615", 65_000 * 21)}}`,
  },
  {
    name: "body: unknown fields",
    path: "/v1/runs",
    body: `{${Array.from({ length: 131_000 }, (_, index) => `"${index}":0`).join()}}`,
  },
  { name: "body: one long unknown field", path: "/v1/runs", body: `{"${"x".repeat(4 * MIB - 200)}":0}` },
  { name: "body: nested 2 million deep", path: "/v1/runs", body: "[".repeat(2 * MIB) + "]".repeat(2 * MIB) },
  { name: "trigger: instructions {}", path: "/v1/triggers/validate", body: program(list("{}", FITTING)) },
  {
    name: "trigger: samples",
    path: "/v1/triggers/evaluate",
    body: `{"program":${
      program(
        '[{"op":"load","signal":{"kind":"motion_score"}},{"op":"constant","value":0.5},{"op":"greater_than"},{"op":"jump_if_false","target":5},{"op":"emit","event_type":"e"},{"op":"halt"}]',
      )
    },"samples":${list('{"pts_ms":1,"motion_score":1}', 10_000 * 30)}}`,
  },
  {
    name: "trigger: observations {}",
    path: "/v1/triggers/evaluate",
    body: `{"program":${program('[{"op":"halt"}]')},"samples":[{"pts_ms":1,"observations":${
      list("{}", FITTING)
    }}]}`,
  },
  {
    name: "trigger: observations",
    path: "/v1/triggers/evaluate",
    body: `{"program":${
      program(
        '[{"op":"load","signal":{"kind":"dwell_ms","label":"a","zone":"b"}},{"op":"constant","value":0.5},{"op":"greater_than"},{"op":"jump_if_false","target":5},{"op":"emit","event_type":"e"},{"op":"halt"}]',
      )
    },"samples":[{"pts_ms":1,"observations":${
      list('{"signal":{"kind":"motion_score"},"value":1}', 3 * MIB)
    }}]}`,
  },
  {
    name: "trigger: source of 64 KiB",
    path: "/v1/triggers/compile",
    body: JSON.stringify({ source: "(".repeat(65_536) }),
  },
  {
    name: "trigger: source of operators",
    path: "/v1/triggers/compile",
    body: JSON.stringify({ source: "motion_score > 0.5 and ".repeat(2800) }),
  },
  { name: "infer: batch of {}", path: "/v1/infer/batch", body: `{"requests":${list("{}", FITTING)}}` },
  {
    name: "infer: batch of 256 prompts",
    path: "/v1/infer/batch",
    body: `{"requests":${
      list(`{"model":"${MODEL}","prompt":"${"x".repeat(16_000)}","timeout_ms":50}`, 256 * 16_080)
    }}`,
  },
  {
    name: "infer: schema of 64 KiB",
    path: "/v1/infer",
    body: `{"model":"${MODEL}","prompt":"x","output_schema":{"enum":${list("{}", 65_000)}}}`,
  },
  {
    name: "reason: schema of 1,000 parts",
    path: "/v1/runs/:id/reason",
    body: `{"model":"${MODEL}","source_uri":"x.mp4","output_schema":{"allOf":${
      list('{"type":"object"}', 990 * 18)
    }}}`,
  },
  {
    name: "reason: schema of patterns",
    path: "/v1/runs/:id/reason",
    body: `{"model":"${MODEL}","source_uri":"x.mp4","output_schema":{"allOf":${
      list('{"pattern":"(a{1,90}){1,9}"}', 900 * 29)
    }}}`,
  },
  {
    name: "ingest: source_uri of 4 MiB",
    path: "/v1/runs/:id/ingest",
    body: `{"source_uri":"${"a/../".repeat(800_000)}x.mp4"}`,
  },
  {
    name: "ingest: source_uri of 4 KiB",
    path: "/v1/runs/:id/ingest",
    body: `{"source_uri":"${"a/../".repeat(800)}x.mp4"}`,
  },
  {
    name: "webhook: event kinds",
    path: "/v1/runs/:id/webhooks",
    body: `{"url":"https://example.com/","event_kinds":${list('""', 4 * MIB - 200)}}`,
  },
  {
    name: "webhook: url of 4 MiB",
    path: "/v1/runs/:id/webhooks",
    body: `{"url":"https://${"a.".repeat(2 * MIB - 200)}com/"}`,
  },
  {
    name: "policy: schema, nested",
    path: "/v1/runs/:id/policies",
    body: `{"output_schema":${'{"not":'.repeat(5000)}{}${"}".repeat(5000)}}`,
  },
  { name: "search: query of 1 KiB", path: "/v1/search", body: JSON.stringify({ query: "ab".repeat(512) }) },
  {
    name: "feedback: 64 KiB of control characters",
    path: "/v1/runs/:id/feedback",
    body: `{"rating":1,"category":"c","feedback":"${"\\u0001".repeat(65_536)}"}`,
  },
  {
    name: "query: kind of 4 MiB",
    path: "/v1/query",
    body: `{"run_id":":id","kind":"${"k".repeat(4 * MIB - 200)}"}`,
  },
  {
    name: "header: x-tenant-id of 60 KB",
    path: "/v1/runs",
    body: "{}",
    headers: { "x-tenant-id": "t".repeat(60_000) },
  },
];

interface Measured {
  readonly name: string;
  readonly sentBytes: number;
  readonly status: number;
  readonly ms: number;
  readonly busyMs: number;
  readonly memoryBytes: number;
  readonly logBytes: number;
  readonly answerBytes: number;
}

const measured: Measured[] = [];
for (const attack of ATTACKS.filter((each) => values.only === undefined || each.name.includes(values.only))) {
  const rounds: Measured[] = [];
  for (let round = 0; round < Number(values.rounds); round++) rounds.push(await measure(attack));
  // The first round pays for code that is compiled then; of the others the median.
  const later = rounds.slice(rounds.length > 1 ? 1 : 0).toSorted((one, other) => one.busyMs - other.busyMs);
  measured.push(later[(later.length - 1) >> 1]!);
  console.error(line(measured.at(-1)!));
}
console.log(heading());
for (const row of measured.toSorted((one, other) => score(other) - score(one))) console.log(line(row));
await service[Symbol.asyncDispose]();
Deno.exit(0);

async function measure({ name, path, body, headers }: Attack): Promise<Measured> {
  const runId = await newRun();
  const text = body.replaceAll(":id", runId);
  const sentBytes = new TextEncoder().encode(text).length + path.length +
    JSON.stringify(headers ?? {}).length;
  resetPeak();
  const [memory, log] = [statusBytes("VmRSS"), logBytes()];
  const pulse = startPulse();
  await pause(50);
  const start = performance.now();
  const response = await send(path.replace(":id", runId), text, headers);
  const answer = await response.arrayBuffer();
  const ms = performance.now() - start;
  const busyMs = await pulse.stop();
  const result = {
    name,
    sentBytes,
    status: response.status,
    ms,
    busyMs,
    memoryBytes: Math.max(0, statusBytes("VmHWM") - memory),
    logBytes: logBytes() - log,
    answerBytes: answer.byteLength,
  };
  await (await fetch(`${service.url}/v1/runs/${runId}`, {
    method: "DELETE",
    headers: { "x-api-key": API_KEY },
  }))
    .body?.cancel();
  return result;
}

async function newRun(): Promise<string> {
  const response = await send("/v1/runs", "{}");
  return (await response.json()).run_id;
}

function send(path: string, body: string, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(`${service.url}${path}`, {
    method: "POST",
    headers: { "x-api-key": API_KEY, "content-type": "application/json", ...headers },
    body,
  });
}

/** Asks for health without a pause until it is stopped; the longest wait, from a Worker so that this process adds none. */
function startPulse(): { stop(): Promise<number> } {
  const source = `
    let longest = 0, isStopped = false;
    onmessage = () => { isStopped = true; };
    while (!isStopped) {
      const start = performance.now();
      await (await fetch("${service.url}/v1/health")).body.cancel();
      longest = Math.max(longest, performance.now() - start);
      await new Promise((resolve) => setTimeout(resolve, 1));
    }
    postMessage(longest);
  `;
  const url = URL.createObjectURL(new Blob([source], { type: "application/javascript" }));
  const worker = new Worker(url, { type: "module" });
  return {
    stop: () =>
      new Promise((resolve) => {
        worker.onmessage = ({ data }) => {
          worker.terminate();
          resolve(data);
        };
        worker.postMessage("stop");
      }),
  };
}

function resetPeak(): void {
  Deno.writeTextFileSync(`/proc/${service.pid}/clear_refs`, "5");
}

function statusBytes(field: string): number {
  const text = Deno.readTextFileSync(`/proc/${service.pid}/status`);
  return Number(new RegExp(`^${field}:\\s+(\\d+) kB`, "m").exec(text)![1]) * 1024;
}

function logBytes(): number {
  const timeline = join(dataDir, "timeline");
  return [...Deno.readDirSync(timeline)].filter((entry) => entry.name.endsWith(".wal"))
    .reduce((sum, entry) => sum + Deno.statSync(join(timeline, entry.name)).size, 0);
}

function score(row: Measured): number {
  return row.busyMs;
}

function heading(): string {
  return "request                                      sent     status   whole ms   busy ms   memory     log   answer";
}

function line(row: Measured): string {
  const kilobytes = (bytes: number) => `${Math.round(bytes / 1000)}k`.padStart(8);
  return `${row.name.padEnd(40)} ${kilobytes(row.sentBytes)}   ${row.status}   ${
    row.ms.toFixed(0).padStart(8)
  } ${row.busyMs.toFixed(0).padStart(8)} ${kilobytes(row.memoryBytes)} ${kilobytes(row.logBytes)} ${
    kilobytes(row.answerBytes)
  }`;
}
