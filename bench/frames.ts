/**
 * The media part of prompt-driven analysis, without a model: signals and chosen pictures, chunk by chunk.
 *
 *     A  ffmpeg -v error -nostdin -i CLIP -map 0:v:0 -f null -     the minimum: decoding alone
 *     B  Decoder.decodeSignals                                      signals alone, in one piece
 *     C  Decoder.streamFrames, chunks of 25                         signals alone, chunk by chunk
 *     D  as C with two full-size pictures of each chunk             D minus C is the time for the pictures
 *
 * A to D alternate, so that other load on the machine affects all of them. Prints medians over the rounds: B,
 * C and D as a ratio to A, and the time until the first chunk of D.
 *
 *     ./scripts/deno run -A bench/frames.ts [--cache FOLDER] [--rounds 7]
 */

import { localRunner } from "../test/support/local_runner.ts";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";
import type { Tools } from "../src/base/program_paths.ts";
import { Decoder } from "../src/media/files/decoder.ts";
import { fileInput } from "../src/media/input.ts";
import type { MediaInfo } from "../src/media/media_info.ts";
import { planSampling } from "../src/model/frames/sampling.ts";
import { CLIP_CACHE, median, quietWorld, report, TemporaryFolder, timed } from "./support.ts";

const CLIP = fileURLToPath(new URL("../fixtures/clips/bbb480.mp4", import.meta.url));
const SIZES = [
  { name: "720p", width: 1280, height: 720 },
  { name: "1080p", width: 1920, height: 1080 },
] as const;
const CHUNK_FRAMES = 25;
const PICTURES_PER_CHUNK = 2;
const NEVER = new AbortController().signal;

const { values } = parseArgs({
  args: Deno.args,
  options: {
    cache: { type: "string", default: CLIP_CACHE },
    rounds: { type: "string", default: "7" },
  },
});
Deno.mkdirSync(values.cache, { recursive: true });
using folder = new TemporaryFolder();
await using decoder = new Decoder({
  runner: localRunner(tools()),
  tempDir: folder.path,
  world: quietWorld(),
  maxConcurrent: 2,
});
for (const size of SIZES) await compare(size.name, await benchClip(size));

/** The first round is not counted: it warms the file cache and the code. */
async function compare(name: string, path: string): Promise<void> {
  const info = await decoder.probe(fileInput(path), NEVER);
  const plan = planSampling({}, info.video!.averageFps, "reason");
  const rounds: Record<"null" | "signals" | "chunks" | "pictures" | "first", number>[] = [];
  let pictures = 0;
  for (let round = 0; round <= Number(values.rounds); round++) {
    const nullMs = await timed(() => ffmpeg(["-i", path, "-map", "0:v:0", "-f", "null", "-"]));
    const signalsMs = await timed(async () => {
      await decoder.decodeSignals({ input: fileInput(path), info, plan, maxFrames: 500_000, signal: NEVER });
    });
    const plain = await streamed(path, info, 0);
    const full = await streamed(path, info, PICTURES_PER_CHUNK);
    pictures = full.pictures;
    const row = {
      null: nullMs,
      signals: signalsMs,
      chunks: plain.ms,
      pictures: full.ms,
      first: full.firstMs,
    };
    if (round > 0) rounds.push(row);
  }
  const limit = { name: "null decode", values: rounds.map((row) => row.null) };
  const what = {
    signals: "signals at once",
    chunks: "signals in chunks",
    pictures: "chunks with pictures",
  } as const;
  for (const key of ["signals", "chunks", "pictures"] as const) {
    const ours = rounds.map((row) => row[key]);
    report({ name: `frames: ${name}, ${what[key]}, time`, unit: "ms", better: "less", ours, limit });
  }
  const ms = (key: keyof typeof rounds[number]) => median(rounds.map((row) => row[key])).toFixed(0);
  const ratio = (key: keyof typeof rounds[number]) =>
    median(rounds.map((row) => row[key] / row.null)).toFixed(2);
  const share = median(rounds.map((row) => (row.pictures - row.chunks) / row.pictures));
  console.log(
    `${name.padEnd(6)} null decode ${ms("null")} ms, signals at once ${ratio("signals")}, in chunks ${
      ratio("chunks")
    }, ` +
      `with ${pictures} pictures ${ratio("pictures")} (${ms("pictures")} ms, of it pictures ${
        (100 * share).toFixed(0)
      } %), first chunk ${ms("first")} ms`,
  );
}

async function streamed(path: string, info: MediaInfo, perChunk: number) {
  const plan = planSampling({}, info.video!.averageFps, "reason");
  const startedMs = performance.now();
  await using frames = await decoder.streamFrames({
    ...{ input: fileInput(path), info, plan, maxFrames: 500_000, signal: NEVER },
    chunks: { by: "count", size: CHUNK_FRAMES },
    ...(perChunk > 0 && { images: { perChunk, maxEdge: null } }),
  });
  let firstMs = NaN;
  let pictures = 0;
  for (let chunk = await frames.next(); chunk; chunk = await frames.next()) {
    if (chunk.index === 0) firstMs = performance.now() - startedMs;
    pictures += chunk.images.length;
  }
  return { ms: performance.now() - startedMs, firstMs, pictures };
}

/** The clip repeated to 40 seconds, so that decoding takes much longer than starting ffmpeg. */
async function benchClip({ name, width, height }: typeof SIZES[number]): Promise<string> {
  const path = join(values.cache, `frames-${name}.mp4`);
  if (await Deno.stat(path).then(() => true, () => false)) return path;
  await ffmpeg([
    ...["-stream_loop", "1", "-t", "40", "-i", CLIP, "-an"],
    ...[
      "-vf",
      `scale=${width}:${height}:force_original_aspect_ratio=decrease,pad=${width}:${height}:-1:-1,setsar=1`,
    ],
    ...["-c:v", "libx264", "-preset", "veryfast", "-f", "mp4", "-y", `${path}.part`],
  ]);
  Deno.renameSync(`${path}.part`, path);
  return path;
}

async function ffmpeg(args: readonly string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command("ffmpeg", { args: ["-v", "error", "-nostdin", ...args] })
    .output();
  if (!success) throw new Error(`ffmpeg failed: ${new TextDecoder().decode(stderr)}`);
}

function tools(): Tools {
  const which = (name: string) =>
    (Deno.env.get("PATH") ?? "").split(":").map((place) => join(place, name)).find((path) => {
      try {
        return Deno.statSync(path).isFile;
      } catch {
        return false;
      }
    });
  const prlimit = which("prlimit") ?? null;
  return { ffmpeg: which("ffmpeg")!, ffprobe: which("ffprobe")!, mkfifo: which("mkfifo")!, prlimit };
}
