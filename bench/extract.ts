/**
 * The time to extract a window from a recording of ten minutes, 720p, near its start and near its end, which
 * should not differ:
 *
 *     clip   8 s of video with sound
 *     mute   8 s of video without sound, encoded again because no keyframe allows a copy
 *     wav    20 s of sound
 *
 * and, from a recording of a camera (a key frame a second, no frames out of order), 2 s without sound, copied
 * and encoded in turn: the first is what the service does there, the second what it does where a copy would
 * not be exact.
 *
 * Windows near the start and near the end alternate. Prints medians over the rounds. The recording is made
 * once, in a cache folder: own_screenrec of fixtures/clips, scaled to 720p at 25 frames a second, with a
 * tone, x264 medium, repeated to ten minutes.
 *
 *     ./scripts/deno run -A bench/extract.ts [--cache FOLDER] [--rounds 5]
 */

import { localRunner } from "../test/support/local_runner.ts";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";
import { Decoder } from "../src/media/files/decoder.ts";
import { Extractor } from "../src/media/files/extractor.ts";
import { fileInput } from "../src/media/input.ts";
import { fullFrame } from "../src/model/frames/coordinates.ts";
import { findTools } from "../src/process/environment.ts";
import { CLIP_CACHE, median, quietWorld, report, TemporaryFolder } from "./support.ts";

const SOURCE = fileURLToPath(new URL("../fixtures/clips/own_screenrec.mp4", import.meta.url));
const PIECE_SECONDS = 20;
const PIECES = 30;
const EARLY_MS = 3_000;
const LATE_MS = 583_000;

const { values } = parseArgs({
  args: Deno.args,
  options: {
    cache: { type: "string", default: CLIP_CACHE },
    rounds: { type: "string", default: "5" },
  },
});

Deno.mkdirSync(values.cache, { recursive: true });
const recording = await benchRecording();
using folder = new TemporaryFolder();
const faults: string[] = [];
const tools = findTools({ ffmpegPath: "ffmpeg", ffprobePath: "ffprobe" }, faults);
if (faults.length > 0) throw new Error(faults.join("; "));
const shared = { runner: localRunner(tools), tempDir: folder.path, world: quietWorld(), maxConcurrent: 2 };
await using decoder = new Decoder(shared);
await using extractor = new Extractor(shared);
const input = fileInput(recording);
const signal = new AbortController().signal;
const info = await decoder.probe(input, signal);
const coordinates = fullFrame(info.video!.width, info.video!.height);

await compare(
  "clip, 8 s",
  (startMs) =>
    extractor.clip({ input, info, startMs, durationMs: 8_000, coordinates, withAudio: true, signal }),
);
await compare(
  "mute, 8 s",
  (startMs) =>
    extractor.clip({ input, info, startMs, durationMs: 8_000, coordinates, withAudio: false, signal }),
);
await compare(
  "wav, 20 s",
  (startMs) => extractor.wav({ input, info, startMs: startMs - 3_000, durationMs: 20_000, signal }),
);

await compareCopy();

/** Each window in both ways, one after the other; the packets are listed once and that time is counted. */
async function compareCopy(): Promise<void> {
  const camera = join(values.cache, "camera-720p.mp4");
  if (!await Deno.stat(camera).then(() => true, () => false)) {
    const keys = ["-bf", "0", "-g", "25", "-keyint_min", "25", "-sc_threshold", "0", "-c:v", "libx264"];
    await ffmpeg(["-i", recording, "-t", "60", "-an", ...keys, "-preset", "veryfast", "-y", camera]);
  }
  const source = fileInput(camera);
  const runner = localRunner(tools);
  await using encoding = new Extractor({
    ...shared,
    runner: {
      ...runner,
      run: (job, options) =>
        job.kind === "list_packets"
          ? Promise.resolve({ end: "exited", code: 1, stdout: new Uint8Array(), stderr: "" })
          : runner.run(job, options),
    },
  });
  const probed = await decoder.probe(source, signal);
  const times: Record<"copied" | "encoded", number[]> = { copied: [], encoded: [] };
  for (let startMs = 0; startMs < 40_000; startMs += 2_000) {
    const request = {
      input: source,
      info: probed,
      startMs,
      durationMs: 2_000,
      coordinates,
      withAudio: false,
      signal,
    };
    times.copied.push((await extractor.clip(request)).extractionMs);
    times.encoded.push((await encoding.clip(request)).extractionMs);
  }
  const { copied, encoded } = times;
  report({
    ...{ name: "extract: mute, 2 s, copied", unit: "ms", better: "less", ours: copied },
    limit: { name: "encoded", values: encoded },
  });
  console.log(`mute, 2 s  copied ${median(copied).toFixed(0)} ms, encoded ${median(encoded).toFixed(0)} ms`);
}

/** The first round is not counted: it warms the file cache and finds the first frame. */
async function compare(
  name: string,
  cut: (startMs: number) => Promise<{ bytes: Uint8Array; extractionMs: number }>,
): Promise<void> {
  const [early, late]: [number[], number[]] = [[], []];
  let size = 0;
  for (let round = 0; round <= Number(values.rounds); round++) {
    const first = await cut(EARLY_MS);
    const last = await cut(LATE_MS);
    size = last.bytes.length;
    if (round === 0) continue;
    early.push(first.extractionMs);
    late.push(last.extractionMs);
  }
  report({
    ...{ name: `extract: ${name}, late in the file`, unit: "ms", better: "less", ours: late },
    limit: { name: "early in it", values: early },
  });
  console.log(
    `${name.padEnd(10)} early ${median(early).toFixed(0)} ms, late ${median(late).toFixed(0)} ms, ` +
      `${(size / 1024).toFixed(0)} KiB`,
  );
}

async function benchRecording(): Promise<string> {
  const path = join(values.cache, "recording-720p.mp4");
  if (await Deno.stat(path).then(() => true, () => false)) return path;
  const piece = join(values.cache, "recording-piece.mp4");
  await ffmpeg([
    ...["-i", SOURCE, "-f", "lavfi", "-i", "sine", "-t", String(PIECE_SECONDS), "-map", "0:v", "-map", "1:a"],
    ...["-vf", "scale=1280:720,fps=25,format=yuv420p", "-c:v", "libx264", "-preset", "medium", "-c:a", "aac"],
    ...["-y", piece],
  ]);
  const repeat = ["-stream_loop", String(PIECES - 1), "-i", piece, "-c", "copy"];
  await ffmpeg([...repeat, "-f", "mp4", "-y", `${path}.part`]);
  Deno.renameSync(`${path}.part`, path);
  Deno.removeSync(piece);
  return path;
}

async function ffmpeg(args: readonly string[]): Promise<void> {
  const { success, stderr } = await new Deno.Command("ffmpeg", { args: ["-v", "error", "-nostdin", ...args] })
    .output();
  if (!success) throw new Error(`ffmpeg failed: ${new TextDecoder().decode(stderr)}`);
}
