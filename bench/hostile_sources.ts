/**
 * Servers of sources that flood the service: what they cost everybody else. Each server sends as fast as it
 * is read, for the seconds given, while a second caller asks for a run every 20 ms: the longest wait of that
 * caller, and what the service grew by at its peak. A table is printed, and the script fails where a wait is
 * over 300 ms or the service grows by more than 100 MB.
 *
 *     ./scripts/deno run -A bench/hostile_sources.ts [--seconds 20] [--only name] [--bounds memory]
 *
 * With `--bounds memory` the waits are told and not judged, as on a machine that does other work.
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { startServer } from "../scripts/server.ts";
import { statusBytes } from "./pulse.ts";
import { pause, percentile, TemporaryFolder } from "./support.ts";

const API_KEY = "bench-key";
const OTHER_KEY = "bench-key-of-another";
const WAIT_MS_MAX = 300;
const GROWTH_MB_MAX = 100;

const { values } = parseArgs({
  args: Deno.args,
  options: {
    seconds: { type: "string", default: "20" },
    only: { type: "string" },
    bounds: { type: "string", default: "all" },
  },
});
const SECONDS = Number(values.seconds);

interface HostileSource {
  readonly name: string;
  readonly path: string;
  readonly way: "ingest" | "live";
  readonly isSecure?: boolean;
  /** Whether `start` is answers of RTSP, in place of the head of one of HTTP. */
  readonly isRtsp?: boolean;
  readonly contentType: string;
  readonly isChunked?: boolean;
  /** Text that is sent once, before what is sent again and again. */
  readonly start: string;
  readonly again: string;
}

const CHUNKS = "1\r\n\n\r\n".repeat(10_000);
const MJPEG = "multipart/x-mixed-replace; boundary=b";
/** The shortest part that the relay takes for a JPEG. */
const SHORT_JPEG = `--b\r\n\r\n\xff\xd8${"x".repeat(100)}\xff\xd9\r\n`;

const SDP =
  "v=0\r\no=- 0 0 IN IP4 127.0.0.1\r\ns=x\r\nt=0 0\r\nm=video 0 RTP/AVP 96\r\na=rtpmap:96 H264/90000\r\na=control:1\r\n";
/** Answers to OPTIONS, DESCRIBE, SETUP and PLAY. */
const RTSP_ANSWERS = [
  "Public: DESCRIBE, SETUP, PLAY\r\n\r\n",
  `Content-Type: application/sdp\r\nContent-Length: ${SDP.length}\r\n\r\n${SDP}`,
  "Transport: RTP/AVP/TCP;unicast;interleaved=0-1\r\nSession: 1\r\n\r\n",
  "Session: 1\r\n\r\n",
].map((rest, index) => `RTSP/1.0 200 OK\r\nCSeq: ${index + 1}\r\n${rest}`).join("");

const SOURCES: readonly HostileSource[] = [
  {
    name: "film, chunks of a byte",
    path: "/x.mp4",
    way: "ingest",
    contentType: "video/mp4",
    isChunked: true,
    start: "",
    again: CHUNKS,
  },
  {
    ...{ name: "the same over TLS", path: "/x.mp4", way: "ingest", isSecure: true },
    ...{ contentType: "video/mp4", isChunked: true, start: "", again: CHUNKS },
  },
  {
    ...{ name: "playlist, chunks of a byte", path: "/x.m3u8", way: "ingest" },
    ...{ contentType: "application/vnd.apple.mpegurl", isChunked: true },
    ...{ start: "8\r\n#EXTM3U\n\r\n", again: CHUNKS },
  },
  {
    ...{ name: "playlist of addresses", path: "/x.m3u8", way: "ingest" },
    ...{
      contentType: "application/vnd.apple.mpegurl",
      start: "#EXTM3U\n",
      again: "#EXTINF:1,\na\n".repeat(1_000),
    },
  },
  {
    name: "camera, chunks of a byte",
    path: "/x.mjpg",
    way: "live",
    contentType: MJPEG,
    isChunked: true,
    start: "",
    again: CHUNKS,
  },
  {
    name: "camera, parts of 2 bytes",
    path: "/x.mjpg",
    way: "live",
    contentType: MJPEG,
    start: "",
    again: "--b\r\n\r\n\xff\xd8\r\n".repeat(4_096),
  },
  {
    name: "camera, short pictures",
    path: "/x.mjpg",
    way: "live",
    contentType: MJPEG,
    start: "",
    again: SHORT_JPEG.repeat(500),
  },
  {
    ...{ name: "the same over TLS", path: "/x.mjpg", way: "live", isSecure: true, contentType: MJPEG },
    ...{ start: "", again: SHORT_JPEG.repeat(500) },
  },
  {
    ...{ name: "RTSP, answers to nothing", path: "/x", way: "live", isRtsp: true, contentType: "" },
    ...{ start: "", again: "RTSP/1.0 200 OK\r\nCSeq: 9\r\n\r\n".repeat(1_000) },
  },
  {
    ...{ name: "RTSP, packets of no bytes", path: "/x", way: "live", isRtsp: true, contentType: "" },
    ...{ start: RTSP_ANSWERS, again: "$\0\0\0".repeat(10_000) },
  },
];

/** Sends the answers of a source to whoever connects, in a thread of its own. */
const SERVER = `
onmessage = async ({ data: { head, again, tls } }) => {
  const where = { hostname: "127.0.0.1", port: 0 };
  const listener = tls ? Deno.listenTls({ ...where, ...tls }) : Deno.listen(where);
  postMessage(listener.addr.port);
  for await (const connection of listener) void (async () => {
    await connection.read(new Uint8Array(4096));
    const write = async (bytes) => { for (let at = 0; at < bytes.length;) at += await connection.write(bytes.subarray(at)); };
    await write(head);
    for (;;) await write(again);
  })().catch(() => {});
};
`;

const tlsFile = (name: string) =>
  Deno.readTextFileSync(new URL(`../test/support/http/tls/${name}`, import.meta.url));

using folder = new TemporaryFolder();
let isFine = true;
console.log(
  "server                              answer   gets      p50    p99   longest   memory at its peak",
);
for (const [at, source] of SOURCES.entries()) {
  if (values.only !== undefined && !source.name.includes(values.only)) continue;
  // Each on a service of its own, as what one leaves in memory would hide what the next one takes.
  await measure(source, join(folder.path, String(at)));
}
folder[Symbol.dispose]();
Deno.exit(isFine ? 0 : 1);

async function measure(source: HostileSource, dataDir: string): Promise<void> {
  const { name, way, path, isSecure = false } = source;
  await using service = await startServer({
    SERVICE_API_KEYS: `${API_KEY},${OTHER_KEY}`,
    SERVICE_DATA_DIR: dataDir,
    SERVICE_ALLOW_INSECURE_HTTP: "1",
    SERVICE_ALLOW_INSECURE_TLS: "1",
    SERVICE_ALLOW_REMOTE_HLS: "1",
    SERVICE_ALLOW_UNENCRYPTED_RTSP: "1",
    SERVICE_MEDIA_ALLOWED_NETWORKS: "127.0.0.0/8",
  });
  const call = (method: string, path: string, key: string, body?: unknown) =>
    fetch(`${service.url}${path}`, {
      method,
      headers: { "x-api-key": key, "content-type": "application/json" },
      ...(body !== undefined && { body: JSON.stringify(body) }),
    });
  const newRun = async (key: string): Promise<string> =>
    (await (await call("POST", "/v1/runs", key, {})).json()).run_id;
  const [runId, otherRunId] = [await newRun(API_KEY), await newRun(OTHER_KEY)];
  for (let warm = 0; warm < 50; warm++) await (await call("GET", `/v1/runs/${otherRunId}`, OTHER_KEY)).text();

  const server = new Worker(`data:text/javascript,${encodeURIComponent(SERVER)}`, { type: "module" });
  server.postMessage({
    head: bytesOf(
      source.isRtsp
        ? source.start
        : `HTTP/1.1 200 OK\r\nContent-Type: ${source.contentType}\r\n${
          source.isChunked ? "Transfer-Encoding: chunked\r\n" : ""
        }\r\n${source.start}`,
    ),
    again: bytesOf(source.again),
    ...(isSecure && { tls: { cert: tlsFile("leaf.crt"), key: tlsFile("leaf.key") } }),
  });
  const port: number = await new Promise((resolve) => server.onmessage = ({ data }) => resolve(data));

  const residentMb = () => statusBytes(service.pid, "VmRSS") / 2 ** 20;
  const beforeMb = residentMb();
  let [peakMb, isOver] = [beforeMb, false];
  const waits: number[] = [];
  const asking = (async () => {
    while (!isOver) {
      const start = performance.now();
      await (await call("GET", `/v1/runs/${otherRunId}`, OTHER_KEY)).text();
      waits.push(performance.now() - start);
      peakMb = Math.max(peakMb, residentMb());
      await pause(20);
    }
  })();
  const source_uri = `${source.isRtsp ? "rtsp" : isSecure ? "https" : "http"}://127.0.0.1:${port}${path}`;
  const end = performance.now() + SECONDS * 1000;
  let answer = 0;
  // A source that was refused is named again, as a caller would.
  while (performance.now() < end) {
    const answered = call("POST", `/v1/runs/${runId}/${way}`, API_KEY, { source_uri }).then(
      async (response) => {
        await response.text();
        return response.status;
      },
    );
    const first = await Promise.race([answered, pause(Math.max(0, end - performance.now()))]);
    answer = first || answer;
    await pause(first === 200 ? Math.max(0, end - performance.now()) : 200);
  }
  isOver = true;
  await asking;
  server.terminate();
  const [longest, grownMb] = [percentile(waits, 1), peakMb - beforeMb];
  isFine &&= (values.bounds === "memory" || longest <= WAIT_MS_MAX) && grownMb <= GROWTH_MB_MAX;
  const ms = (share: number) => percentile(waits, share).toFixed(1).padStart(6);
  console.log(
    `${name.padEnd(36)}${String(answer || "none").padStart(6)} ${String(waits.length).padStart(6)}   ${
      ms(0.5)
    } ${ms(0.99)}   ${longest.toFixed(0).padStart(5)} ms ${grownMb.toFixed(0).padStart(8)} MB`,
  );
}

function bytesOf(text: string): Uint8Array {
  return Uint8Array.from(text, (character) => character.charCodeAt(0));
}
