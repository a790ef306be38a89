/**
 * What other detectors find in the same labelled videos, with the same scores: ffmpeg's `scdet`, `select` by
 * scene, `freezedetect` and `blackdetect`, and PySceneDetect, which is installed into a folder of its own
 * where PyPI can be reached.
 *
 *     ./scripts/deno run -A lab/compare.ts FOLDER... [--markdown] [--no-pyscenedetect] [--jobs n]
 */

import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { measureAll } from "./scores/measure.ts";
import { type Counts, type Predictions, rates } from "./scores/score.ts";
import { sumOf, totalsOfVideos, written } from "./scores/score_table.ts";
import type { FrameRange } from "./scores/truth.ts";
import { findVideos } from "./scores/videos.ts";

const TOOLS = fileURLToPath(new URL("../.tools", import.meta.url));
/** Packages of PySceneDetect, pinned, so that the comparison can be repeated. */
const PACKAGES = ["scenedetect==0.6.7.1", "opencv-python-headless==4.12.0.88"];
const SCENE = 0.3;

/**
 * Chains of ffmpeg filters whose frame metadata says what each finds. The first has ffmpeg's own values, as
 * most people use it.
 */
const RANGE_SETTINGS = {
  "freezedetect (default, 2 s)": "freezedetect",
  "freezedetect=d=0.25": "freezedetect=d=0.25",
  "freezedetect=n=0.003:d=0.25": "freezedetect=n=0.003:d=0.25",
  "blackdetect (default, 2 s)": "blackdetect",
  "blackdetect=d=0.1": "blackdetect=d=0.1",
  "blackdetect=d=0.1:pix_th=0.05": "blackdetect=d=0.1:pix_th=0.05",
} as const;

const { values, positionals } = parseArgs({
  args: Deno.args,
  allowPositionals: true,
  allowNegative: true,
  options: {
    markdown: { type: "boolean", default: false },
    pyscenedetect: { type: "boolean", default: true },
    jobs: { type: "string" },
  },
});

const videos = await findVideos(positionals);
if (videos.length === 0) throw new Error("Nothing to compare: name a folder with labelled videos");
const paths = videos.map(({ path }) => path);
const jobs = Number(values.jobs ?? navigator.hardwareConcurrency);
/** Predictions of each detector for each path. */
const found = new Map<string, Map<string, Predictions>>();
const note = (detector: string, path: string, predictions: Predictions) => {
  if (!found.has(detector)) found.set(detector, new Map());
  found.get(detector)!.set(path, predictions);
};

for (const { path, predictions } of await measureAll(paths, { jobs, cache: join(TOOLS, "quality") })) {
  note("this service", path, predictions);
}
const queue = [...paths];
await Promise.all(Array.from({ length: jobs }, async () => {
  for (let path = queue.shift(); path !== undefined; path = queue.shift()) await askFfmpeg(path);
}));
if (values.pyscenedetect) await askPySceneDetect();

const FIGURES = ["cuts", "freezes", "black", "flashes", "gradual", "loops"] as const;
const rows = [...found].map(([detector, predictions]) => {
  const totals = totalsOfVideos(videos, paths.map((path) => predictions.get(path) ?? {}));
  return [detector, ...FIGURES.map((figure) => cell(sumOf(totals).counts[figure]))];
});
console.log(written([["detector", ...FIGURES], ...rows], values.markdown ? "markdown" : "text"));
console.error("\nF1 (precision, recall); empty: the detector does not look for it");

function cell(counts: Counts | undefined): string {
  if (!counts) return "";
  if (counts.hits + counts.falseAlarms === 0) return counts.misses > 0 ? "nothing found" : "";
  const { f1, precision, recall } = rates(counts);
  return `${f1.toFixed(3)} (${precision.toFixed(3)}, ${recall.toFixed(3)})`;
}

/**
 * Asks all filters of ffmpeg in one decode, of which each gets a copy. The file names of the metadata are
 * numbers, as they are part of a filter graph.
 */
async function askFfmpeg(path: string): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "service-compare-" });
  try {
    const chains = [`scdet,select='gte(scene,0)'`, ...Object.values(RANGE_SETTINGS)];
    const inputs = chains.map((_, at) => `[v${at}]`);
    const graph = [
      `[0:v:0]split=${chains.length}${inputs.join("")}`,
      ...chains.map((chain, at) => `${inputs[at]}${chain},metadata=print:file=${at}.txt[o${at}]`),
    ].join(";");
    const outputs = chains.flatMap((
      _,
      at,
    ) => ["-map", `[o${at}]`, "-fps_mode", "passthrough", "-f", "null", "-"]);
    await new Deno.Command("ffmpeg", {
      args: ["-nostdin", "-v", "quiet", "-threads", "1", "-i", path, "-filter_complex", graph, ...outputs],
      cwd: folder,
      stdout: "null",
      stderr: "null",
    }).output();
    const frames = await metadataOf(join(folder, "0.txt"));
    const cuts = (isCut: (keys: ReadonlyMap<string, number>) => boolean) =>
      frames.flatMap(({ keys }, at) => isCut(keys) ? [at] : []);
    note("ffmpeg scdet (10)", path, { cuts: cuts((keys) => keys.has("scd.time")) });
    note(`ffmpeg select, scene > ${SCENE}`, path, {
      cuts: cuts((keys) => (keys.get("scene_score") ?? 0) > SCENE),
    });
    const times = frames.map(({ time }) => time);
    for (const [at, name] of Object.keys(RANGE_SETTINGS).entries()) {
      const marked = await metadataOf(join(folder, `${at + 1}.txt`));
      note(
        `ffmpeg ${name}`,
        path,
        name.startsWith("freeze")
          // It starts at the frame that is then repeated.
          ? { freezes: rangesOf(marked, "freezedetect.freeze_start", "freezedetect.freeze_end", times, 1) }
          : { black: rangesOf(marked, "black_start", "black_end", times, 0) },
      );
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

interface MarkedFrame {
  /** Time of the frame, seconds. */
  readonly time: number;
  /** Values of the frame by key, without the `lavfi.` before each name. */
  readonly keys: ReadonlyMap<string, number>;
}

/** What the filter `metadata` printed: a line for each frame, followed by one for each of its keys. */
async function metadataOf(path: string): Promise<MarkedFrame[]> {
  const frames: { time: number; keys: Map<string, number> }[] = [];
  for (const line of (await Deno.readTextFile(path).catch(() => "")).split("\n")) {
    const frame = /^frame:\d+ +pts:\S+ +pts_time:(\S+)/.exec(line);
    if (frame) frames.push({ time: Number(frame[1]), keys: new Map() });
    const key = /^lavfi\.([\w.]+)=(\S+)/.exec(line);
    if (key) frames.at(-1)!.keys.set(key[1]!, Number(key[2]));
  }
  return frames;
}

/**
 * Ranges from pairs of starts and ends; one without an end lasts to the end of the video. Times become
 * indexes of frames.
 */
function rangesOf(
  marked: readonly MarkedFrame[],
  startKey: string,
  endKey: string,
  times: readonly number[],
  startsAfter: number,
): FrameRange[] {
  const frameAt = (time: number) => {
    const at = times.findIndex((own) => own >= time - 0.0005);
    return at < 0 ? times.length : at;
  };
  const ranges: FrameRange[] = [];
  let start: number | null = null;
  for (const { keys } of marked) {
    const ended = keys.get(endKey);
    if (start !== null && ended !== undefined) {
      ranges.push({ start, end: frameAt(ended) });
      start = null;
    }
    const started = keys.get(startKey);
    if (started !== undefined) start = frameAt(started) + startsAfter;
  }
  if (start !== null) ranges.push({ start, end: times.length });
  return ranges.filter(({ start, end }) => end > start);
}

async function askPySceneDetect(): Promise<void> {
  const python = await pythonWithPySceneDetect();
  if (python === null) return;
  const shares = Array.from({ length: jobs }, (_, job) => paths.filter((_, at) => at % jobs === job));
  await Promise.all(shares.map(async (share) => {
    const child = new Deno.Command(python, {
      args: [join(import.meta.dirname!, "pyscenedetect.py")],
      env: { OMP_NUM_THREADS: "1", OPENCV_FFMPEG_CAPTURE_OPTIONS: "threads;1" },
      stdin: "piped",
      stdout: "piped",
      stderr: "null",
    }).spawn();
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode(share.join("\n")));
    await writer.close();
    const { success, stdout } = await child.output();
    if (!success) throw new Error("PySceneDetect failed");
    for (const line of new TextDecoder().decode(stdout).trim().split("\n").filter((line) => line !== "")) {
      const { path, found } = JSON.parse(line) as { path: string; found: Record<string, number[]> };
      for (const [name, cuts] of Object.entries(found)) note(`PySceneDetect ${name}`, path, { cuts });
    }
  }));
}

/** Path of a Python that has PySceneDetect; null, with a message, where it cannot be installed. */
async function pythonWithPySceneDetect(): Promise<string | null> {
  const folder = join(TOOLS, "pyscenedetect");
  const python = join(folder, "bin", "python");
  const works = () => runs(python, ["-c", "import scenedetect"]);
  if (await works()) return python;
  await Deno.mkdir(dirname(folder), { recursive: true });
  const isInstalled = await runs("python3", ["-m", "venv", folder]) &&
    await runs(python, ["-m", "pip", "install", "-q", "--disable-pip-version-check", ...PACKAGES]) &&
    await works();
  if (isInstalled) return python;
  console.error("PySceneDetect is left out: it could not be installed (needs python3 with venv, and PyPI)");
  return null;
}

async function runs(program: string, args: readonly string[]): Promise<boolean> {
  try {
    const { success } = await new Deno.Command(program, { args: [...args], stdout: "null", stderr: "null" })
      .output();
    return success;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}
