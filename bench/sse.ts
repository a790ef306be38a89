/**
 * Event streams: the latency from a commit to the last of 500 clients, the memory of a client that is idle
 * and of one that had 1,000 events, and the events per second to a hundred clients, compared with bare
 * `Deno.serve` that broadcasts prepared bytes to as many clients, by turns.
 *
 * Each server is a process of its own, and the clients are this process: raw connections that check that
 * every id follows the one before. The latency is measured from before the POST that creates the event until
 * the last client has received it.
 *
 *     ./scripts/deno run -A bench/sse.ts [--clients 500] [--events 400] [--seconds 5]
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Server, startListening, startServer } from "../scripts/server.ts";
import { type Figure, load, median, pause, percentile, report, TemporaryFolder } from "./support.ts";

const API_KEY = "bench-key";
const EVENTS_PER_SECOND = 20;
/** Events at one server before it is the turn of the other. */
const EVENTS_BY_TURNS = 10;
/** Events that every client has had when its memory is measured. */
const EVENTS_OF_MEMORY = 1000;
const THROUGHPUT_CLIENTS = 100;
const POSTERS = 8;

const { values } = parseArgs({
  args: Deno.args,
  options: {
    clients: { type: "string", default: "500" },
    events: { type: "string", default: "400" },
    seconds: { type: "string", default: "5" },
  },
});

/** The bare server: sends the same messages without a log. A POST creates one and sends it to all clients. */
const BARE = `
  const headers = { "content-type": "text/event-stream", "cache-control": "no-store" };
  const encoder = new TextEncoder();
  const clients = new Set();
  const run = "run-" + "0".repeat(32);
  let seq = 0;
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, ({ method }) => {
    if (method === "GET") {
      let mine;
      return new Response(new ReadableStream({
        start(controller) { clients.add(mine = controller); },
        cancel() { clients.delete(mine); },
      }), { headers });
    }
    seq++;
    const data = { specversion: "1.0", id: run + ":" + seq, source: "/v1/runs/" + run,
      type: "dev.service.timeline.keepalive_refreshed", subject: "stream-0", datacontenttype: "application/json",
      sequence: seq, pts_ms: Date.now(), data: { request_id: "req-0000000000000001" } };
    const bytes = encoder.encode("id: " + seq + "\\nevent: keepalive_refreshed\\ndata: " + JSON.stringify(data) + "\\n\\n");
    for (const client of clients) client.enqueue(bytes);
    return new Response('{"ok":true}');
  });
  console.log("listening on http://127.0.0.1:" + server.addr.port);
`;

/** A server, the path of a run's event stream there, and the path that creates an event in the run. */
interface Target {
  readonly server: Server;
  readonly stream: string;
  readonly event: string;
}

/** One connection that follows a run; fails when an id is not the one after the last. */
class Client implements Disposable {
  received = 0;
  lastId: number;
  #rest = "";
  readonly #connection: Deno.TcpConn;

  private constructor(connection: Deno.TcpConn, after: number) {
    this.#connection = connection;
    this.lastId = after;
  }

  /** Uses HTTP/1.0, so that there is no chunked encoding. Resolves when the headers were received. */
  static async open(url: URL, path: string, after: number): Promise<Client> {
    const connection = await Deno.connect({ hostname: url.hostname, port: Number(url.port) });
    const request = `GET ${path} HTTP/1.0\r\nhost: ${url.host}\r\nx-api-key: ${API_KEY}\r\n` +
      `last-event-id: ${after}\r\n\r\n`;
    await connection.write(new TextEncoder().encode(request));
    const client = new Client(connection, after);
    let head = "";
    while (!head.includes("\r\n\r\n")) head += await client.#read(new Uint8Array(4096));
    if (!/^HTTP\/1\.\d 200 /.test(head)) throw new Error(`unexpected answer: ${head}`);
    client.#take(head.slice(head.indexOf("\r\n\r\n") + 4));
    return client;
  }

  /** Reads until the connection is closed; calls `onMessages` after each piece. */
  async follow(onMessages: (client: Client) => void): Promise<void> {
    const buffer = new Uint8Array(65_536);
    try {
      for (;;) {
        this.#take(await this.#read(buffer));
        onMessages(this);
      }
    } catch (error) {
      if (!(error instanceof Deno.errors.BadResource || error instanceof Deno.errors.Interrupted)) {
        throw error;
      }
    }
  }

  [Symbol.dispose](): void {
    this.#connection.close();
  }

  async #read(buffer: Uint8Array): Promise<string> {
    const length = await this.#connection.read(buffer);
    if (length === null) throw new Error("the server ended a stream");
    return LATIN1.decode(buffer.subarray(0, length));
  }

  #take(text: string): void {
    const all = this.#rest + text;
    let from = 0;
    for (let end = all.indexOf("\n\n"); end >= 0; end = all.indexOf("\n\n", from)) {
      if (all.startsWith("id: ", from)) {
        const id = Number(all.slice(from + 4, all.indexOf("\n", from)));
        if (id !== this.lastId + 1) throw new Error(`after ${this.lastId} came ${id}`);
        this.lastId = id;
        this.received += 1;
      }
      from = end + 2;
    }
    this.#rest = all.slice(from);
  }
}

const LATIN1 = new TextDecoder("latin1");

using folder = new TemporaryFolder();
const bareFile = join(folder.path, "bare.ts");
Deno.writeTextFileSync(bareFile, BARE);
const count = Number(values.clients);

/** What was measured at each server, by the name of the figure. */
const figures: Record<string, Pick<Figure, "unit" | "better"> & { readonly values: (readonly number[])[] }> =
  {};
/** Notes the values of a figure: of the bare server first, then of the service. */
function note(name: string, unit: string, better: Figure["better"], values: readonly number[]): void {
  (figures[name] ??= { unit, better, values: [] }).values.push(values);
}

/** One of the two servers, with what was measured so far. */
interface Side {
  readonly name: string;
  readonly target: Target;
  readonly clients: Client[];
  /** Sequence number of the last event. */
  seq: number;
  residentBefore: number;
}

await using bare = await startListening([bareFile], {});
await using service = await startServer({
  SERVICE_API_KEYS: API_KEY,
  SERVICE_DATA_DIR: join(folder.path, "data"),
});
const sides: Side[] = [
  { name: "bare Deno.serve", target: { server: bare, stream: "/", event: "/" }, seq: 0, ...newClients() },
  { name: "the service", target: await serviceTarget(service), seq: 1, ...newClients() },
];
function newClients() {
  return { clients: [] as Client[], residentBefore: 0 };
}
const show = ({ name }: Side, what: string, figure: string) =>
  console.log(`${name.padEnd(16)} ${what.padEnd(44)} ${figure}`);

for (const side of sides) {
  const { target, clients } = side;
  // A warm-up, so that the memory for code that is loaded and compiled once is not counted for the clients.
  side.seq = (await throughput(target, 20, side.seq, 1)).lastSeq;
  side.residentBefore = residentKiB(target.server.pid);
  for (let number = 0; number < count; number++) {
    clients.push(await Client.open(new URL(target.server.url), target.stream, side.seq));
  }
}
await pause(1000);
for (const side of sides) noteMemory(side, "an idle client");

const followed = sides.map((side) => follow(side));
const latencies: number[][] = sides.map(() => []);
while (latencies[0]!.length < Number(values.events)) {
  for (const [index, everywhere] of followed.entries()) {
    for (let number = 0; number < EVENTS_BY_TURNS; number++) latencies[index]!.push(await everywhere());
  }
}
for (const [index, side] of sides.entries()) {
  const all = latencies[index]!;
  for (const [what, share] of [["p50", 0.5], ["p99", 0.99]] as const) {
    note(`POST to the last of ${count} clients, ${what}`, "ms", "less", [percentile(all, share)]);
  }
  const at = (share: number) => percentile(all, share).toFixed(1);
  show(
    side,
    `POST to the last of ${count} clients, ${EVENTS_PER_SECOND} events/s`,
    `median ${at(0.5)} ms   p99 ${at(0.99)} ms   most ${at(1)} ms   of ${all.length}`,
  );
}
for (const [index, everywhere] of followed.entries()) {
  while (latencies[index]!.length < EVENTS_OF_MEMORY) latencies[index]!.push(await everywhere());
}
await pause(1000);
for (const side of sides) noteMemory(side, `a client after ${EVENTS_OF_MEMORY} events`);
for (const { clients } of sides) for (const client of clients) client[Symbol.dispose]();
await pause(500);

const rounds: Awaited<ReturnType<typeof throughput>>[][] = sides.map(() => []);
for (let round = 0; round < 3; round++) {
  for (const [index, side] of sides.entries()) {
    const delivered = await throughput(side.target, THROUGHPUT_CLIENTS, side.seq, Number(values.seconds));
    side.seq = delivered.lastSeq;
    rounds[index]!.push(delivered);
  }
}
for (const [index, side] of sides.entries()) {
  const all = rounds[index]!;
  note(`events to ${THROUGHPUT_CLIENTS} clients`, "/s", "more", all.map((round) => round.perSecond));
  show(
    side,
    `events/s to ${THROUGHPUT_CLIENTS} clients, each id checked`,
    `${median(all.map((round) => round.perSecond)).toFixed(0)} (${
      median(all.map((round) => round.events)).toFixed(0)
    } events a round)`,
  );
}
const replayed = await replay(sides[1]!.target, sides[1]!.seq);
show(sides[1]!, `events/s replayed from the log to ${THROUGHPUT_CLIENTS} clients`, replayed.toFixed(0));
for (const [name, { unit, better, values: [limit, ours] }] of Object.entries(figures)) {
  report({
    name: `sse: ${name}`,
    unit,
    better,
    ours: ours!,
    limit: { name: "bare Deno.serve", values: limit! },
  });
}
console.log(`load ${load()}`);
for (const { target } of sides) await target.server[Symbol.asyncDispose]();
Deno.exit(0);

function noteMemory(side: Side, of: string): void {
  const perClient = (residentKiB(side.target.server.pid) - side.residentBefore) / count;
  note(`memory of ${of}`, "KiB", "less", [perClient]);
  show(side, `memory of ${of}, ${count} clients`, `${perClient.toFixed(1)} KiB`);
}

async function serviceTarget(server: Server): Promise<Target> {
  const headers = { "x-api-key": API_KEY, "content-type": "application/json" };
  const created = await fetch(`${server.url}/v1/runs`, { method: "POST", headers, body: "{}" });
  const { run_id } = await created.json();
  return { server, stream: `/v1/runs/${run_id}/events/stream`, event: `/v1/runs/${run_id}/keepalive` };
}

/**
 * Each call creates an event: milliseconds from its POST until the last client has received it, then a pause.
 */
function follow(side: Side): () => Promise<number> {
  const { target, clients } = side;
  let missing = 0;
  let arrived = () => {};
  const following = clients.map((client) =>
    client.follow(({ lastId }) => {
      if (lastId === side.seq && --missing === 0) arrived();
    })
  );
  void Promise.all(following).catch(failed);
  return async () => {
    const startedMs = performance.now();
    side.seq++;
    missing = clients.length;
    const everywhere = new Promise<void>((resolve) => arrived = resolve);
    await post(target);
    await everywhere;
    const tookMs = performance.now() - startedMs;
    await pause(Math.max(0, 1000 / EVENTS_PER_SECOND - tookMs));
    return tookMs;
  };
}

/**
 * Creates events as fast as the server accepts them, for `seconds`; ends when every client has received all
 * of them.
 */
async function throughput(
  target: Target,
  clientCount: number,
  seq: number,
  seconds: number,
): Promise<{ perSecond: number; events: number; lastSeq: number }> {
  const clients = await openAll(target, clientCount, seq);
  const startedMs = performance.now();
  let lastSeq = seq;
  const done = allHave(clients, () => lastSeq);
  await Promise.all(Array.from({ length: POSTERS }, async () => {
    while (performance.now() - startedMs < seconds * 1000) {
      await post(target);
      lastSeq++;
    }
  }));
  await done();
  const tookMs = performance.now() - startedMs;
  for (const client of clients) client[Symbol.dispose]();
  const received = clients.reduce((sum, client) => sum + client.received, 0);
  if (received !== clientCount * (lastSeq - seq)) throw new Error(`${received} events came`);
  return { perSecond: received / tookMs * 1000, events: lastSeq - seq, lastSeq };
}

/** Events per second when every client reads the whole run from the log. */
async function replay(target: Target, lastSeq: number): Promise<number> {
  const startedMs = performance.now();
  const clients = await openAll(target, THROUGHPUT_CLIENTS, 0);
  await allHave(clients, () => lastSeq)();
  const tookMs = performance.now() - startedMs;
  for (const client of clients) client[Symbol.dispose]();
  return THROUGHPUT_CLIENTS * lastSeq / tookMs * 1000;
}

function openAll({ server, stream }: Target, clientCount: number, after: number): Promise<Client[]> {
  return Promise.all(
    Array.from({ length: clientCount }, () => Client.open(new URL(server.url), stream, after)),
  );
}

/**
 * Starts to follow the streams; the returned function resolves when every client has received the last event.
 */
function allHave(clients: readonly Client[], lastSeq: () => number): () => Promise<void> {
  let isOver = false;
  let over = () => {};
  const check = () => {
    if (isOver && clients.every(({ lastId }) => lastId === lastSeq())) over();
  };
  void Promise.all(clients.map((client) => client.follow(check))).catch(failed);
  return () =>
    new Promise((resolve) => {
      over = resolve;
      isOver = true;
      check();
    });
}

async function post({ server, event }: Target): Promise<void> {
  const response = await fetch(server.url + event, { method: "POST", headers: { "x-api-key": API_KEY } });
  await response.body?.cancel();
  if (!response.ok) throw new Error(`POST answered ${response.status}`);
}

function failed(error: unknown): void {
  console.error(error);
  Deno.exit(1);
}

function residentKiB(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(Deno.readTextFileSync(`/proc/${pid}/status`))?.[1]);
}
