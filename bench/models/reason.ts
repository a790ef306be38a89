/**
 * The time of a reason request with a model that answers at once, compared with decoding alone:
 *
 *     A  ffmpeg -v error -nostdin -i FILM -map 0:v:0 -f null -       the minimum: decoding alone
 *     B  POST /v1/runs/:id/reason                                     signals, JPEGs, model calls, events, rows
 *
 * Also the peak memory of the service during B and with a video of two hours, the time to the event of the
 * first chunk, and how many model calls are wasted by a stop. The service, the model and this client are
 * separate processes; each measurement of memory starts a new service. The videos are made once, in a cache
 * folder, from bbb480 of fixtures/clips: scaled to 1280x720 and repeated to ten minutes (every frame is
 * analysed), and scaled to 320x180 and repeated to two hours (sampled at one frame per second, so that
 * decoding does not take too long).
 *
 *     ./scripts/deno run -A bench/models/reason.ts [--cache FOLDER] [--rounds 2] [--only wall|memory|stop]
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";
import { type Server, startListening, startServer } from "../../scripts/server.ts";
import { CLIP_CACHE, median, pause, report, TemporaryFolder, timed } from "../support.ts";

const CLIP = fileURLToPath(new URL("../../fixtures/clips/bbb480.mp4", import.meta.url));
const CLIP_SECONDS = 30;
const API_KEY = "bench-key";
const MODEL = "Qwen/Qwen3-VL-4B-Instruct";
const VLM_CONCURRENCY = 4;
/** Milliseconds after a stop in which model calls are counted. */
const AFTER_STOP_MS = 1_000;

const { values } = parseArgs({
  args: Deno.args,
  options: {
    cache: { type: "string", default: CLIP_CACHE },
    rounds: { type: "string", default: "2" },
    only: { type: "string" },
  },
});
Deno.mkdirSync(values.cache, { recursive: true });
await using model = await startListening(
  [fileURLToPath(new URL("reason_model.ts", import.meta.url))],
  {},
);
const measures = (name: string) => values.only === undefined || values.only === name;
const tenMinutes = { source_uri: await film("reason-10min-720p", "1280:720", 600), max_frames: 500_000 };
if (measures("wall")) await compareWalls();
if (measures("memory")) await compareMemory();
if (measures("stop")) await countWasted();

/** The first round is not counted: it warms the file cache and the code. */
async function compareWalls(): Promise<void> {
  using folder = new TemporaryFolder();
  await using service = await serve(folder.path);
  const rounds: { nullMs: number; reasonMs: number; firstMs: number }[] = [];
  for (let round = 0; round <= Number(values.rounds); round++) {
    const nullMs = await timed(() =>
      ffmpeg(["-i", tenMinutes.source_uri, "-map", "0:v:0", "-f", "null", "-"])
    );
    const times = await reason(service, tenMinutes);
    if (round > 0) rounds.push({ nullMs, ...times });
  }
  const ratio = median(rounds.map(({ nullMs, reasonMs }) => reasonMs / nullMs));
  console.log(
    `10 min 720p: null decode ${median(rounds.map(({ nullMs }) => nullMs)).toFixed(0)} ms, reason ${
      median(rounds.map(({ reasonMs }) => reasonMs)).toFixed(0)
    } ms, ratio ${ratio.toFixed(3)}   (at most 1.6, goal 1.2)`,
  );
  console.log(
    `first chunk's event ${
      median(rounds.map(({ firstMs }) => firstMs)).toFixed(0)
    } ms after the request   (at most 2000, goal 700)`,
  );
  report({
    ...{ name: "reason: 10 min of 720p, time", unit: "ms", better: "less" },
    ours: rounds.map(({ reasonMs }) => reasonMs),
    limit: { name: "null decode", values: rounds.map(({ nullMs }) => nullMs) },
  });
  report({
    ...{ name: "reason: first chunk's event", unit: "ms", better: "less" },
    ours: rounds.map(({ firstMs }) => firstMs),
    limit: null,
  });
}

/** Ten minutes and two hours of the same video, so that only the length differs. */
async function compareMemory(): Promise<void> {
  const sparse = { sampling_policy: "fixed", fixed_fps: 1 };
  const films = [
    ["10 min 720p, every frame", tenMinutes],
    ["10 min 180p at 1 fps", { source_uri: await film("reason-10min-180p", "320:180", 600), ...sparse }],
    ["2 h 180p at 1 fps", { source_uri: await film("reason-2h-180p", "320:180", 7200), ...sparse }],
  ] as const;
  const peaks: number[] = [];
  for (const [name, source] of films) {
    using folder = new TemporaryFolder();
    await using service = await serve(folder.path);
    const { reasonMs } = await reason(service, source);
    const peakMb = peakMemoryMb(service.pid);
    peaks.push(peakMb);
    console.log(
      `${name}: ${(reasonMs / 1000).toFixed(1)} s, peak memory of the service ${peakMb.toFixed(0)} MB` +
        `   (at most 400, goal 250)`,
    );
  }
  console.log(`peak of 2 h over peak of 10 min: ${(peaks[2]! / peaks[1]!).toFixed(3)}   (at most 1.2)`);
  report({
    ...{ name: "reason: peak memory, 2 h of film", unit: "MB", better: "less", ours: [peaks[2]!] },
    limit: { name: "10 min of it", values: [peaks[1]!] },
  });
}

/** Model calls that were under way at the stop, and those that started after it. */
async function countWasted(): Promise<void> {
  using folder = new TemporaryFolder();
  await using service = await serve(folder.path);
  await fetch(`${model.url}/hold`);
  const before = await counts();
  const { run_id } = await post(service, "/v1/runs", {});
  const running = send(service, `/v1/runs/${run_id}/reason`, body(tenMinutes));
  while ((await counts()).asked < before.asked + VLM_CONCURRENCY) await pause(20);
  const stoppingMs = await timed(async () => {
    await post(service, `/v1/runs/${run_id}/stop`);
    await (await running).body?.cancel();
  });
  await pause(AFTER_STOP_MS);
  const after = await counts();
  const wasted = after.asked - before.asked - (after.answered - before.answered);
  console.log(
    `stop: answered after ${
      stoppingMs.toFixed(0)
    } ms, ${wasted} model calls wasted of ${VLM_CONCURRENCY} at once` +
      `   (floor ${VLM_CONCURRENCY})`,
  );
}

interface ReasonTimes {
  readonly reasonMs: number;
  /** Milliseconds from the request to the first `semantic_chunk_inferred` on the event stream. */
  readonly firstMs: number;
}

/** One reason request with a new run; reads the whole answer. */
async function reason(service: Server, source: object): Promise<ReasonTimes> {
  const { run_id } = await post(service, "/v1/runs", {});
  const stream = await fetch(
    `${service.url}/v1/runs/${run_id}/events/stream?kind=semantic_chunk_inferred`,
    { headers: { "x-api-key": API_KEY } },
  );
  const startedMs = performance.now();
  const first = firstMessage(stream).then(() => performance.now() - startedMs);
  let bytes = 0;
  const reasonMs = await timed(async () => {
    const response = await send(service, `/v1/runs/${run_id}/reason`, body(source));
    if (!response.ok) throw new Error(`reason answered ${response.status}: ${await response.text()}`);
    for await (const piece of response.body!) bytes += piece.length;
  });
  if (bytes < 1000) throw new Error(`an answer of ${bytes} bytes`);
  return { reasonMs, firstMs: await first };
}

async function firstMessage(stream: Response): Promise<void> {
  const reader = stream.body!.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  while (!text.includes("data:")) {
    const { value, done } = await reader.read();
    if (done) throw new Error("the event stream ended");
    text += value;
  }
  await reader.cancel();
}

function body(source: object): object {
  return { model: MODEL, vlm_concurrency: VLM_CONCURRENCY, ...source };
}

function serve(folder: string): Promise<Server> {
  return startServer({
    SERVICE_API_KEYS: API_KEY,
    SERVICE_DATA_DIR: join(folder, "data"),
    SERVICE_INGEST_FILE_ROOTS: values.cache,
    SERVICE_VLLM_BASE_URL: model.url,
  });
}

function send(service: Server, path: string, json?: object): Promise<Response> {
  return fetch(`${service.url}${path}`, {
    method: "POST",
    headers: { "x-api-key": API_KEY, ...(json && { "content-type": "application/json" }) },
    ...(json && { body: JSON.stringify(json) }),
  });
}

// deno-lint-ignore no-explicit-any -- answers of two shapes
async function post(service: Server, path: string, json?: object): Promise<any> {
  const response = await send(service, path, json);
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
  return await response.json();
}

async function counts(): Promise<{ asked: number; answered: number }> {
  return await (await fetch(`${model.url}/counts`)).json();
}

/** The peak resident memory of the process (VmHWM), its Workers included. */
function peakMemoryMb(pid: number): number {
  return Number(/VmHWM:\s+(\d+)/.exec(Deno.readTextFileSync(`/proc/${pid}/status`))![1]) / 1024;
}

/** The clip scaled to `size`, then repeated without encoding it again. */
async function film(name: string, size: string, seconds: number): Promise<string> {
  const path = join(values.cache, `${name}.mp4`);
  if (await Deno.stat(path).then(() => true, () => false)) return path;
  const once = `${path}.once.mp4`;
  const unfinished = `${path}.part`;
  await ffmpeg([
    ...["-i", CLIP, "-an", "-vf", `scale=${size},setsar=1`],
    ...["-c:v", "libx264", "-preset", "medium", "-f", "mp4", "-y", once],
  ]);
  await ffmpeg([
    ...["-stream_loop", String(seconds / CLIP_SECONDS - 1), "-i", once],
    ...["-c", "copy", "-f", "mp4", "-y", unfinished],
  ]);
  Deno.removeSync(once);
  Deno.renameSync(unfinished, path);
  return path;
}

async function ffmpeg(args: readonly string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command("ffmpeg", { args: ["-v", "error", "-nostdin", ...args] })
    .output();
  if (!success) throw new Error(`ffmpeg failed: ${new TextDecoder().decode(stderr)}`);
}
