/**
 * The throughput of uploads and downloads of a large video and the growth of the server's memory during them,
 * compared with a bare `Deno.serve` that copies the same bytes to and from a file.
 *
 * Each server is a process of its own; the client reads and writes the socket directly, and the servers
 * alternate. The video is a real one, padded with a `free` box (ISO/IEC 14496-12 section 8.1.2).
 *
 *     ./scripts/deno run -A bench/upload.ts [--rounds 5] [--megabytes 150]
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { type Server, startListening, startServer } from "../scripts/server.ts";
import { median, report, TemporaryFolder, timed } from "./support.ts";

const API_KEY = "bench-key";
const BOUNDARY = "boundary-of-the-bench";
const CLIP = new URL("../fixtures/clips/intel_bottle.mp4", import.meta.url);
const PIECE_BYTES = 256 * 1024;

const { values } = parseArgs({
  args: Deno.args,
  options: { rounds: { type: "string", default: "5" }, megabytes: { type: "string", default: "150" } },
});
const filmBytes = Number(values.megabytes) * 1e6;

/** The upper limit: the runtime only copies the bytes. */
const BARE = `
  const path = Deno.args[0];
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async (request) => {
    if (request.method === "POST") {
      using file = await Deno.open(path, { write: true, create: true, truncate: true });
      for await (const bytes of request.body) await file.write(bytes);
      await file.sync();
      return new Response("stored");
    }
    const file = await Deno.open(path);
    const { size } = await file.stat();
    return new Response(file.readable, { headers: { "content-length": String(size) } });
  });
  console.log("listening on http://127.0.0.1:" + server.addr.port);
`;

using folder = new TemporaryFolder();
const film = join(folder.path, "film.mp4");
writePaddedFilm(film, filmBytes);
const bareScript = join(folder.path, "bare.ts");
Deno.writeTextFileSync(bareScript, BARE);
await using bare = await startListening([bareScript, join(folder.path, "bare.mp4")], {});
await using service = await startServer({
  SERVICE_API_KEYS: API_KEY,
  SERVICE_DATA_DIR: join(folder.path, "data"),
});

interface Measured {
  readonly ms: number;
  /** Bytes by which the memory grew: the highest VmRSS during the transfer minus VmRSS before. */
  readonly grownBytes: number;
}

const results: Record<string, Measured[]> = {};
let filePath = "/bare.mp4";
for (let round = 0; round < Number(values.rounds); round++) {
  await measure("upload, bare", bare, () => post(bare.url, "/"));
  await measure("upload", service, async () => {
    const { file_path } = JSON.parse(await post(service.url, "/v1/upload"));
    filePath = `/v1/files/${file_path.split("/").at(-1)}`;
  });
  await measure("download, bare", bare, () => get(bare.url, "/"));
  await measure("download", service, () => get(service.url, filePath));
  await measure("download of a range", service, () => get(service.url, filePath, `bytes=1-${filmBytes - 2}`));
}
const copied = await timed(() => Deno.copyFile(film, join(folder.path, "copy.mp4")));

console.log(
  `${filmBytes / 1e6} MB, ${values.rounds} rounds: median throughput, and the most that memory grew`,
);
for (const [name, rounds] of Object.entries(results)) {
  const throughput = filmBytes / 1e6 / (median(rounds.map(({ ms }) => ms)) / 1000);
  const grown = Math.max(...rounds.map(({ grownBytes }) => grownBytes)) / 1e6;
  console.log(`${name.padEnd(20)} ${throughput.toFixed(0).padStart(6)} MB/s  +${grown.toFixed(1)} MB`);
}
const rateOf = (name: string) => results[name]!.map(({ ms }) => filmBytes / 1e3 / ms);
for (
  const [name, bareName] of [["upload", "upload, bare"], ["download", "download, bare"], [
    "download of a range",
    "download, bare",
  ]] as const
) {
  report({
    ...{ name: `upload: ${name}`, unit: "MB/s", better: "more", ours: rateOf(name) },
    limit: { name: "bare Deno.serve", values: rateOf(bareName) },
  });
  const grown = results[name]!.map(({ grownBytes }) => grownBytes / 1e6);
  report({ name: `upload: ${name}, memory`, unit: "MB", better: "less", ours: grown, limit: null });
}
console.log(`${"copy of the file".padEnd(20)} ${(filmBytes / 1e3 / copied).toFixed(0).padStart(6)} MB/s`);

async function measure(name: string, { pid }: Server, work: () => Promise<unknown>): Promise<void> {
  const before = residentBytes(pid);
  let highest = before;
  const watch = setInterval(() => highest = Math.max(highest, residentBytes(pid)), 5);
  const ms = await timed(async () => void await work()).finally(() => clearInterval(watch));
  highest = Math.max(highest, residentBytes(pid));
  (results[name] ??= []).push({ ms, grownBytes: highest - before });
}

function residentBytes(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(Deno.readTextFileSync(`/proc/${pid}/status`))![1]) * 1024;
}

async function post(url: string, path: string): Promise<string> {
  const head = `--${BOUNDARY}\r\ncontent-disposition: form-data; name="file"; filename="film.mp4"\r\n\r\n`;
  const tail = `\r\n--${BOUNDARY}--\r\n`;
  using connection = await connect(url);
  const length = head.length + filmBytes + tail.length;
  const type = `content-type: multipart/form-data; boundary=${BOUNDARY}\r\n`;
  await writeAll(connection, requestHead("POST", path, `${type}content-length: ${length}\r\n`) + head);
  using file = await Deno.open(film);
  const piece = new Uint8Array(PIECE_BYTES);
  for (let got = await file.read(piece); got !== null; got = await file.read(piece)) {
    await writeAll(connection, piece.subarray(0, got));
  }
  await writeAll(connection, tail);
  let answer = "";
  for (;;) {
    const got = await connection.read(piece);
    if (got === null) throw new Error(`the answer ended after ${answer}`);
    answer += new TextDecoder().decode(piece.subarray(0, got));
    const [head, body] = answer.split("\r\n\r\n");
    if (!answer.startsWith("HTTP/1.1 200")) throw new Error(answer);
    if (body !== undefined && body.length >= Number(/content-length: (\d+)/i.exec(head!)![1])) return body;
  }
}

async function get(url: string, path: string, range = ""): Promise<void> {
  using connection = await connect(url);
  await writeAll(connection, requestHead("GET", path, range && `range: ${range}\r\n`));
  const piece = new Uint8Array(PIECE_BYTES);
  let received = 0;
  let expected = Infinity;
  while (received < expected) {
    const got = await connection.read(piece);
    if (got === null) throw new Error(`the answer ended after ${received} bytes`);
    if (received === 0) {
      const head = new TextDecoder("latin1").decode(piece.subarray(0, got)).split("\r\n\r\n")[0]!;
      if (!/^HTTP\/1\.1 20[06]/.test(head)) throw new Error(head);
      expected = head.length + 4 + Number(/content-length: (\d+)/i.exec(head)![1]);
    }
    received += got;
  }
}

function requestHead(method: string, path: string, headers: string): string {
  return `${method} ${path} HTTP/1.1\r\nhost: localhost\r\nx-api-key: ${API_KEY}\r\n${headers}\r\n`;
}

function connect(url: string): Promise<Deno.TcpConn> {
  const { hostname, port } = new URL(url);
  return Deno.connect({ hostname, port: Number(port) });
}

async function writeAll(connection: Deno.TcpConn, part: string | Uint8Array): Promise<void> {
  let left = typeof part === "string" ? new TextEncoder().encode(part) : part;
  while (left.length > 0) left = left.subarray(await connection.write(left));
}

/** The padding is random, so that no layer can compress it. */
function writePaddedFilm(path: string, sizeBytes: number): void {
  const clip = Deno.readFileSync(CLIP);
  const padding = new Uint8Array(sizeBytes - clip.length);
  for (let at = 0; at < padding.length; at += 65_536) {
    crypto.getRandomValues(padding.subarray(at, at + 65_536));
  }
  new DataView(padding.buffer).setUint32(0, padding.length);
  padding.set(new TextEncoder().encode("free"), 4);
  Deno.writeFileSync(path, clip);
  Deno.writeFileSync(path, padding, { append: true });
}
