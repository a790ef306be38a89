/**
 * The time and the CPU time of an ingest request, compared with decoding alone:
 *
 *     A  ffmpeg -v error -nostdin -i CLIP -f null -       the minimum: decoding alone
 *     B  POST /v1/runs/:id/ingest                          request, ffprobe, ffmpeg, pipe, signals, commit, answer
 *
 * B is of a file that the service has not seen, by a new time of its last change, then of another one that it
 * knows. All alternate, so that other load on the machine affects them alike. CPU time is what the whole
 * machine, or the container, used meanwhile, so it says something only where nothing else works. The clips of
 * 30 seconds are made once, in a cache folder: the first ten seconds of bbb480, intel_bottle and
 * own_screenrec of fixtures/clips, scaled and padded at 25 frames a second, joined, x264 medium. That of two
 * minutes is the one of 1080p four times, without another encode.
 *
 *     ./scripts/deno run -A bench/ingest.ts [--cache FOLDER] [--rounds 7] [--only 1080p,480p]
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";
import { startServer } from "../scripts/server.ts";
import { CLIP_CACHE, machineCpuMs, report, TemporaryFolder, timed } from "./support.ts";

const CLIPS = fileURLToPath(new URL("../fixtures/clips/", import.meta.url));
const SOURCES = ["bbb480.mp4", "intel_bottle.mp4", "own_screenrec.mp4"];
const SECONDS_EACH = 10;
const API_KEY = "bench-key";
/** Milliseconds since its last change after which a file is not looked into again. */
const SETTLED_MS = 3_000;

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
  const rounds: { decode: Cost; first: Cost; again: Cost }[] = [];
  let frames: number | undefined;
  const ingest = async (source_uri: string) => {
    const { decoded_frames } = await post(`/v1/runs/${run_id}/ingest`, { source_uri, max_frames: 500_000 });
    if ((frames ??= decoded_frames) !== decoded_frames) {
      throw new Error(`${decoded_frames} frames, not ${frames}`);
    }
  };
  const changing = join(values.cache, "changing.mp4");
  Deno.copyFileSync(clip, changing);
  await new Promise((resolve) => setTimeout(resolve, SETTLED_MS));
  for (let round = 0; round <= Number(values.rounds); round++) {
    const decode = await cost(() => ffmpeg(["-i", clip, "-f", "null", "-"]));
    const changed = new Date(Date.now() - 60_000);
    Deno.utimeSync(changing, changed, changed);
    const first = await cost(() => ingest(changing));
    const again = await cost(() => ingest(clip));
    if (round > 0) rounds.push({ decode, first, again });
  }
  Deno.removeSync(changing);
  const figure = (what: string, key: keyof Cost, ours: readonly Cost[]) =>
    report({
      ...{
        name: `ingest: ${name}, ${what}`,
        unit: "ms",
        better: "less",
        ours: ours.map((cost) => cost[key]),
      },
      limit: { name: "null decode", values: rounds.map(({ decode }) => decode[key]) },
    });
  const [first, again] = [rounds.map(({ first }) => first), rounds.map(({ again }) => again)];
  figure("time, new file", "ms", first);
  figure("time, known file", "ms", again);
  figure("CPU time, new file", "cpuMs", first);
  figure("CPU time, known file", "cpuMs", again);
}

async function cost(work: () => Promise<void>): Promise<Cost> {
  const before = machineCpuMs();
  const ms = await timed(work);
  return { ms, cpuMs: machineCpuMs() - before };
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
