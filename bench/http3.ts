/**
 * GET over HTTP/3 compared with HTTP/1.1 of the same service: small answers, and files of 8 MB.
 *
 * The service is a process of its own, and the client is this process: 32 requests at once, over HTTP/1.1 on
 * a connection each, over HTTP/3 on four connections. The transports alternate, so that other load on the
 * machine affects both. Prints medians over the rounds. HTTP/3 is always encrypted, and HTTP/1.1 is not. The
 * client of HTTP/3 takes half as much processor time for a request as the service, and on two processors each
 * has its own; so that it does not limit what is compared, the figures that count are the processor times of
 * the service, and the rates are printed beside them.
 *
 *     ./scripts/deno run -A bench/http3.ts [--rounds 5] [--seconds 2]
 */

import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { FRAME, frame } from "../src/http3/wire/frames.ts";
import { FieldEncoder } from "../src/http3/qpack/field_encoder.ts";
import { startServer } from "../scripts/server.ts";
import { cpuMs, load, median, report, shortNumber, TemporaryFolder } from "./support.ts";

const API_KEY = "bench-key";
const AT_ONCE = 32;
const HTTP3_CONNECTIONS = 4;
const FILE_BYTES = 8_000_000;
/** A control stream with empty settings. */
const CONTROL = new Uint8Array([0, FRAME.SETTINGS, 0]);

const { values } = parseArgs({
  args: Deno.args,
  options: { rounds: { type: "string", default: "5" }, seconds: { type: "string", default: "2" } },
});

using folder = new TemporaryFolder();
const certs = join(folder.path, "certs");
const made = new Deno.Command(fileURLToPath(new URL("../scripts/dev-certs", import.meta.url)), {
  args: [certs],
})
  .outputSync();
if (!made.success) throw new Error(new TextDecoder().decode(made.stderr));
const caCerts = [Deno.readTextFileSync(join(certs, "ca.crt"))];
const uploads = join(folder.path, "uploads");
Deno.mkdirSync(uploads, { mode: 0o700 });
Deno.writeFileSync(join(uploads, "public__film.mp4"), new Uint8Array(FILE_BYTES));
const http3Port = freeUdpPort();
const service = await startServer({
  SERVICE_REQUIRE_API_KEY: "false",
  SERVICE_API_KEYS: "",
  SERVICE_DATA_DIR: join(folder.path, "data"),
  SERVICE_UPLOAD_ROOT: uploads,
  SERVICE_TRANSPORT: "h3",
  SERVICE_H3_BIND_ADDR: `127.0.0.1:${http3Port}`,
  SERVICE_H3_TLS_CERT_PATH: join(certs, "dev.crt"),
  SERVICE_H3_TLS_KEY_PATH: join(certs, "dev.key"),
});

/** Gets a path again and again until the time is over; how often. */
type Client = (path: string, endMs: number) => Promise<number>;

const overHttp1: Client = async (path, endMs) => {
  const { hostname, port, host } = new URL(service.url);
  const request = new TextEncoder().encode(
    `GET ${path} HTTP/1.1\r\nhost: ${host}\r\nx-api-key: ${API_KEY}\r\n\r\n`,
  );
  return await together(AT_ONCE, async () => {
    using connection = await Deno.connect({ hostname, port: Number(port) });
    connection.setNoDelay(true);
    const buffer = new Uint8Array(64 * 1024);
    let count = 0;
    for (; performance.now() < endMs; count++) {
      await connection.write(request);
      await readAnswer(connection, buffer);
    }
    return count;
  });
};

const overHttp3: Client = async (path, endMs) => {
  const fields = new FieldEncoder();
  for (
    const [name, value] of [
      ...[[":method", "GET"], [":scheme", "https"], [":authority", `localhost:${http3Port}`], [
        ":path",
        path,
      ]],
      ["x-api-key", API_KEY],
    ] as const
  ) fields.add(name!, value!);
  const request = frame(FRAME.HEADERS, fields.block());
  return await together(HTTP3_CONNECTIONS, async () => {
    const connection = await Deno.connectQuic({
      ...{ hostname: "127.0.0.1", port: http3Port, serverName: "localhost", caCerts, alpnProtocols: ["h3"] },
    });
    const control = (await connection.createUnidirectionalStream()).getWriter();
    await control.write(CONTROL);
    const count = await together(AT_ONCE / HTTP3_CONNECTIONS, async () => {
      let count = 0;
      let memory = new ArrayBuffer(64 * 1024);
      for (; performance.now() < endMs; count++) {
        const stream = await connection.createBidirectionalStream({ waitUntilAvailable: true });
        const writer = stream.writable.getWriter();
        await writer.write(request);
        await writer.close();
        const reader = stream.readable.getReader({ mode: "byob" });
        let received = 0;
        for (let isOver = false; !isOver;) {
          const { done, value } = await reader.read(new Uint8Array(memory));
          memory = value!.buffer;
          received += value!.length;
          isOver = done;
        }
        if (received < 50) throw new Error(`an answer of ${received} bytes`);
      }
      return count;
    });
    await control.close().catch(() => {});
    connection.close({ closeCode: 0x100, reason: "" });
    return count;
  });
};

interface Measured {
  readonly rates: number[];
  readonly serverUs: number[];
  readonly clientUs: number[];
}

const CLIENTS = { "HTTP/1.1": overHttp1, "HTTP/3": overHttp3 };
const PATHS = { "small answers": "/v1/runs?limit=1", "files of 8 MB": "/v1/files/public__film.mp4" };
const measured: Record<string, Record<string, Measured>> = {};
for (let round = 0; round <= Number(values.rounds); round++) {
  for (const [what, path] of Object.entries(PATHS)) {
    for (const [name, client] of Object.entries(CLIENTS)) {
      const [serverMs, clientMs] = [cpuMs(service.pid), cpuMs(Deno.pid)];
      const startMs = performance.now();
      const count = await client(path, startMs + Number(values.seconds) * 1000);
      const tookMs = performance.now() - startMs;
      if (round === 0) continue; // a warm-up
      const of = (measured[what] ??= {})[name] ??= { rates: [], serverUs: [], clientUs: [] };
      of.rates.push(count / tookMs * 1000);
      of.serverUs.push((cpuMs(service.pid) - serverMs) * 1000 / count);
      of.clientUs.push((cpuMs(Deno.pid) - clientMs) * 1000 / count);
    }
  }
}
for (const [what, { "HTTP/1.1": http1, "HTTP/3": http3 }] of Object.entries(measured)) {
  report({
    ...{ name: `http3: GET, ${what}`, unit: "/s", better: "more", ours: http3!.rates },
    limit: { name: "HTTP/1.1", values: http1!.rates },
  });
  const perSecond = (times: readonly number[]) => times.map((us) => 1e6 / us);
  report({
    ...{
      name: `http3: GET, ${what}, for a second of CPU`,
      unit: "",
      better: "more",
      ours: perSecond(http3!.serverUs),
    },
    limit: { name: "HTTP/1.1", values: perSecond(http1!.serverUs) },
  });
  const us = ({ serverUs, clientUs }: Measured) =>
    `service ${shortNumber(median(serverUs))} µs, client ${shortNumber(median(clientUs))} µs`;
  console.log(`  CPU time of one: HTTP/1.1 ${us(http1!)}; HTTP/3 ${us(http3!)}`);
}
console.log(`load ${load()}`);
await service[Symbol.asyncDispose]();
folder[Symbol.dispose]();
Deno.exit(0);

async function together(count: number, work: () => Promise<number>): Promise<number> {
  return (await Promise.all(Array.from({ length: count }, work))).reduce((sum, one) => sum + one, 0);
}

/** Reads one whole answer with a content-length; any status except 200 ends the benchmark. */
async function readAnswer(connection: Deno.Conn, buffer: Uint8Array): Promise<void> {
  let received = 0;
  let expected = Infinity;
  while (received < expected) {
    const got = await connection.read(expected === Infinity ? buffer.subarray(received) : buffer);
    if (got === null) throw new Error("the server closed a connection");
    received += got;
    if (expected !== Infinity) continue;
    const text = new TextDecoder("latin1").decode(buffer.subarray(0, Math.min(received, 2048)));
    const headEnd = text.indexOf("\r\n\r\n");
    if (headEnd < 0) continue;
    if (!text.startsWith("HTTP/1.1 200")) throw new Error(`unexpected answer: ${text}`);
    expected = headEnd + 4 + Number(/content-length: (\d+)/i.exec(text)?.[1] ?? NaN);
  }
}

function freeUdpPort(): number {
  const socket = Deno.listenDatagram({ transport: "udp", hostname: "127.0.0.1", port: 0 });
  socket.close();
  return (socket.addr as Deno.NetAddr).port;
}
