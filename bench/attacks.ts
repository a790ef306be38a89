/**
 * What another caller waits, and what the service grows by, while one caller attacks it: each attack of
 * attacks/list.ts for some seconds. Both are compared with what they may be; the exit code is 1 where one of
 * them is more.
 *
 *     ./scripts/deno run -A bench/attacks.ts [--seconds 20] [--only "event streams"] [--bounds memory] [--frames 100000]
 *
 * `--frames` is the length of the decode that is read. With `--bounds memory` the waits are told and not
 * judged, as on a machine that does other work.
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { startServer } from "../scripts/server.ts";
import { ATTACKS, EVENTS } from "./attacks/list.ts";
import type { AttackOrder } from "./attacks/worker.ts";
import { longClip } from "./long_clip.ts";
import { resetPeak, statusBytes } from "./pulse.ts";
import { CLIP_CACHE, cpuMs, load, pause, percentile, TemporaryFolder } from "./support.ts";

/** The longest that a small request of another caller may wait, in milliseconds. */
const WAIT_MAX_MS = 300;
/** The most that the memory of the service may grow by, in bytes. */
const GROWTH_MAX_BYTES = 100e6;

const [ATTACKER, OTHER] = ["attacker-key-0000000000", "other-key-0000000000000"];
/** Milliseconds between two requests of the other caller. */
const REST_MS = 10;
/** A model's answer that takes long to check. */
const ANSWER = JSON.stringify(Array.from({ length: 3000 }, (_, i) => `${"a".repeat(30)}${i}!`));

const { values: { seconds, only, bounds, frames } } = parseArgs({
  args: Deno.args,
  options: {
    seconds: { type: "string", default: "20" },
    only: { type: "string" },
    bounds: { type: "string", default: "all" },
    frames: { type: "string", default: "100000" },
  },
});

const clip = await longClip(Number(frames));
using folder = new TemporaryFolder();
await using model = Deno.serve({ port: 0, hostname: "127.0.0.1", onListen: () => {} }, () =>
  Response.json({
    choices: [{ index: 0, message: { role: "assistant", content: ANSWER }, finish_reason: "stop" }],
    usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 },
  }));
await using service = await startServer({
  SERVICE_API_KEYS: `${ATTACKER},${OTHER}`,
  SERVICE_DATA_DIR: join(folder.path, "data"),
  SERVICE_INGEST_FILE_ROOTS: CLIP_CACHE,
  SERVICE_VLLM_BASE_URL: `http://127.0.0.1:${model.addr.port}`,
});
const { hostname, port } = new URL(service.url);
const runId = await newRun(ATTACKER);
const otherRunId = await newRun(OTHER);
await send(ATTACKER, `/v1/runs/${runId}/ingest`, { source_uri: clip, max_frames: Number(frames) });
for (let i = 0; i < EVENTS; i++) {
  await send(ATTACKER, `/v1/runs/${runId}/feedback`, {
    rating: 1,
    category: "c",
    feedback: "x".repeat(60_000),
  });
}

const failures: string[] = [];
console.log(`${"attack".padEnd(36)} asked    p50    p99   longest ms   memory   processor s`);
for (const { name } of ATTACKS.filter((each) => only === undefined || each.name.includes(only))) {
  const found = await measured(name);
  if (bounds !== "memory" && found.longestMs > WAIT_MAX_MS) {
    failures.push(`${name}: another caller waited ${found.longestMs.toFixed(0)} ms, at most ${WAIT_MAX_MS}`);
  }
  if (found.grownBytes > GROWTH_MAX_BYTES) {
    failures.push(
      `${name}: memory grew by ${megabytes(found.grownBytes)} MB, at most ${megabytes(GROWTH_MAX_BYTES)}`,
    );
  }
}
console.log(`load ${load()}`);
for (const failure of failures) console.log(failure);
if (failures.length > 0) Deno.exitCode = 1;

async function measured(name: string): Promise<{ longestMs: number; grownBytes: number }> {
  resetPeak(service.pid);
  const [before, cpu] = [statusBytes(service.pid, "VmRSS"), cpuMs(service.pid)];
  const order = {
    name,
    durationMs: Number(seconds) * 1000,
    hostname,
    port: Number(port),
    key: ATTACKER,
    runId,
  };
  const attack = attacked(order);
  const waits: number[] = [];
  let isOver = false;
  attack.finally(() => isOver = true).catch(() => {});
  while (!isOver) {
    const start = performance.now();
    const response = await fetch(`${service.url}/v1/runs/${otherRunId}`, { headers: { "x-api-key": OTHER } });
    await response.text();
    if (response.status !== 200) failures.push(`${name}: another caller got ${response.status}`);
    waits.push(performance.now() - start);
    await pause(REST_MS);
  }
  await attack;
  const grownBytes = Math.max(0, statusBytes(service.pid, "VmHWM") - before);
  const at = (share: number) => percentile(waits, share).toFixed(0).padStart(6);
  console.log(
    `${name.padEnd(36)} ${String(waits.length).padStart(5)} ${at(0.5)} ${at(0.99)} ${at(1).padStart(12)} ${
      `${megabytes(grownBytes)} MB`.padStart(8)
    } ${((cpuMs(service.pid) - cpu) / 1000).toFixed(1).padStart(13)}`,
  );
  return { longestMs: percentile(waits, 1), grownBytes };
}

/** Ends when the attack has ended; throws where it could not be made. */
function attacked(order: AttackOrder): Promise<void> {
  const worker = new Worker(new URL("attacks/worker.ts", import.meta.url), { type: "module" });
  const ended = Promise.withResolvers<void>();
  worker.onmessage = ({ data }: MessageEvent<string | null>) => {
    worker.terminate();
    if (data === null) ended.resolve();
    else ended.reject(new Error(`${order.name}: ${data}`));
  };
  worker.postMessage(order);
  return ended.promise;
}

async function newRun(key: string): Promise<string> {
  return (await (await send(key, "/v1/runs", {})).json()).run_id;
}

async function send(key: string, path: string, body: unknown): Promise<Response> {
  const response = await fetch(`${service.url}${path}`, {
    method: "POST",
    headers: { "x-api-key": key, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${path}: ${response.status} ${await response.text()}`);
  return response;
}

function megabytes(bytes: number): string {
  return (bytes / 1e6).toFixed(0);
}
