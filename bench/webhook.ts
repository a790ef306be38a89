/**
 * Webhook deliveries per second to one receiver that answers at once, compared with bare sequential POSTs of
 * the same bytes to the same receiver with `fetch`; and the delay from commit to arrival of a working webhook
 * while ten others never get an answer.
 *
 * The service, the receiver and this client are separate processes. For the throughput, the receiver does not
 * answer the first event until all events are committed, so that only deliveries run while the time is
 * measured.
 *
 *     ./scripts/deno run -A bench/webhook.ts [--events 4000] [--rounds 3] [--seconds 10]
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { startListening, startServer } from "../scripts/server.ts";
import { median, pause, percentile, report, TemporaryFolder } from "./support.ts";

const API_KEY = "bench-key";
const HANGING = 10;
const EVENTS_A_SECOND = 50;

interface Arrival {
  readonly seq: number;
  readonly ptsMs: number;
  readonly atMs: number;
}

const { values } = parseArgs({
  args: Deno.args,
  options: {
    events: { type: "string", default: "4000" },
    rounds: { type: "string", default: "3" },
    seconds: { type: "string", default: "10" },
  },
});

using folder = new TemporaryFolder();
await using receiver = await startListening(
  [fileURLToPath(new URL("webhook_receiver.ts", import.meta.url))],
  {},
);
await using service = await startServer({
  SERVICE_API_KEYS: API_KEY,
  SERVICE_DATA_DIR: join(folder.path, "data"),
  SERVICE_WEBHOOK_SECRET: "a root secret of at least thirty-two bytes",
  SERVICE_ALLOW_PRIVATE_WEBHOOKS: "true",
});

const deliveries: number[] = [];
const bare: number[] = [];
for (let round = 0; round < Number(values.rounds); round++) {
  deliveries.push(await throughput(Number(values.events)));
  bare.push(await bareThroughput(Number(values.events)));
}
const [ours, limit] = [median(deliveries), median(bare)];
console.log(`deliveries in order        ${Math.round(ours)} a second   (at least 300, goal 1000)`);
console.log(
  `bare sequential fetch      ${Math.round(limit)} a second   deliveries are ${
    (ours / limit).toFixed(2)
  } of it`,
);

report({
  ...{ name: "webhook: deliveries in order", unit: "/s", better: "more", ours: deliveries },
  limit: { name: "bare sequential fetch", values: bare },
});

const lags = await lagsWhileOthersHang(Number(values.seconds));
const at = (share: number) => percentile(lags, share).toFixed(1);
console.log(
  `lag while ${HANGING} hooks hang    p50 ${at(0.5)} ms, p99 ${at(0.99)} ms, worst ${at(1)} ms, ` +
    `${lags.length} events   (p99 at most 2000 ms, goal 500 ms)`,
);

report({
  ...{ name: "webhook: lag while ten hooks hang, p99", unit: "ms", better: "less" },
  ...{ ours: [percentile(lags, 0.99)], limit: null },
});

/** Deliveries per second of `count` events that were all committed before. */
async function throughput(count: number): Promise<number> {
  await fetch(`${receiver.url}/close`);
  const runId = await newRun();
  await register(runId, "/hook");
  await commit(runId, count);
  await fetch(`${receiver.url}/open`);
  const arrivals = await arrived(count);
  arrivals.forEach(({ seq }, index) => {
    if (index > 0 && seq <= arrivals[index - 1]!.seq) throw new Error(`event ${seq} is out of order`);
  });
  await api("DELETE", `/v1/runs/${runId}`);
  return (count - 1) / (arrivals.at(-1)!.atMs - arrivals[0]!.atMs) * 1000;
}

/**
 * The upper limit: the same runtime posts a body of the same size with the same headers, and keeps no record.
 */
async function bareThroughput(count: number): Promise<number> {
  const id = `run-${"0".repeat(32)}:1000`;
  const body = new TextEncoder().encode(
    `{"specversion":"1.0","id":"${id}","source":"/v1/runs/run-${"0".repeat(32)}",` +
      `"type":"dev.service.timeline.keepalive_refreshed","subject":"stream-0","datacontenttype":"application/json",` +
      `"sequence":1000,"pts_ms":1763658553000,"data":{"request_id":"req-0000000000000001"}}`,
  );
  const headers = {
    "content-type": "application/cloudevents+json",
    "x-service-event-id": id,
    "x-service-signature": `v1=${"0".repeat(64)}`,
    "webhook-id": id,
    "webhook-timestamp": "1763658553",
    "webhook-signature": `v1,${"0".repeat(43)}=`,
  };
  const startedMs = performance.now();
  for (let number = 0; number < count; number++) {
    const response = await fetch(`${receiver.url}/bare`, { method: "POST", headers, body });
    await response.body?.cancel();
  }
  return count / (performance.now() - startedMs) * 1000;
}

/** Milliseconds from the commit of each event to its arrival. */
async function lagsWhileOthersHang(seconds: number): Promise<number[]> {
  const runId = await newRun();
  for (let number = 0; number < HANGING; number++) await register(runId, "/hang");
  await fetch(`${receiver.url}/close`);
  await fetch(`${receiver.url}/open`);
  await register(runId, "/hook");
  const count = seconds * EVENTS_A_SECOND;
  for (let number = 0; number < count; number++) {
    await commit(runId, 1);
    await pause(1000 / EVENTS_A_SECOND);
  }
  const arrivals = await arrived(count);
  return arrivals.map(({ ptsMs, atMs }) => atMs - ptsMs);
}

async function arrived(count: number): Promise<Arrival[]> {
  while (true) {
    const arrivals: Arrival[] = await (await fetch(`${receiver.url}/times`)).json();
    if (arrivals.length >= count) return arrivals;
    await pause(200);
  }
}

async function newRun(): Promise<string> {
  return (await api("POST", "/v1/runs", {})).run_id;
}

async function register(runId: string, path: string): Promise<void> {
  await api("POST", `/v1/runs/${runId}/webhooks`, {
    url: `${receiver.url}${path}`,
    event_kinds: ["keepalive_refreshed"],
  });
}

async function commit(runId: string, count: number): Promise<void> {
  for (let number = 0; number < count; number++) await api("POST", `/v1/runs/${runId}/keepalive`);
}

async function api(method: string, path: string, body?: unknown) {
  const response = await fetch(`${service.url}${path}`, {
    method,
    headers: { "x-api-key": API_KEY, "content-type": "application/json" },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${await response.text()}`);
  return await response.json();
}
