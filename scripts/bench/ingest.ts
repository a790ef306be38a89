/**
 * What the decode path of an ingest costs beside the decoding itself, in the same run:
 *
 *     A  ffmpeg -v error -nostdin -i CLIP -f null -       the least that anyone can do
 *     B  Decoder.probe + Decoder.decodeSignals            ffprobe, ffmpeg, named pipe, Worker, signals
 *
 * A and B alternate, so that whatever else the machine does meets both. Clips of 30 seconds are made once, in a cache
 * folder: bbb480, intel_car, carnd_road and own_screenrec, 7.5 s of each, scaled and padded to 1080p and to 720p at
 * 25 frames a second, joined, x264 medium. Usage:
 *
 *     deno run -A scripts/bench/ingest.ts [--clips FOLDER] [--cache FOLDER] [--rounds 7]
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { realWorld } from "../../src/base/world.ts";
import { Decoder } from "../../src/media/decode.ts";
import { LIMITS } from "../../src/model/limits.ts";
import { planSampling } from "../../src/model/sampling.ts";

const SOURCES = ["bbb480.mp4", "intel_car.mp4", "carnd_road.mp4", "own_screenrec.mp4"];
const SECONDS_EACH = 7.5;
/** The ratio B / A that must be met, and the one to aim for. */
const SIZES = [
  { name: "1080p", width: 1920, height: 1080, target: 1.25, aim: 1.05 },
  { name: "720p", width: 1280, height: 720, target: 1.45, aim: 1.2 },
] as const;

if (import.meta.main) await main();

async function main(): Promise<void> {
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      clips: { type: "string", default: "../shared/media/clips" },
      cache: { type: "string", default: join(Deno.env.get("TMPDIR") ?? "/tmp", "service-bench-clips") },
      rounds: { type: "string", default: "7" },
    },
  });
  await Deno.mkdir(values.cache, { recursive: true });
  const tempDir = await Deno.makeTempDir({ prefix: "service-bench-" });
  try {
    await using decoder = await Decoder.open({
      tools: await findTools(),
      tempDir,
      world: realWorld(silentLog()),
      maxConcurrent: navigator.hardwareConcurrency,
    });
    let missed = 0;
    for (const size of SIZES) {
      const clip = await benchClip(values.clips, values.cache, size);
      const ratio = await compare(decoder, clip, size.name, Number(values.rounds));
      const isMet = ratio <= size.target;
      if (!isMet) missed++;
      console.log(
        `${size.name}: median ratio ${ratio.toFixed(3)}, at most ${size.target} (${
          isMet ? "met" : "MISSED"
        }), ` +
          `aim ${size.aim} (${ratio <= size.aim ? "met" : "not met"})`,
      );
    }
    if (missed > 0) Deno.exitCode = 1;
  } finally {
    await Deno.remove(tempDir, { recursive: true });
  }
}

async function compare(decoder: Decoder, clip: string, name: string, rounds: number): Promise<number> {
  const ratios: number[] = [];
  // The first round warms the file cache and the code, and does not count.
  for (let round = 0; round <= rounds; round++) {
    const nullMs = await timed(() => ffmpeg(["-i", clip, "-f", "null", "-"]));
    let frames = 0;
    const decodeMs = await timed(async () => {
      const signal = new AbortController().signal;
      const info = await decoder.probe(clip, signal);
      const plan = planSampling({}, info.video!.averageFps, "ingest");
      const maxFrames = LIMITS.ingest.maxFrames.maximum;
      frames = (await decoder.decodeSignals({ path: clip, info, plan, maxFrames, signal })).signals.count;
    });
    if (round === 0) continue;
    ratios.push(decodeMs / nullMs);
    console.log(
      `${name} round ${round}: null decode ${nullMs.toFixed(0)} ms, decode path ${decodeMs.toFixed(0)} ms, ` +
        `${frames} frames, ratio ${(decodeMs / nullMs).toFixed(3)}`,
    );
  }
  return ratios.sort((a, b) => a - b)[Math.floor(ratios.length / 2)]!;
}

async function timed(work: () => Promise<void>): Promise<number> {
  const start = performance.now();
  await work();
  return performance.now() - start;
}

async function benchClip(
  clips: string,
  cache: string,
  size: { name: string; width: number; height: number },
): Promise<string> {
  const path = join(cache, `ingest-${size.name}.mp4`);
  if (await exists(path)) return path;
  const { width, height } = size;
  const parts = SOURCES.map((_, index) =>
    `[${index}:v:0]scale=${width}:${height}:force_original_aspect_ratio=decrease,` +
    `pad=${width}:${height}:-1:-1,setsar=1,fps=25,format=yuv420p[v${index}]`
  );
  const inputs = SOURCES.flatMap((source) => ["-t", String(SECONDS_EACH), "-i", join(clips, source)]);
  const joined = `${SOURCES.map((_, index) => `[v${index}]`).join("")}concat=n=${SOURCES.length}[v]`;
  const unfinished = `${path}.part`;
  await ffmpeg([
    ...inputs,
    ...["-filter_complex", [...parts, joined].join(";"), "-map", "[v]"],
    ...["-c:v", "libx264", "-preset", "medium", "-f", "mp4", "-y", unfinished],
  ]);
  await Deno.rename(unfinished, path);
  return path;
}

async function ffmpeg(args: readonly string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command("ffmpeg", { args: ["-v", "error", "-nostdin", ...args] })
    .output();
  if (!success) throw new Error(`ffmpeg failed: ${new TextDecoder().decode(stderr)}`);
}

async function findTools() {
  const [ffmpegPath, ffprobe, mkfifo, prlimit] = await Promise.all(
    ["ffmpeg", "ffprobe", "mkfifo", "prlimit"].map(which),
  );
  if (!ffmpegPath || !ffprobe || !mkfifo) throw new Error("ffmpeg, ffprobe and mkfifo must be on PATH");
  return { ffmpeg: ffmpegPath, ffprobe, mkfifo, prlimit: prlimit ?? null };
}

async function which(name: string): Promise<string | undefined> {
  for (const folder of (Deno.env.get("PATH") ?? "").split(":")) {
    const path = join(folder, name);
    if (await exists(path)) return path;
  }
}

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

function silentLog() {
  const silent = () => {};
  const log = { trace: silent, debug: silent, info: silent, warn: silent, error: silent, child: () => log };
  return log;
}
