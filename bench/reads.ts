/**
 * Many large reads at once: what others wait meanwhile, and what the service grows by. A second connection
 * asks for the health of the service all the time; its longest wait is the longest piece of work on the HTTP
 * thread.
 *
 *     deno run -A bench/reads.ts [--frames 100000] [--runs 70000] [--clients 40] [--only name]
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { principalKeyOf } from "../src/model/identifiers.ts";
import { startServer } from "../scripts/server.ts";
import { fillTimeline } from "./filled_timeline.ts";
import { longClip } from "./long_clip.ts";
import { resetPeak, startPulse, statusBytes } from "./pulse.ts";
import { CLIP_CACHE, pause, percentile, TemporaryFolder } from "./support.ts";

const { values } = parseArgs({
  args: Deno.args,
  options: {
    frames: { type: "string", default: "100000" },
    runs: { type: "string", default: "70000" },
    clients: { type: "string", default: "40" },
    only: { type: "string", default: "" },
  },
});
const [frames, runs, clients] = [values.frames, values.runs, values.clients].map(Number) as [
  number,
  number,
  number,
];
const MODEL = "Qwen/Qwen3-VL-4B-Instruct";
const [OWN_KEY, KEY_OF_MANY] = ["bench-key", "bench-key-of-many-runs"];
const UNREAD_MS = 5_000;

const clip = await longClip(frames);
using folder = new TemporaryFolder();
const dataDir = join(folder.path, "data");
await fillTimeline({ dataDir, events: 2 * runs, runs, principalOf: () => principalKeyOf(KEY_OF_MANY) });
const service = await startServer({
  SERVICE_API_KEYS: `${OWN_KEY},${KEY_OF_MANY}`,
  SERVICE_DATA_DIR: dataDir,
  SERVICE_INGEST_FILE_ROOTS: CLIP_CACHE,
  SERVICE_STREAM_TTL_SECS: "86400",
});

const { run_id: runId } = await (await send("POST", "/v1/runs", "{}")).json();
const source = { source_uri: clip, max_frames: frames, sampling_policy: "fixed", fixed_fps: 120 };
const decodes: number[] = [];
for (let decode = 0; decode < 2; decode++) {
  const answer = await send("POST", `/v1/runs/${runId}/ingest`, JSON.stringify(source));
  if (!answer.ok) throw new Error(await answer.text());
  await answer.body?.cancel();
  decodes.push((await (await send("GET", `/v1/runs/${runId}/signals?points=1`)).json()).source_seq);
}

const all = <Answer>(work: (client: number) => Promise<Answer>) =>
  Promise.all(Array.from({ length: clients }, (_, client) => work(client)));

const READS: Readonly<Record<string, () => Promise<string>>> = {
  "signals of two decodes by turns": async () =>
    told(
      await all((client) =>
        read("GET", `/v1/runs/${runId}/signals?points=1&source_seq=${decodes[client % 2]}`)
      ),
    ),
  "analyses that nobody reads": async () => {
    const connections = await all(analysisUnread);
    await pause(UNREAD_MS);
    connections.forEach((connection) => connection.close());
    return `${clients} sent`;
  },
  "whole lists of all runs": async () =>
    told(await all(() => read("GET", "/v1/runs", undefined, KEY_OF_MANY))),
  "first pages of all runs": async () =>
    told(await all(() => read("GET", "/v1/runs?limit=100", undefined, KEY_OF_MANY))),
};

console.log(
  "reads                              took ms   health p50    p99   longest ms   memory over the start",
);
for (const [name, reads] of Object.entries(READS)) {
  if (!name.includes(values.only)) continue;
  await pause(1_000);
  resetPeak(service.pid);
  const baseBytes = statusBytes(service.pid, "VmRSS");
  const pulse = startPulse(service.url);
  await pause(200);
  const startedMs = performance.now();
  const result = await reads();
  const tookMs = performance.now() - startedMs;
  const waits = await pulse.stop();
  const at = (share: number) => percentile(waits, share).toFixed(1).padStart(7);
  const grownMb = (statusBytes(service.pid, "VmHWM") - baseBytes) / 1e6;
  console.log(
    `${name.padEnd(32)} ${tookMs.toFixed(0).padStart(9)}   ${at(0.5)} ${at(0.99)} ${at(1)}   ${
      grownMb.toFixed(0).padStart(8)
    } MB   ${result}`,
  );
}
await service[Symbol.asyncDispose]();
folder[Symbol.dispose]();
Deno.exit(0);

function send(method: string, path: string, body?: string, key = OWN_KEY): Promise<Response> {
  const headers = { "x-api-key": key, "content-type": "application/json" };
  return fetch(`${service.url}${path}`, { method, headers, ...(body !== undefined && { body }) });
}

/** Reads an answer to its end; gives its status. */
async function read(method: string, path: string, body?: string, key?: string): Promise<number> {
  const response = await send(method, path, body, key);
  for await (const _ of response.body ?? []);
  return response.status;
}

/** Statuses with their counts, such as `200: 37, 503: 3`. */
function told(statuses: readonly number[]): string {
  return [...Map.groupBy(statuses, (status) => status)].map(([status, all]) => `${status}: ${all.length}`)
    .join(", ");
}

async function analysisUnread(): Promise<Deno.TcpConn> {
  const { hostname, port } = new URL(service.url);
  const connection = await Deno.connect({ hostname, port: Number(port) });
  const body = JSON.stringify({ model: MODEL });
  await connection.write(
    new TextEncoder().encode(
      `POST /v1/runs/${runId}/analyze HTTP/1.1\r\nhost: x\r\nx-api-key: ${OWN_KEY}\r\n` +
        `content-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
    ),
  );
  await connection.read(new Uint8Array(100)); // the answer has begun
  return connection;
}
