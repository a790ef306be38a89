/**
 * Cameras that are always watched: the processor time of each and the frames that are lost, how soon one is
 * back after its server was restarted, how soon an evidence clip is stored, and the growth of memory.
 *
 *     ./scripts/deno run -A bench/live/cameras.ts [--only watch,return,clip,memory] [--cameras 8] [--seconds 20]
 *         [--restarts 20] [--clips 20] [--minutes 60]
 *
 * The cameras send H.264, 640x480 at 30 fps, 1.5 Mbit/s, from a process whose share is told apart. The
 * service and a model server that answers at once run in this process (for memory the service has its own),
 * and every camera has a ring for clips. Frames that are lost say something on a quiet machine only,
 * processor time on any; times of coming back and of clips are those of waiting and hardly depend on the
 * load.
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { childProcesses } from "../../test/support/own_process.ts";
import { make, TempFolder } from "../../test/support/media.ts";
import { metric } from "../../test/support/live/live.ts";
import { startModelServer } from "../../test/support/models/model_server.ts";
import { startReason } from "../../test/support/models/reason.ts";
import { CLIPS, type TestService } from "../../test/support/service.ts";
import { until } from "../../test/support/until.ts";
import { startServer } from "../../scripts/server.ts";
import { load, median, pause, percentile, report } from "../support.ts";
import { CameraServer } from "./camera_process.ts";
import { machine, secondsOf } from "./live_support.ts";

const { values } = parseArgs({
  args: Deno.args,
  options: {
    only: { type: "string", default: "watch,return,clip" },
    cameras: { type: "string", default: "8" },
    seconds: { type: "string", default: "20" },
    restarts: { type: "string", default: "20" },
    clips: { type: "string", default: "20" },
    minutes: { type: "string", default: "60" },
  },
});
const PARTS: Readonly<Record<string, () => Promise<void>>> = {
  watch: watchMany,
  return: comeBack,
  clip: storeClips,
  memory: growth,
};
const PROCESSORS = 2;
const FPS = 30;
const POST_ROLL_MS = 1_000;

using folder = new TempFolder();
const film = make(
  join(folder.path, "camera.mkv"),
  ...[
    "-stream_loop",
    "-1",
    "-i",
    join(CLIPS, "bbb480.mp4"),
    "-t",
    "10",
    "-an",
    "-vf",
    "scale=640:480,fps=30",
  ],
  ...["-c:v", "libx264", "-preset", "veryfast", "-bf", "0", "-b:v", "1500k", "-maxrate", "1500k"],
  ...["-bufsize", "750k", "-g", "60"],
);

console.log(machine());
for (const part of values.only.split(",")) await PARTS[part]!();

/**
 * The processor time of watching, told for all that works for a camera: service, decoders, forwarder; not its
 * server.
 */
async function watchMany(): Promise<void> {
  const count = Number(values.cameras);
  await using server = await CameraServer.start(film);
  await using service = await watching(count, server.port);
  await untilLive(service, count);
  const before = spent(server);
  const framesBefore = await framesDecoded(service);
  const startMs = performance.now();
  await pause(Number(values.seconds) * 1_000);
  const seconds = (performance.now() - startMs) / 1_000;
  const frames = await framesDecoded(service) - framesBefore;
  const after = spent(server);
  const share = (after.service - before.service) / seconds / count * 100;
  const ofServer = (after.server - before.server) / seconds / count * 100;
  const dropped = await metric(service, "service_pipeline_frames_dropped_total");
  const gaps = await metric(service, "service_pipeline_pulled_sources", 'state="lost"');
  tell(
    `${count} cameras for ${seconds.toFixed(0)} s: ${share.toFixed(2)} % of a core each, and ${
      ofServer.toFixed(2)
    } % for its server`,
    `${(PROCESSORS * 100 / share).toFixed(1)} would take ${PROCESSORS} cores, with their server ` +
      `${(PROCESSORS * 100 / (share + ofServer)).toFixed(1)} (asked: at least 8, aim 14)`,
    `${frames} frames of ${
      Math.round(count * FPS * seconds)
    } decoded, ${dropped} dropped before analysis, ${gaps} cameras lost`,
  );
  report({
    ...{ name: "cameras: processor for one, 640x480 at 30 fps", unit: "% of a core", better: "less" },
    ...{ ours: [share], limit: null },
  });
}

/**
 * Measures the time from the moment when a server listens again to the event that tells of the first picture.
 */
async function comeBack(): Promise<void> {
  let server = await CameraServer.start(film);
  const { port } = server;
  await using service = await watching(1, port);
  const times: number[] = [];
  try {
    for (let restart = 0; restart < Number(values.restarts); restart++) {
      await untilLive(service, 1);
      await pause(500);
      const runId = await runOf(service);
      const resumed = () => eventsOfKind(service, runId, "source_resumed");
      const before = (await resumed()).length;
      await server[Symbol.asyncDispose]();
      // From a server that is at once there again to one that takes some seconds.
      await pause(200 + 3_000 * restart / Number(values.restarts));
      server = await CameraServer.start(film, port);
      let events: readonly TimedEvent[] = [];
      await until("the camera is back", async () => (events = await resumed()).length > before);
      times.push(events.at(-1)!.pts_ms - server.listeningMs);
    }
  } finally {
    await server[Symbol.asyncDispose]();
  }
  tell(
    `back after its server listens again, ${times.length} restarts: median ${median(times).toFixed(0)} ms, ` +
      `p95 ${percentile(times, 0.95).toFixed(0)} ms, longest ${Math.max(...times).toFixed(0)} ms ` +
      "(asked: p95 at least 3000, aim 1500)",
  );
  report({
    ...{ name: "cameras: back after a restart of the server", unit: "ms", better: "less" },
    ...{ ours: times, limit: null },
  });
}

/**
 * Measures the time from the moment when the last picture of a clip was sent to the event that names the
 * clip.
 */
async function storeClips(): Promise<void> {
  const times: number[] = [];
  await using server = await CameraServer.start(film);
  await using service = await watching(1, server.port);
  await untilLive(service, 1);
  const runId = await runOf(service);
  const startMs = server.playingMs;
  while (times.length < Number(values.clips)) {
    await until("another clip", async () => {
      const clips = await eventsOfKind(service, runId, "clip_stored");
      const more = clips.slice(times.length);
      times.push(...more.map(({ pts_ms, payload }) => pts_ms - (startMs + payload.end_pts_ms)));
      return more.length > 0;
    });
  }
  tell(
    `a clip is stored after the last picture in it, ${times.length} clips: median ${
      median(times).toFixed(0)
    } ms, ` +
      `p95 ${percentile(times, 0.95).toFixed(0)} ms (asked: p95 at least 1000, aim 300)`,
  );
  report({
    ...{ name: "cameras: clip stored after its last picture", unit: "ms", better: "less" },
    ...{ ours: times, limit: null },
  });
}

/**
 * Measures the growth of memory: four cameras with new runs every minute, their events, descriptions and
 * clips, and a retention that removes the runs. The service is a process of its own, as it is started
 * everywhere, so that its memory is its own, too.
 */
async function growth(): Promise<void> {
  const dataDir = join(folder.path, "data");
  const sourcesPath = join(folder.path, "sources.toml");
  await using camera = await CameraServer.start(film);
  await using model = startModelServer({ answer: () => "A picture." });
  Deno.writeTextFileSync(sourcesPath, sourcesOf(4, { host: "127.0.0.1", port: camera.port, rollover: "1m" }));
  await using server = await startServer({
    SERVICE_REQUIRE_API_KEY: "false",
    SERVICE_METRICS_REQUIRE_API_KEY: "false",
    SERVICE_DATA_DIR: dataDir,
    SERVICE_SOURCES_CONFIG: sourcesPath,
    SERVICE_MEDIA_ALLOWED_NETWORKS: "127.0.0.0/8",
    SERVICE_ALLOW_UNENCRYPTED_RTSP: "true",
    SERVICE_VLLM_BASE_URL: model.url,
    SERVICE_RETENTION_RUN_BYTES: String(2 ** 20),
  });
  const metrics = async () => await (await fetch(`${server.url}/v1/metrics`)).text();
  await until("4 cameras are live", async () => /^service_sources\{state="live"\} 4$/m.test(await metrics()));
  const minutes = Number(values.minutes);
  // Until V8 has found the sizes of its heaps, and what is bounded is full.
  const warmUp = Math.min(20, minutes);
  const samples: { minute: number; bytes: number }[] = [];
  const beginMs = performance.now();
  for (let minute = 0.5; minute <= warmUp + minutes; minute += 0.5) {
    // The mean of half a minute: memory goes up and down by a tenth with each collection, and the service
    // gives pages back every 30 s, so that one look at each half minute would go along with that for many
    // minutes, at its top or at its bottom.
    const looks: number[] = [];
    while (performance.now() - beginMs < minute * 60_000) {
      looks.push(residentBytesOf(server.pid));
      await pause(1_000);
    }
    const bytes = mean(looks);
    console.log(`minute ${minute}: ${(bytes / 2 ** 20).toFixed(1)} MB`);
    if (minute > warmUp) samples.push({ minute, bytes });
  }
  const removed = /^service_retention_removed_total\{what="runs"\} (\d+)$/m.exec(await metrics())?.[1] ?? "0";
  tell(
    `memory over ${minutes} minutes with 4 cameras, ${warmUp} minutes after the start: ${
      (slopeOf(samples) * 60 / 2 ** 20).toFixed(2)
    } MB an hour (asked: at least 4, aim 1); retention removed ${removed} runs`,
  );
}

function residentBytesOf(pid: number): number {
  return Number(/VmRSS:\s+(\d+) kB/.exec(Deno.readTextFileSync(`/proc/${pid}/status`))![1]) * 1024;
}

function mean(numbers: readonly number[]): number {
  return numbers.reduce((sum, number) => sum + number, 0) / numbers.length;
}

/** Bytes a minute of the line through the samples. */
function slopeOf(samples: readonly { readonly minute: number; readonly bytes: number }[]): number {
  const minute = mean(samples.map(({ minute }) => minute));
  const bytes = mean(samples.map(({ bytes }) => bytes));
  const covariance = samples.reduce(
    (sum, sample) => sum + (sample.minute - minute) * (sample.bytes - bytes),
    0,
  );
  return covariance / samples.reduce((sum, sample) => sum + (sample.minute - minute) ** 2, 0);
}

function tell(...lines: readonly string[]): void {
  for (const line of lines) console.log(line);
  console.log(`  at a load of ${load()}`);
}

/** A service with so many cameras that are always watched and have clips. */
async function watching(
  count: number,
  port: number,
): Promise<TestService> {
  const sourcesFile = sourcesOf(count, { host: "camera.test", port, rollover: "1d" });
  const live = await startReason({ answer: () => "A picture." }, {
    SERVICE_ALLOW_UNENCRYPTED_RTSP: "true",
  }, {
    sourcesFile,
    outbound: { resolve: () => Promise.resolve(["93.184.216.34"]), reroute: () => "127.0.0.1" },
  });
  return Object.assign(Object.create(live.test), {
    [Symbol.asyncDispose]: () => live[Symbol.asyncDispose](),
  });
}

function sourcesOf(
  count: number,
  { host, port, rollover }: { readonly host: string; readonly port: number; readonly rollover: string },
): string {
  return Array.from(
    { length: count },
    (_, camera) =>
      `[[sources]]\nname = "camera-${camera}"\nuri = "rtsp://${host}:${port}/${camera}"\nprincipals = ["*"]\n` +
      `live = true\nrollover = "${rollover}"\nprompt = "Watch."\n` +
      `record = { pre_roll_ms = 1000, post_roll_ms = ${POST_ROLL_MS}, on = ["keyframe"] }\n`,
  ).join("\n");
}

async function untilLive(service: TestService, count: number): Promise<void> {
  await until(
    `${count} cameras are live`,
    async () => await metric(service, "service_sources", 'state="live"') === count,
  );
}

async function runOf(service: TestService): Promise<string> {
  const { json } = await service.call("GET", "/v1/sources");
  return json.sources[0].run_id;
}

function framesDecoded(service: TestService): Promise<number> {
  return metric(service, "service_pipeline_frames_decoded_total");
}

interface TimedEvent {
  /** When the event was written, epoch milliseconds. */
  readonly pts_ms: number;
  // deno-lint-ignore no-explicit-any -- of the kind that was asked for
  readonly payload: any;
}

async function eventsOfKind(
  service: TestService,
  run_id: string,
  kind: string,
): Promise<readonly TimedEvent[]> {
  const { status, json, text } = await service.call("POST", "/v1/query", { run_id, kind });
  if (status !== 200) throw new Error(text);
  return json.matches;
}

interface Spent {
  /** Seconds of this process and of all that it started but the cameras. */
  readonly service: number;
  readonly server: number;
}

function spent(server: CameraServer): Spent {
  const started = childProcesses().filter(({ pid }) => pid !== server.pid);
  return {
    service: secondsOf(Deno.pid) + started.reduce((sum, { pid }) => sum + secondsOf(pid), 0),
    server: secondsOf(server.pid),
  };
}
