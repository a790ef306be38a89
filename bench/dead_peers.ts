/**
 * The latency of requests while the mirror database and the trace collector are dead, over the same service
 * without them.
 *
 * Dead is a peer that takes connections and never answers, which is worse than one that refuses them. Each
 * service is a process of its own; they alternate in short turns, so that other load on the machine affects
 * both. Eight callers each have one request at a time and rest between two, so that the service is not
 * saturated: feedback, which the mirror wants, and the state of a run, which it does not. Every request makes
 * a span.
 *
 *     ./scripts/deno run -A bench/dead_peers.ts [--rounds 5] [--seconds 3]
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Server, startServer } from "../scripts/server.ts";
import { load, pause, percentile, report, TemporaryFolder } from "./support.ts";

const API_KEY = "bench-key";
const CALLERS = 8;
const TURN_MS = 250;
/** Milliseconds between two requests of one caller. */
const REST_MS = 10;

const { values } = parseArgs({
  args: Deno.args,
  options: { rounds: { type: "string", default: "5" }, seconds: { type: "string", default: "3" } },
});

using folder = new TemporaryFolder();
const silent = Deno.listen({ hostname: "127.0.0.1", port: 0 });
void (async () => {
  const kept: Deno.Conn[] = [];
  for await (const connection of silent) kept.push(connection);
})().catch(() => {});

interface Target {
  readonly server: Server;
  readonly runId: string;
}

async function start(name: string, env: Record<string, string>): Promise<Target> {
  const server = await startServer({
    SERVICE_API_KEYS: API_KEY,
    SERVICE_DATA_DIR: join(folder.path, name),
    ...env,
  });
  const { run_id } = await (await call(server, "POST", "/v1/runs", {})).json();
  return { server, runId: run_id };
}

function call({ url }: Server, method: string, path: string, body?: unknown): Promise<Response> {
  const headers = { "x-api-key": API_KEY, "content-type": "application/json" };
  return fetch(`${url}${path}`, {
    method,
    headers,
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
}

const REQUESTS = {
  feedback: ({ server, runId }: Target) =>
    call(server, "POST", `/v1/runs/${runId}/feedback`, { rating: 7, category: "speed" }),
  "state of a run": ({ server, runId }: Target) => call(server, "GET", `/v1/runs/${runId}/state`),
};

async function turn(
  target: Target,
  request: (target: Target) => Promise<Response>,
  tookMs: number[],
): Promise<void> {
  const endMs = performance.now() + TURN_MS;
  await Promise.all(Array.from({ length: CALLERS }, async () => {
    while (performance.now() < endMs) {
      const startedMs = performance.now();
      const answer = await request(target);
      await answer.arrayBuffer();
      if (answer.status !== 200) throw new Error(`unexpected answer: ${answer.status}`);
      tookMs.push(performance.now() - startedMs);
      await pause(REST_MS);
    }
  }));
}

const without = await start("without", {});
const dead = await start("dead", {
  SERVICE_MIRROR_URL: `postgres://mirror:secret@127.0.0.1:${silent.addr.port}/mirror`,
  SERVICE_TRACES_ENDPOINT: `http://127.0.0.1:${silent.addr.port}`,
});

for (const [name, request] of Object.entries(REQUESTS)) {
  const ours: number[] = [];
  const limit: number[] = [];
  for (let round = 0; round <= Number(values.rounds); round++) {
    const deadMs: number[] = [];
    const withoutMs: number[] = [];
    for (let turns = 0; turns < Number(values.seconds) * 1000 / TURN_MS / 2; turns++) {
      await turn(dead, request, deadMs);
      await turn(without, request, withoutMs);
    }
    if (round === 0) continue; // a warm-up
    ours.push(percentile(deadMs, 0.99));
    limit.push(percentile(withoutMs, 0.99));
  }
  report({
    ...{ name: `dead peers: ${name}, p99`, unit: "ms", better: "less", ours },
    limit: { name: "without them", values: limit },
  });
}
console.log(`load ${load()}`);
for (const { server } of [dead, without]) await server[Symbol.asyncDispose]();
silent.close();
Deno.exit(0);
