/**
 * Requests with the largest effects: for each, how long the HTTP thread is busy in one piece, and how much
 * memory and log it costs, beside the bytes that were sent. A second connection asks for the health of the
 * service all the time; its longest wait is the longest piece. The table of
 * docs/security/load.md#large-requests is made of it.
 *
 *     deno run -A bench/large_requests.ts [--rounds 3] [--only name]
 *
 * With `--seconds 60` one caller sends each of them in a loop for so long instead, and the health of the
 * service is asked for every 10 ms, whether the last answer has come or not: the wait of these requests, and
 * what the process grew by at its peak.
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { startServer } from "../scripts/server.ts";
import { type Attack, ATTACKS, LONGEST_FRAMES } from "./attack_list.ts";
import { longClip } from "./long_clip.ts";
import { resetPeak, startPulse, statusBytes } from "./pulse.ts";
import { CLIP_CACHE, pause, percentile, TemporaryFolder } from "./support.ts";

const API_KEY = "bench-key";

const { values } = parseArgs({
  args: Deno.args,
  options: {
    rounds: { type: "string", default: "3" },
    seconds: { type: "string" },
    only: { type: "string" },
  },
});

await longClip(LONGEST_FRAMES);

const folder = new TemporaryFolder();
const dataDir = join(folder.path, "data");
await using service = await startServer({
  SERVICE_API_KEYS: API_KEY,
  SERVICE_DATA_DIR: dataDir,
  SERVICE_INGEST_FILE_ROOTS: CLIP_CACHE,
  SERVICE_WEBHOOK_SECRET: "0123456789abcdef0123456789abcdef",
  SERVICE_VLLM_BASE_URL: "http://127.0.0.1:9",
  SERVICE_STREAM_TTL_SECS: "86400",
});

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

const attacks = ATTACKS.filter((each) => values.only === undefined || each.name.includes(values.only));
if (values.seconds === undefined) await measureOnce(attacks);
else await measureLoops(attacks, Number(values.seconds) * 1000);
await service[Symbol.asyncDispose]();
folder[Symbol.dispose]();
Deno.exit(0);

async function measureOnce(attacks: readonly Attack[]): Promise<void> {
  const measured: Measured[] = [];
  for (const attack of attacks) {
    const rounds: Measured[] = [];
    for (let round = 0; round < Number(values.rounds); round++) rounds.push(await measure(attack));
    // The first round pays for code that is compiled then; of the others the median.
    const later = rounds.slice(rounds.length > 1 ? 1 : 0).toSorted((one, other) => one.busyMs - other.busyMs);
    measured.push(later[(later.length - 1) >> 1]!);
    console.error(line(measured.at(-1)!));
  }
  console.log(heading());
  for (const row of measured.toSorted((one, other) => score(other) - score(one))) console.log(line(row));
}

async function measureLoops(attacks: readonly Attack[], durationMs: number): Promise<void> {
  await (await send("/v1/runs/none/analyze", "{}")).body?.cancel(); // what every request loads
  const baseBytes = statusBytes(service.pid, "VmRSS");
  console.log(
    "request                                  count   health p50    p99   longest ms   memory over the start",
  );
  for (const attack of attacks) {
    resetPeak(service.pid);
    const pulse = startPulse(service.url, 10);
    await pause(50);
    const end = performance.now() + durationMs;
    let count = 0;
    for (; count === 0 || performance.now() < end; count++) await attackOnce(attack);
    const waits = await pulse.stop();
    const at = (share: number) => percentile(waits, share).toFixed(0).padStart(6);
    const grownMb = (statusBytes(service.pid, "VmHWM") - baseBytes) / 1e6;
    console.log(
      `${attack.name.padEnd(40)} ${String(count).padStart(5)}   ${at(0.5)} ${at(0.99)} ${at(1)}   ${
        grownMb.toFixed(0).padStart(8)
      } MB`,
    );
  }
}

async function measure(attack: Attack): Promise<Measured> {
  const { name, path, headers } = attack;
  const runId = await newRun();
  await prepare(attack, runId);
  const sentBytes = new TextEncoder().encode(attack.body).length + path.length +
    JSON.stringify(headers ?? {}).length;
  resetPeak(service.pid);
  const [memory, log] = [statusBytes(service.pid, "VmRSS"), logBytes()];
  const pulse = startPulse(service.url);
  await pause(50);
  const start = performance.now();
  const { status, answerBytes, session } = await sendAttack(attack, runId);
  const ms = performance.now() - start;
  const busyMs = Math.max(...await pulse.stop());
  const memoryBytes = Math.max(0, statusBytes(service.pid, "VmHWM") - memory);
  const result = {
    name,
    sentBytes,
    status,
    ms,
    busyMs,
    memoryBytes,
    logBytes: logBytes() - log,
    answerBytes,
  };
  await remove(runId, session);
  return result;
}

async function attackOnce(attack: Attack): Promise<void> {
  const runId = await newRun();
  await prepare(attack, runId);
  const { session } = await sendAttack(attack, runId);
  await remove(runId, session);
}

async function prepare({ before }: Attack, runId: string): Promise<void> {
  if (before === undefined) return;
  const response = await send(before.path.replace(":id", runId), before.body);
  if (!response.ok) throw new Error(`${before.path}: ${response.status} ${await response.text()}`);
  await response.body?.cancel();
}

async function sendAttack({ path, body, headers }: Attack, runId: string) {
  const response = await send(path.replace(":id", runId), body.replaceAll(":id", runId), headers);
  let answerBytes = 0;
  for await (const part of response.body ?? []) answerBytes += part.byteLength;
  return { status: response.status, answerBytes, session: response.headers.get("location") };
}

async function remove(runId: string, session: string | null): Promise<void> {
  for (const path of [`/v1/runs/${runId}`, ...(session?.startsWith("/v1/stream/whip/") ? [session] : [])]) {
    const headers = { "x-api-key": API_KEY };
    await (await fetch(`${service.url}${path}`, { method: "DELETE", headers })).body?.cancel();
  }
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
