/**
 * The time and the CPU time of an ingest request, compared with decoding alone:
 *
 *     A  ffmpeg -v error -nostdin -i CLIP -f null -       the minimum: decoding alone
 *     B  POST /v1/runs/:id/ingest                          request, ffprobe, ffmpeg, pipe, signals, commit, answer
 *
 * B is of a file that the service has not seen, by a new time of its last change, then of the same file again, and once more for the
 * CPU time. All alternate, so that other load on the machine affects them alike. CPU time is that of all processes: B is what the server,
 * ffprobe and ffmpeg used together. The clips of 30 seconds are made once, in a cache folder: the first ten seconds of bbb480,
 * intel_bottle and own_screenrec of fixtures/clips, scaled and padded at 25 frames a second, joined, x264 medium. That of two
 * minutes is the one of 1080p four times, without another encode.
 *
 *     ./scripts/deno run -A scripts/bench/ingest.ts [--cache FOLDER] [--rounds 7] [--only 1080p,480p]
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";
import { startServer } from "../server.ts";
import { CLIP_CACHE, report, TemporaryFolder, timed } from "./support.ts";

const CLIPS = fileURLToPath(new URL("../../fixtures/clips/", import.meta.url));
const SOURCES = ["bbb480.mp4", "intel_bottle.mp4", "own_screenrec.mp4"];
const SECONDS_EACH = 10;
const API_KEY = "bench-key";
/** USER_HZ of Linux. */
const TICKS_A_SECOND = 100;
/** A process is last seen at most this long before its end. */
const LOOK_EVERY_MS = 10;

interface Size {
  readonly name: string;
  readonly width: number;
  readonly height: number;
  /** How often the film is shown. */
  readonly times: number;
}

const SIZES: readonly Size[] = [
  { name: "1080p", width: 1920, height: 1080, times: 1 },
  { name: "1080p-2min", width: 1920, height: 1080, times: 4 },
  { name: "720p", width: 1280, height: 720, times: 1 },
  { name: "480p", width: 854, height: 480, times: 1 },
];

const { values } = parseArgs({
  args: Deno.args,
  options: {
    cache: { type: "string", default: CLIP_CACHE },
    rounds: { type: "string", default: "7" },
    only: { type: "string", default: SIZES.map(({ name }) => name).join(",") },
  },
});
Deno.mkdirSync(values.cache, { recursive: true });
using folder = new TemporaryFolder();
await using server = await startServer({
  SERVICE_API_KEYS: API_KEY,
  SERVICE_DATA_DIR: join(folder.path, "data"),
  SERVICE_INGEST_FILE_ROOTS: values.cache,
});
const { run_id } = await post("/v1/runs", {});
for (const size of SIZES) {
  if (values.only.split(",").includes(size.name)) await compare(size, await benchClip(size));
}

/** One way to decode: how long it took, and the CPU time that it used. */
interface Cost {
  readonly ms: number;
  readonly cpuMs: number;
}

/** The first round is not counted: it warms the file cache and the code. */
async function compare({ name }: Size, clip: string): Promise<void> {
  const rounds: { decode: Cost; firstMs: number; againMs: number; cpuMs: number }[] = [];
  let frames: number | undefined;
  const ingest = async () => {
    const body = { source_uri: clip, max_frames: 500_000 };
    const { decoded_frames } = await post(`/v1/runs/${run_id}/ingest`, body);
    if ((frames ??= decoded_frames) !== decoded_frames) {
      throw new Error(`${decoded_frames} frames, not ${frames}`);
    }
  };
  for (let round = 0; round <= Number(values.rounds); round++) {
    const decode = await cost(null, () => ffmpeg(["-i", clip, "-f", "null", "-"]));
    const changed = new Date(Date.now() - 60_000);
    Deno.utimeSync(clip, changed, changed);
    const firstMs = await timed(ingest);
    const againMs = await timed(ingest);
    // Watching processes takes some CPU time itself, so this ingest is not timed.
    const { cpuMs } = await cost(server.pid, ingest);
    if (round > 0) rounds.push({ decode, firstMs, againMs, cpuMs });
  }
  const figure = (what: string, key: keyof Cost, ours: readonly number[]) =>
    report({
      ...{ name: `ingest: ${name}, ${what}`, unit: "ms", better: "less", ours },
      limit: { name: "null decode", values: rounds.map(({ decode }) => decode[key]) },
    });
  figure("time, new file", "ms", rounds.map(({ firstMs }) => firstMs));
  figure("time, known file", "ms", rounds.map(({ againMs }) => againMs));
  figure("CPU time, known file", "cpuMs", rounds.map(({ cpuMs }) => cpuMs));
}

/** The CPU time is that of the server and of what it started meanwhile, or, without `pid`, of what this process waited for. */
async function cost(pid: number | null, work: () => Promise<void>): Promise<Cost> {
  if (pid === null) {
    const before = waitedForMs();
    const ms = await timed(work);
    return { ms, cpuMs: waitedForMs() - before };
  }
  // The cage of a program is not waited for by the server, so processes are looked at while they run.
  const first = new Map<number, number>(), last = new Map<number, number>();
  const look = () => {
    for (const process of [pid, ...descendantsOf(pid)]) {
      const used = ownCpuMs(process);
      if (used === null) continue;
      if (!first.has(process)) first.set(process, isRunningFirst ? used : 0);
      last.set(process, used);
    }
  };
  let isRunningFirst = true;
  look();
  isRunningFirst = false;
  const timer = setInterval(look, LOOK_EVERY_MS);
  const ms = await timed(work).finally(() => clearInterval(timer));
  look();
  return { ms, cpuMs: [...last].reduce((sum, [process, used]) => sum + used - first.get(process)!, 0) };
}

/** User and system time, without that of children; null when it has ended. */
function ownCpuMs(pid: number): number | null {
  const [user, system] = ticksOf(pid) ?? [];
  return user === undefined ? null : (user + system!) * 1000 / TICKS_A_SECOND;
}

function waitedForMs(): number {
  const [, , user, system] = ticksOf(Deno.pid)!;
  return (user! + system!) * 1000 / TICKS_A_SECOND;
}

/** User and system time of a process, and of those it waited for: see proc(5). */
function ticksOf(pid: number): number[] | null {
  const stat = textOf(`/proc/${pid}/stat`);
  return stat === "" ? null : stat.slice(stat.lastIndexOf(")") + 2).split(" ").slice(11, 15).map(Number);
}

function descendantsOf(pid: number): number[] {
  let threads: string[];
  try {
    threads = [...Deno.readDirSync(`/proc/${pid}/task`)].map(({ name }) => name);
  } catch {
    return [];
  }
  const children = threads.flatMap((thread) =>
    textOf(`/proc/${pid}/task/${thread}/children`).split(" ").filter((child) => child !== "").map(Number)
  );
  return children.flatMap((child) => [child, ...descendantsOf(child)]);
}

/** Empty when there is no such process any more. */
function textOf(path: string): string {
  try {
    return Deno.readTextFileSync(path).trim();
  } catch {
    return "";
  }
}

// deno-lint-ignore no-explicit-any -- answers of two shapes
async function post(path: string, body: unknown): Promise<any> {
  const response = await fetch(`${server.url}${path}`, {
    method: "POST",
    headers: { "x-api-key": API_KEY, "content-type": "application/json" },
    body: JSON.stringify(body),
  });
  if (!response.ok) throw new Error(`${path} answered ${response.status}: ${await response.text()}`);
  return await response.json();
}

async function benchClip({ name, width, height, times }: Size): Promise<string> {
  const path = join(values.cache, `film-${name}.mp4`);
  if (await Deno.stat(path).then(() => true, () => false)) return path;
  if (times > 1) {
    const once = await benchClip(SIZES.find((size) => size.height === height && size.times === 1)!);
    await made(path, ["-stream_loop", String(times - 1), "-i", once, "-c", "copy"]);
    return path;
  }
  const parts = SOURCES.map((_, index) =>
    `[${index}:v:0]scale=${width}:${height}:force_original_aspect_ratio=decrease,` +
    `pad=${width}:${height}:-1:-1,setsar=1,fps=25,format=yuv420p[v${index}]`
  );
  const inputs = SOURCES.flatMap((source) => ["-t", String(SECONDS_EACH), "-i", join(CLIPS, source)]);
  const joined = `${SOURCES.map((_, index) => `[v${index}]`).join("")}concat=n=${SOURCES.length}[v]`;
  const film = ["-filter_complex", [...parts, joined].join(";"), "-map", "[v]"];
  await made(path, [...inputs, ...film, "-c:v", "libx264", "-preset", "medium"]);
  return path;
}

/** A clip that was made to its end; what is left of a broken run is made again. */
async function made(path: string, args: readonly string[]): Promise<void> {
  const unfinished = `${path}.part`;
  await ffmpeg([...args, "-f", "mp4", "-y", unfinished]);
  Deno.renameSync(unfinished, path);
}

async function ffmpeg(args: readonly string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command("ffmpeg", { args: ["-v", "error", "-nostdin", ...args] })
    .output();
  if (!success) throw new Error(`ffmpeg failed: ${new TextDecoder().decode(stderr)}`);
}
