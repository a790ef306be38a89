/**
 * What the RTSP tunnel costs the HTTP thread: the CPU time of the thread for each second of media at 50
 * Mbit/s, beside a relay that passes bytes on without looking, in turn in the same run; and how fast both are
 * without a limit. Server and client are in threads of their own. The media is interleaved packets of 1400
 * bytes; `bursts` is how many of them come at once.
 *
 *     ./scripts/deno run -A bench/rtsp_tunnel.ts [--seconds 4] [--rounds 3]
 */

import { connect, createServer, type Server, type Socket } from "node:net";
import { parseArgs } from "node:util";
import { NEVER_ABORTED } from "../src/base/wait.ts";
import { PinnedAgent } from "../src/remote/guard/pinned_agent.ts";
import { RtspTunnel } from "../src/remote/sources/rtsp_tunnel.ts";
import { median, quietWorld, report } from "./support.ts";

const { values } = parseArgs({
  args: Deno.args,
  options: { seconds: { type: "string", default: "4" }, rounds: { type: "string", default: "3" } },
});
const SECONDS = Number(values.seconds);
const BYTES_PER_SECOND = 50e6 / 8;

/** Sends packets to whoever says something: `burst` packets at once, at 50 Mbit/s or without a limit. */
const SERVER = `
const packet = new Uint8Array(1404); packet.set([0x24, 0, 1400 >> 8, 1400 & 255]);
const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
let order = { burst: 4, isPaced: true };
onmessage = ({ data }) => { order = data; };
postMessage(listener.addr.port);
for await (const connection of listener) void (async () => {
  await connection.read(new Uint8Array(1024));
  const { burst, isPaced } = order;
  const piece = new Uint8Array(packet.length * burst);
  for (let at = 0; at < piece.length; at += packet.length) piece.set(packet, at);
  const startMs = performance.now();
  for (let sent = 0; ; sent += piece.length) {
    const earlyMs = sent / ${BYTES_PER_SECOND} * 1000 - (performance.now() - startMs);
    if (isPaced && earlyMs > 0) await new Promise((resolve) => setTimeout(resolve, earlyMs));
    for (let at = 0; at < piece.length;) at += await connection.write(piece.subarray(at));
  }
})().catch(() => {});
`;

/** Reads for some seconds, and says how many bytes came. */
const CLIENT = `
onmessage = async ({ data: { port, seconds } }) => {
  const connection = await Deno.connect({ hostname: "127.0.0.1", port });
  await connection.write(new TextEncoder().encode("OPTIONS * RTSP/1.0\\r\\n\\r\\n"));
  const buffer = new Uint8Array(65536);
  const endMs = performance.now() + seconds * 1000;
  let bytes = 0;
  while (performance.now() < endMs) bytes += await connection.read(buffer);
  connection.close();
  postMessage(bytes);
};
`;

const server = worker(SERVER);
const client = worker(CLIENT);
const serverPort: number = await answerOf(server);
using agent = new PinnedAgent({ roots: () => [], reroute: () => "127.0.0.1" });
await using tunnel = await RtspTunnel.open(new URL(`rtsp://camera.test:${serverPort}/a`), {
  ...{ world: quietWorld(), agent, allowedNetworks: [], signal: NEVER_ABORTED },
  resolve: () => Promise.resolve(["93.184.216.34"]),
});
const relay = await plainRelay(serverPort);
const ports = {
  tunnel: Number(new URL(tunnel.url).port),
  relay: (relay.address() as { port: number }).port,
};

for (const burst of [1, 4, 150]) await compare(`50 Mbit/s, bursts of ${burst}`, { burst, isPaced: true });
await compare("no limit", { burst: 40, isPaced: false });
server.terminate();
client.terminate();
relay.close();

async function compare(name: string, order: { burst: number; isPaced: boolean }): Promise<void> {
  const shares: Record<"tunnel" | "relay", number[]> = { tunnel: [], relay: [] };
  const rates: Record<"tunnel" | "relay", number[]> = { tunnel: [], relay: [] };
  server.postMessage(order);
  for (let round = 0; round < Number(values.rounds); round++) {
    for (const way of ["relay", "tunnel"] as const) {
      const before = cpuMs();
      client.postMessage({ port: ports[way], seconds: SECONDS });
      const bytes: number = await answerOf(client);
      shares[way].push((cpuMs() - before) / 1000 / (bytes / BYTES_PER_SECOND) * 100);
      rates[way].push(bytes * 8 / 1e6 / SECONDS);
    }
  }
  report({
    ...{ name: `rtsp tunnel: ${name}, processor for 50 Mbit/s`, unit: "% of a core", better: "less" },
    ...{ ours: shares.tunnel, limit: { name: "relay", values: shares.relay } },
  });
  const told = (["relay", "tunnel"] as const).map((way) =>
    `${way} ${median(shares[way]).toFixed(1)} % of a core at 50 Mbit/s, ${
      median(rates[way]).toFixed(0)
    } Mbit/s`
  );
  console.log(`${name.padEnd(24)} ${told.join("; ")}`);
}

/** CPU time of this thread so far, milliseconds. */
function cpuMs(): number {
  return Number(Deno.readTextFileSync("/proc/thread-self/schedstat").split(" ")[0]) / 1e6;
}

function plainRelay(port: number): Promise<Server> {
  const pass = (from: Socket, to: Socket) =>
    from.on("data", (bytes: Uint8Array) => {
      if (to.destroyed || to.write(bytes)) return;
      from.pause();
      to.once("drain", () => from.resume());
    });
  const listening = createServer((reader) => {
    const upstream = connect(port, "127.0.0.1");
    for (const socket of [reader, upstream]) socket.on("error", () => socket.destroy());
    reader.once("close", () => upstream.destroy());
    pass(reader, upstream);
    pass(upstream, reader);
  });
  return new Promise((resolve) => listening.listen(0, "127.0.0.1", () => resolve(listening)));
}

function worker(source: string): Worker {
  return new Worker(`data:text/javascript,${encodeURIComponent(source)}`, { type: "module" });
}

function answerOf<T>(from: Worker): Promise<T> {
  return new Promise((resolve) =>
    from.addEventListener("message", ({ data }) => resolve(data), { once: true })
  );
}
