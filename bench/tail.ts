/**
 * The last 100 events of a run: by query, as the whole of a short run, and as what an event stream sends
 * first; of a live run, and after a restart, when they are in the log only. Compared with bare `Deno.serve`
 * that sends the same bytes.
 *
 * One request at a time, on one connection for the reads and a new one for each stream. The targets
 * alternate, so that other load on the machine affects all.
 *
 *     ./scripts/deno run -A bench/tail.ts [--rounds 5] [--calls 200]
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Server, startListening, startServer } from "../scripts/server.ts";
import { load, median, report, TemporaryFolder } from "./support.ts";

const API_KEY = "bench-key";
const EVENTS = 100;
/** Events of the long run at first; more are written before it is measured. */
const EARLIER_EVENTS = 1000;

const { values } = parseArgs({
  args: Deno.args,
  options: { rounds: { type: "string", default: "5" }, calls: { type: "string", default: "200" } },
});
const headers = { "x-api-key": API_KEY, "content-type": "application/json" };

const BARE = `
  const bodies = new Map();
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    const { pathname } = new URL(request.url);
    if (request.method !== "PUT") return new Response(bodies.get(pathname), { headers: { "content-type": "application/json" } });
    bodies.set(pathname, await request.text());
    return new Response();
  });
  console.log("listening on http://127.0.0.1:" + server.addr.port);
`;

/** Two runs of which the service has written everything, and where the last events of the long one begin. */
interface Runs {
  readonly short: string;
  readonly long: string;
  readonly fromSeq: number;
}

using folder = new TemporaryFolder();
const bareFile = join(folder.path, "bare.ts");
Deno.writeTextFileSync(bareFile, BARE);
const env = { SERVICE_API_KEYS: API_KEY, SERVICE_DATA_DIR: join(folder.path, "data") };
await using bare = await startListening([bareFile], {});
let runs: Runs;

{
  await using live = await startServer(env);
  runs = await writeRuns(live);
  await compare("live", live, runs);
}
{
  await using restarted = await startServer(env);
  await compare("after a restart", restarted, runs);
}
console.log(`load ${load()}`);
await bare[Symbol.asyncDispose]();
Deno.exit(0);

async function compare(when: string, service: Server, { short, long, fromSeq }: Runs): Promise<void> {
  const calls: Record<string, () => Promise<string>> = {
    "query": () =>
      text(`${service.url}/v1/query`, { method: "POST", headers, body: question(long, fromSeq) }),
    "events of a short run": () => text(`${service.url}/v1/runs/${short}/events`, { headers }),
    "event stream": () =>
      streamed(new URL(service.url), `/v1/runs/${long}/events/stream?after=${fromSeq - 1}`),
  };
  for (const [name, call] of Object.entries(calls)) {
    const body = await call();
    await text(`${bare.url}/${name.replaceAll(" ", "-")}`, { method: "PUT", body });
  }
  const ours: Record<string, number[]> = {};
  const limits: Record<string, number[]> = {};
  for (let round = 0; round <= Number(values.rounds); round++) {
    for (const [name, call] of Object.entries(calls)) {
      const path = `/${name.replaceAll(" ", "-")}`;
      const bareCall = name === "event stream"
        ? () => streamed(new URL(bare.url), path)
        : () => text(bare.url + path, { method: "POST", headers, body: question(long, fromSeq) });
      const [own, limit] = [await medianMs(call), await medianMs(bareCall)];
      if (round === 0) continue; // a warm-up
      (ours[name] ??= []).push(own);
      (limits[name] ??= []).push(limit);
    }
  }
  for (const name of Object.keys(calls)) {
    report({
      name: `tail: last ${EVENTS} events, ${when}, ${name}`,
      unit: "ms",
      better: "less",
      ours: ours[name]!,
      limit: { name: "bare Deno.serve", values: limits[name]! },
    });
  }
}

async function writeRuns({ url }: Server): Promise<Runs> {
  const create = async (events: number) => {
    const { run_id } = JSON.parse(await text(`${url}/v1/runs`, { method: "POST", headers, body: "{}" }));
    for (let number = 1; number < events; number++) {
      await text(`${url}/v1/runs/${run_id}/keepalive`, { method: "POST", headers });
    }
    return run_id as string;
  };
  const long = await create(EARLIER_EVENTS);
  const short = await create(EVENTS); // written behind the long one, whose last events are kept all the same
  const { matches } = JSON.parse(
    await text(`${url}/v1/query`, { method: "POST", headers, body: question(long, 1) }),
  );
  return { short, long, fromSeq: matches.at(-EVENTS).seq };
}

function question(run_id: string, from_seq: number): string {
  return JSON.stringify({ run_id, from_seq });
}

async function text(url: string, init: RequestInit): Promise<string> {
  const response = await fetch(url, init);
  const body = await response.text();
  if (!response.ok) throw new Error(`unexpected answer: ${response.status} ${body}`);
  return body;
}

/** Connects, and reads until the last of the events has come. */
async function streamed(url: URL, path: string): Promise<string> {
  using connection = await Deno.connect({ hostname: url.hostname, port: Number(url.port) });
  const request = `GET ${path} HTTP/1.0\r\nhost: ${url.host}\r\nx-api-key: ${API_KEY}\r\n\r\n`;
  await connection.write(new TextEncoder().encode(request));
  const buffer = new Uint8Array(65_536);
  const decoder = new TextDecoder();
  let all = "";
  while (all.split("\nevent: ").length <= EVENTS || !all.endsWith("\n\n")) {
    const length = await connection.read(buffer);
    if (length === null) throw new Error(`the stream ended: ${all.slice(0, 500)}`);
    all += decoder.decode(buffer.subarray(0, length), { stream: true });
  }
  return all.slice(all.indexOf("\r\n\r\n") + 4);
}

async function medianMs(call: () => Promise<unknown>): Promise<number> {
  const tookMs = [];
  for (let number = 0; number < Number(values.calls); number++) {
    const startedMs = performance.now();
    await call();
    tookMs.push(performance.now() - startedMs);
  }
  return median(tookMs);
}
