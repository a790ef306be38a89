/** The main features with a real clip, through the HTTP API of a real server: run, ingest, analyze, timeline. */

import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { startServer } from "./server.ts";

const ROOT = dirname(dirname(fileURLToPath(import.meta.url)));
const CLIP = join(ROOT, "fixtures", "clips", "bbb480.mp4");
const API_KEY = "demo-key";
const MODEL = "Qwen/Qwen3-VL-4B-Instruct";
/** Columns of the drawn timeline. */
const STRIP_COLUMNS = 80;

interface Marker {
  event_type: string;
  status: string;
  start_frame: number;
  end_frame: number;
  start_pts_ms: number;
  end_pts_ms: number;
  confidence: number;
}

const keep = Deno.args.includes("--keep");
const dataDir = Deno.makeTempDirSync({ prefix: "service-demo-" });
const server = await startServer({
  SERVICE_API_KEYS: API_KEY,
  SERVICE_DATA_DIR: dataDir,
  SERVICE_INGEST_FILE_ROOTS: dirname(CLIP),
});
try {
  await tour(server.url);
  if (keep) await untilInterrupted(server.url);
} finally {
  await server[Symbol.asyncDispose]();
  Deno.removeSync(dataDir, { recursive: true });
}
Deno.exit(0);

async function tour(url: string): Promise<void> {
  console.log(`A server runs at ${url}, with its timeline in ${join(dataDir, "timeline")}.\n`);

  console.log("1. Create a run");
  const run = await call("POST", `${url}/v1/runs`, { mode: "balanced", model: MODEL });
  console.log(`   ${run.run_id} is ${run.status}\n`);
  const runUrl = `${url}/v1/runs/${run.run_id}`;

  console.log("2. Ingest a clip: every frame is decoded and measured");
  const ingestStart = performance.now();
  const ingested = await call("POST", `${runUrl}/ingest`, { source_uri: CLIP, max_frames: 5000 });
  const ingestSeconds = (performance.now() - ingestStart) / 1000;
  const videoSeconds = ingested.decoded_frames / ingested.sample_fps;
  console.log(
    `   ${ingested.decoded_frames} frames at ${ingested.sample_fps} per second, ${
      videoSeconds.toFixed(1)
    } s of ` +
      `video, in ${ingestSeconds.toFixed(2)} s: ${
        (videoSeconds / ingestSeconds).toFixed(0)
      } times real time\n`,
  );

  console.log("3. Analyze: signals become markers");
  const analyzeStart = performance.now();
  const analyzed = await call("POST", `${runUrl}/analyze`, { model: MODEL });
  console.log(
    `   ${analyzed.generated} rows and ${analyzed.markers.length} markers ` +
      `in ${((performance.now() - analyzeStart) / 1000).toFixed(2)} s\n`,
  );

  console.log("4. Read the markers back from the durable timeline");
  const { markers } = await call("GET", `${runUrl}/markers`);
  console.log();
  printTimeline(markers, videoSeconds * 1000);

  console.log("5. The run itself is nothing but its events");
  const { events } = await call("GET", `${runUrl}/events`);
  const kinds = Map.groupBy(events as { kind: string }[], ({ kind }) => kind);
  console.log(`   ${Array.from(kinds, ([kind, all]) => `${all.length} ${kind}`).join(", ")}\n`);
}

/** Makes the request and prints the curl line that makes the same one. */
// deno-lint-ignore no-explicit-any -- a demo reads answers of many shapes
async function call(method: string, url: string, body?: unknown): Promise<any> {
  const data = body === undefined
    ? ""
    : ` \\\n     -H 'content-type: application/json' -d '${JSON.stringify(body)}'`;
  console.log(
    `   $ curl -s${method === "GET" ? "" : ` -X ${method}`} ${url} -H 'x-api-key: ${API_KEY}'${data}`,
  );
  const response = await fetch(url, {
    method,
    headers: { "x-api-key": API_KEY, ...(body !== undefined && { "content-type": "application/json" }) },
    ...(body !== undefined && { body: JSON.stringify(body) }),
  });
  if (!response.ok) throw new Error(`${method} ${url} answered ${response.status}: ${await response.text()}`);
  return response.json();
}

function printTimeline(markers: readonly Marker[], durationMs: number): void {
  const strip = Array.from({ length: STRIP_COLUMNS }, () => "─");
  const column = (ptsMs: number) =>
    Math.min(STRIP_COLUMNS - 1, Math.floor(ptsMs / durationMs * STRIP_COLUMNS));
  const draw = (eventType: string, sign: string) => {
    for (const marker of markers) {
      if (marker.event_type === eventType) strip[column(marker.start_pts_ms)] = sign;
    }
  };
  draw("artifact_suspected", "~");
  draw("scene_cut", "┃");
  console.log(`   ${strip.join("")}`);
  console.log(
    `   0:00${clock(durationMs).padStart(STRIP_COLUMNS - 4)}    ┃ scene_cut   ~ artifact_suspected\n`,
  );

  console.log("   from        to          frames       confidence  status       event type");
  const listed = markers.filter(({ event_type }) =>
    event_type === "scene_cut" || event_type === "artifact_suspected"
  );
  for (const marker of listed) {
    console.log(
      "   " + clock(marker.start_pts_ms).padEnd(12) + clock(marker.end_pts_ms).padEnd(12) +
        `${marker.start_frame}-${marker.end_frame}`.padEnd(13) + marker.confidence.toFixed(3).padEnd(12) +
        marker.status.padEnd(13) + marker.event_type,
    );
  }
  const rest = Map.groupBy(
    markers.filter((marker) => !listed.includes(marker)),
    ({ event_type }) => event_type,
  );
  const counts = Array.from(rest, ([eventType, all]) => `${all.length} ${eventType}`);
  console.log(`   and between them ${counts.join(" and ")} markers\n`);
}

/** `0:07.250` for 7250. */
function clock(ms: number): string {
  const minutes = Math.floor(ms / 60_000);
  return `${minutes}:${((ms % 60_000) / 1000).toFixed(3).padStart(6, "0")}`;
}

async function untilInterrupted(url: string): Promise<void> {
  console.log(`The server stays at ${url} with the key "${API_KEY}" until Ctrl-C.`);
  const interrupted = Promise.withResolvers<void>();
  Deno.addSignalListener("SIGINT", () => interrupted.resolve());
  Deno.addSignalListener("SIGTERM", () => interrupted.resolve());
  await interrupted.promise;
}
