/**
 * Small GET requests per second to the service, compared with bare `Deno.serve`.
 *
 * Each server is a process of its own, and the client is this process: 32 keep-alive connections with one request at a
 * time on each, no pipelining. The servers alternate, so that other load on the machine affects both. Prints medians
 * over the rounds.
 *
 *     ./scripts/deno run -A scripts/bench/http.ts [--rounds 5] [--seconds 2]
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { startListening, startServer } from "../server.ts";
import { median, report } from "./support.ts";

const API_KEY = "bench-key";
const CONNECTIONS = 32;

const { values } = parseArgs({
  args: Deno.args,
  options: { rounds: { type: "string", default: "5" }, seconds: { type: "string", default: "2" } },
});

/**
 * The upper limit: the same runtime with an answer that is ready before the request, without and with the headers and
 * the length of a real answer. Above 512 bytes of headers and body the runtime sends an answer in two parts.
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
});
const created = await fetch(`${service.url}/v1/runs`, {
  method: "POST",
  headers: { "x-api-key": API_KEY, "content-type": "application/json" },
  body: "{}",
});
const { run_id } = await created.json();

const targets: Record<string, [url: string, path: string, key?: string]> = {
  "bare Deno.serve": [bare.url, "/"],
  "the same with our headers": [bare.url, "/secured"],
  "GET /v1/health": [service.url, "/v1/health"],
  "GET /v1/runs (none)": [service.url, "/v1/runs", "another-key"],
  "GET /v1/runs/:id/state": [service.url, `/v1/runs/${run_id}/state`],
};
const rates: Record<string, number[]> = {};
for (let round = 0; round <= Number(values.rounds); round++) {
  for (const [name, [url, path, key]] of Object.entries(targets)) {
    const rate = await requestsPerSecond(
      new URL(url),
      path,
      key ?? API_KEY,
      round === 0 ? 1 : Number(values.seconds),
    );
    if (round > 0) (rates[name] ??= []).push(rate); // the first round is a warm-up
  }
}
const bareRate = median(rates["bare Deno.serve"]!);
for (const [name, all] of Object.entries(rates)) {
  const rate = median(all);
  console.log(
    `${name.padEnd(26)} ${rate.toFixed(0).padStart(7)} requests/s   ${(rate / bareRate).toFixed(2)} of bare`,
  );
}
for (
  const name of [
    "the same with our headers",
    "GET /v1/health",
    "GET /v1/runs (none)",
    "GET /v1/runs/:id/state",
  ]
) {
  report({
    ...{ name: `http: ${name}`, unit: "/s", better: "more", ours: rates[name]! },
    limit: { name: "bare Deno.serve", values: rates["bare Deno.serve"]! },
  });
}
await bare[Symbol.asyncDispose]();
await service[Symbol.asyncDispose]();
Deno.removeSync(dataDir, { recursive: true });
Deno.exit(0);

async function requestsPerSecond(url: URL, path: string, key: string, seconds: number): Promise<number> {
  const request = new TextEncoder().encode(
    `GET ${path} HTTP/1.1\r\nhost: ${url.host}\r\nx-api-key: ${key}\r\n\r\n`,
  );
  const start = performance.now();
  const end = start + seconds * 1000;
  const counts = await Promise.all(Array.from({ length: CONNECTIONS }, async () => {
    using connection = await Deno.connect({ hostname: url.hostname, port: Number(url.port) });
    connection.setNoDelay(true);
    const buffer = new Uint8Array(8192);
    let answered = 0;
    while (performance.now() < end) {
      await connection.write(request);
      await readAnswer(connection, buffer);
      answered += 1;
    }
    return answered;
  }));
  return counts.reduce((sum, count) => sum + count, 0) / ((performance.now() - start) / 1000);
}

/** Reads one whole answer with a content-length; any status except 200 ends the benchmark. */
async function readAnswer(connection: Deno.Conn, buffer: Uint8Array): Promise<void> {
  let length = 0;
  let expected = Infinity;
  while (length < expected) {
    const read = await connection.read(buffer.subarray(length));
    if (read === null) throw new Error("the server closed a connection");
    length += read;
    if (expected !== Infinity) continue;
    const text = new TextDecoder("latin1").decode(buffer.subarray(0, length));
    const headEnd = text.indexOf("\r\n\r\n");
    if (headEnd < 0) continue;
    if (!text.startsWith("HTTP/1.1 200")) throw new Error(`unexpected answer: ${text}`);
    expected = headEnd + 4 + Number(/content-length: (\d+)/i.exec(text)?.[1] ?? NaN);
  }
}
