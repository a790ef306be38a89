/**
 * Small requests per second to the service, and its processor time for one, compared with bare `Deno.serve`.
 *
 * Each server is a process of its own, and the client is this process: 32 keep-alive connections with one
 * request at a time on each, no pipelining. The servers alternate, so that other load on the machine affects
 * both. Prints medians over the rounds. Creating and deleting a run are two requests, and count as two. The
 * client takes more time for a request than a bare server, so the ratio of the processor times is the
 * stricter one.
 *
 *     ./scripts/deno run -A bench/http.ts [--rounds 5] [--seconds 2]
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Server, startListening, startServer } from "../scripts/server.ts";
import { cpuMs, load, median, report } from "./support.ts";

const API_KEY = "bench-key";
const CONNECTIONS = 32;

const { values } = parseArgs({
  args: Deno.args,
  options: { rounds: { type: "string", default: "5" }, seconds: { type: "string", default: "2" } },
});

/**
 * The upper limit: the same runtime with an answer that is ready before the request, without and with the
 * headers and the length of a real answer. Above 512 bytes of headers and body the runtime sends an answer in
 * two parts.
 */
const BARE = `
  const plain = { "content-type": "application/json" };
  const secured = {
    ...plain,
    "x-content-type-options": "nosniff",
    "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
    "cache-control": "no-store",
  };
  const state = JSON.stringify({ request_id: "req-0000000000000001", run_id: "run-" + "0".repeat(32), state: "pending" });
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, ({ url }) =>
    url.endsWith("/secured") ? new Response(state, { headers: secured }) : new Response('{"status":"ok"}', { headers: plain }));
  console.log("listening on http://127.0.0.1:" + server.addr.port);
`;

const dataDir = Deno.makeTempDirSync({ prefix: "service-bench-" });
const bareFile = join(dataDir, "bare.ts");
Deno.writeTextFileSync(bareFile, BARE);
await using bare = await startListening([bareFile], {});
await using service = await startServer({
  SERVICE_API_KEYS: `${API_KEY},another-key`,
  SERVICE_DATA_DIR: join(dataDir, "data"),
  SERVICE_ACTIVE_STREAM_LIMIT: String(2 * CONNECTIONS),
});
const created = await fetch(`${service.url}/v1/runs`, {
  method: "POST",
  headers: { "x-api-key": API_KEY, "content-type": "application/json" },
  body: "{}",
});
const { run_id } = await created.json();

/** What a client does again and again. */
interface Exchange {
  /** How many requests the exchange is. */
  readonly requests: number;
  /** Returns when all of them are answered. */
  readonly run: (connection: Deno.TcpConn, buffer: Uint8Array) => Promise<unknown>;
}

const get = (url: string, path: string, key = API_KEY): Exchange => {
  const request = requestText("GET", url, path, key);
  return { requests: 1, run: (connection, buffer) => exchanged(connection, buffer, request) };
};
const createAndDelete: Exchange = {
  requests: 2,
  run: async (connection, buffer) => {
    const made = await exchanged(
      connection,
      buffer,
      requestText("POST", service.url, "/v1/runs", API_KEY, "{}"),
    );
    const path = `/v1/runs/${JSON.parse(made).run_id}`;
    await exchanged(connection, buffer, requestText("DELETE", service.url, path, API_KEY));
  },
};
const targets: Record<string, [server: Server, exchange: Exchange]> = {
  "bare Deno.serve": [bare, get(bare.url, "/")],
  "the same with our headers": [bare, get(bare.url, "/secured")],
  "GET /v1/health": [service, get(service.url, "/v1/health")],
  "GET /v1/runs (none)": [service, get(service.url, "/v1/runs", "another-key")],
  "GET /v1/runs/:id/state": [service, get(service.url, `/v1/runs/${run_id}/state`)],
  "GET /v1/runs/:id": [service, get(service.url, `/v1/runs/${run_id}`)],
  "requests that create and delete a run": [service, createAndDelete],
};
/**
 * Requests per second of a native, multi-threaded server of the same interface, over bare `Deno.serve` in the
 * same run.
 */
const NATIVE: Record<string, number> = {
  "GET /v1/runs/:id": 37.8 / 177,
  "requests that create and delete a run": 27.1 / 177,
};

const measured: Record<string, { rates: number[]; cpuUs: number[] }> = {};
for (let round = 0; round <= Number(values.rounds); round++) {
  for (const [name, [server, exchange]] of Object.entries(targets)) {
    const beforeMs = cpuMs(server.pid);
    const seconds = round === 0 ? 1 : Number(values.seconds);
    const { count, tookMs } = await repeated(new URL(server.url), exchange, seconds);
    if (round === 0) continue; // a warm-up
    const of = measured[name] ??= { rates: [], cpuUs: [] };
    of.rates.push(count / tookMs * 1000);
    of.cpuUs.push((cpuMs(server.pid) - beforeMs) * 1000 / count);
  }
}
const bareFigures = measured["bare Deno.serve"]!;
for (const [name, { rates, cpuUs }] of Object.entries(measured)) {
  if (name === "bare Deno.serve") continue;
  report({
    ...{ name: `http: ${name}`, unit: "/s", better: "more", ours: rates },
    limit: { name: "bare Deno.serve", values: bareFigures.rates },
  });
  report({
    ...{ name: `http: ${name}, CPU time`, unit: "µs", better: "less", ours: cpuUs },
    limit: { name: "bare Deno.serve", values: bareFigures.cpuUs },
  });
  if (NATIVE[name] === undefined) continue;
  const scaled = (ratio: number) => (ratio / NATIVE[name]!).toFixed(2);
  const byRate = median(rates) / median(bareFigures.rates);
  const byCpu = median(bareFigures.cpuUs) / median(cpuUs);
  console.log(`  over a native server: ${scaled(byRate)} by rate, ${scaled(byCpu)} by processor time`);
}
console.log(`load ${load()}`);
await bare[Symbol.asyncDispose]();
await service[Symbol.asyncDispose]();
Deno.removeSync(dataDir, { recursive: true });
Deno.exit(0);

function requestText(method: string, url: string, path: string, key: string, body = ""): Uint8Array {
  const length = body === "" ? "" : `content-type: application/json\r\ncontent-length: ${body.length}\r\n`;
  return new TextEncoder().encode(
    `${method} ${path} HTTP/1.1\r\nhost: ${new URL(url).host}\r\nx-api-key: ${key}\r\n${length}\r\n${body}`,
  );
}

async function exchanged(
  connection: Deno.TcpConn,
  buffer: Uint8Array,
  request: Uint8Array,
): Promise<string> {
  await connection.write(request);
  return await readAnswer(connection, buffer);
}

/** How often all connections together did the exchange. */
async function repeated(
  url: URL,
  exchange: Exchange,
  seconds: number,
): Promise<{ count: number; tookMs: number }> {
  const startMs = performance.now();
  const endMs = startMs + seconds * 1000;
  const counts = await Promise.all(Array.from({ length: CONNECTIONS }, async () => {
    using connection = await Deno.connect({ hostname: url.hostname, port: Number(url.port) });
    connection.setNoDelay(true);
    const buffer = new Uint8Array(8192);
    let count = 0;
    for (; performance.now() < endMs; count += exchange.requests) await exchange.run(connection, buffer);
    return count;
  }));
  return { count: counts.reduce((sum, count) => sum + count, 0), tookMs: performance.now() - startMs };
}

/** The body of one whole answer with a content-length; any status except 200 ends the benchmark. */
async function readAnswer(connection: Deno.Conn, buffer: Uint8Array): Promise<string> {
  let length = 0;
  let expected = Infinity;
  let bodyStart = 0;
  while (length < expected) {
    const read = await connection.read(buffer.subarray(length));
    if (read === null) throw new Error("the server closed a connection");
    length += read;
    if (expected !== Infinity) continue;
    const text = new TextDecoder("latin1").decode(buffer.subarray(0, length));
    const headEnd = text.indexOf("\r\n\r\n");
    if (headEnd < 0) continue;
    if (!text.startsWith("HTTP/1.1 200")) throw new Error(`unexpected answer: ${text}`);
    bodyStart = headEnd + 4;
    expected = bodyStart + Number(/content-length: (\d+)/i.exec(text)?.[1] ?? NaN);
  }
  return new TextDecoder().decode(buffer.subarray(bodyStart, length));
}
