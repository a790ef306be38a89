/**
 * One live session without the network part: VP8 access units in real time through decoder, analysis and JPEG
 * encoder. Measures the time from a unit to its frame's signals and to the gate's decision, the time from a
 * kept frame to its JPEG, and the share of one processor that this process and its ffmpeg processes use.
 *
 *     ./scripts/deno run -A bench/live/live_decode.ts [--seconds 10] [--clip fixtures/clips/bbb480.mp4]
 */

import { freeRoom } from "../../test/support/live/free_room.ts";
import { localRunner } from "../../test/support/local_runner.ts";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { JpegEncoderPool } from "../../src/media/live/jpeg_encoder.ts";
import { LiveDecoder, liveMemoryBytes } from "../../src/media/live/live_decoder.ts";
import { LiveAnalysis } from "../../src/media/live/live_analysis.ts";
import { pause, percentile, quietWorld, report, TemporaryFolder } from "../support.ts";

const { values } = parseArgs({
  args: Deno.args,
  options: {
    seconds: { type: "string", default: "10" },
    clip: {
      type: "string",
      default: fileURLToPath(new URL("../../fixtures/clips/bbb480.mp4", import.meta.url)),
    },
  },
});
const FPS = 30;
/** First frames, which are not counted, so that the start of the processes is not measured. */
const WARM_UP_FRAMES = 30;
/** Milliseconds of a clock tick of Linux, a hundredth of a second. */
const TICK_MS = 10;
const THRESHOLDS = {
  keepaliveEveryFrames: 30,
  sceneCutHammingThreshold: 18,
  lumaShiftThreshold: 0.15,
  flickerThreshold: 0.55,
  ghostingThreshold: 0.55,
  noiseVarianceThreshold: 0.55,
};

const world = quietWorld();
const tools = { ffmpeg: which("ffmpeg")!, ffprobe: "", mkfifo: "", prlimit: which("prlimit") };
const runner = localRunner(tools);

await bench("480p30, 1.7 Mbit/s", { width: 640, height: 480 }, "1700k");
await bench("720p30, 2.5 Mbit/s", { width: 1280, height: 720 }, "2500k");
Deno.exit(0);

async function bench(what: string, size: { width: number; height: number }, bitrate: string): Promise<void> {
  const frames = Number(values.seconds) * FPS + WARM_UP_FRAMES;
  const units = encoded(size, bitrate, frames);
  const arrivals = new Map<number, number>();
  const [signalsMs, decisionMs, jpegMs]: number[][] = [[], [], []];
  const since = (rtpTimestamp: number) => performance.now() - arrivals.get(rtpTimestamp)!;
  await using jpegs = new JpegEncoderPool({ runner, world });
  jpegs.prepare(size);
  using analysis = await LiveAnalysis.load({
    world,
    gateThresholds: THRESHOLDS,
    windowSize: 16,
    crop: null,
    zone: null,
    trigger: null,
    onDecision: async ({ frame, coordinates, isKept }) => {
      decisionMs!.push(since(frame.rtpTimestamp));
      if (!isKept) return;
      const startedMs = performance.now();
      await jpegs.encode(frame.pixels, coordinates.resolved_region);
      jpegMs!.push(performance.now() - startedMs);
      analysis.keep(frame.frameIndex);
    },
  });
  await using decoder = new LiveDecoder({
    runner,
    world,
    codec: "vp8",
    room: freeRoom(),
    onFrame: (frame) => {
      analysis.push(frame);
      signalsMs!.push(since(frame.rtpTimestamp));
    },
    onKeyframeNeeded: () => {},
    onRestarted: (reason) => console.error(`restarted: ${reason}`),
    onFault: (message) => console.error(message),
  });
  const startedMs = performance.now();
  let warm = { atMs: 0, own: 0, ffmpeg: 0 };
  for (const [index, data] of units.entries()) {
    const dueMs = startedMs + index * 1000 / FPS - performance.now();
    if (dueMs > 0) await pause(dueMs);
    if (index === WARM_UP_FRAMES) warm = used();
    const rtpTimestamp = index * 90_000 / FPS;
    arrivals.set(rtpTimestamp, performance.now());
    const isKeyframe = (data[0]! & 1) === 0;
    decoder.push({ data, rtpTimestamp, isKeyframe, width: null, height: null, arrivedMs: Date.now() });
  }
  const now = used();
  const share = (of: "own" | "ffmpeg") => (100 * (now[of] - warm[of]) / (now.atMs - warm.atMs)).toFixed(1);
  for (const [name, times] of Object.entries({ signals: signalsMs!, decision: decisionMs! })) {
    const ours = [percentile(times.slice(WARM_UP_FRAMES), 0.5)];
    report({
      name: `live decode: ${what}, unit to ${name}, p50`,
      unit: "ms",
      better: "less",
      ours,
      limit: null,
    });
  }
  console.log(`${what}: ${decoder.counts.decoded} of ${units.length} units gave a picture`);
  console.log(`  CPU, % of one processor: Deno ${share("own")}, ffmpeg ${share("ffmpeg")}`);
  console.log(`  unit in to signals, ms: ${quantiles(signalsMs!.slice(WARM_UP_FRAMES))}`);
  console.log(`  unit in to decision, ms: ${quantiles(decisionMs!.slice(WARM_UP_FRAMES))}`);
  console.log(`  kept frame to JPEG, ms: ${quantiles(jpegMs!)}, ${jpegMs!.length} of them`);
  console.log(
    `  reserved for pictures and units: ${Math.round(liveMemoryBytes(size.width, size.height) / 1e6)} MB`,
  );
}

function encoded(size: { width: number; height: number }, bitrate: string, frames: number): Uint8Array[] {
  using folder = new TemporaryFolder();
  const path = `${folder.path}/stream.ivf`;
  const { success, stderr } = new Deno.Command(tools.ffmpeg, {
    args: [
      ...["-nostdin", "-v", "error", "-stream_loop", "-1", "-i", values.clip, "-an"],
      ...["-vf", `fps=${FPS},scale=${size.width}:${size.height}`, "-frames:v", String(frames)],
      ...["-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8", "-auto-alt-ref", "0", "-b:v", bitrate],
      ...["-g", "300", path],
    ],
  }).outputSync();
  if (!success) throw new Error(new TextDecoder().decode(stderr));
  const bytes = Deno.readFileSync(path);
  const view = new DataView(bytes.buffer);
  const units: Uint8Array[] = [];
  for (let at = 32; at < bytes.length;) {
    const end = at + 12 + view.getUint32(at, true);
    units.push(bytes.subarray(at + 12, end));
    at = end;
  }
  return units;
}

/** CPU time so far, in milliseconds, of this process and of the processes that it started. */
function used(): { atMs: number; own: number; ffmpeg: number } {
  let ffmpeg = 0;
  for (const { name } of Deno.readDirSync("/proc")) {
    if (!/^\d+$/.test(name)) continue;
    try {
      const fields = Deno.readTextFileSync(`/proc/${name}/stat`).split(") ")[1]!.split(" ");
      if (Number(fields[1]) === Deno.pid) ffmpeg += cpuMs(fields);
    } catch {
      // The process has ended meanwhile.
    }
  }
  const own = cpuMs(Deno.readTextFileSync("/proc/self/stat").split(") ")[1]!.split(" "));
  return { atMs: performance.now(), own, ffmpeg };
}

function cpuMs(fields: readonly string[]): number {
  return (Number(fields[11]) + Number(fields[12])) * TICK_MS;
}

function quantiles(numbers: readonly number[]): string {
  const at = (share: number) => percentile(numbers, share).toFixed(1);
  return `p50 ${at(0.5)}, p95 ${at(0.95)}, max ${at(1)}`;
}

function which(name: string): string | null {
  for (const folder of (Deno.env.get("PATH") ?? "").split(":")) {
    try {
      if (Deno.statSync(`${folder}/${name}`).isFile) return `${folder}/${name}`;
    } catch {
      // Not in this folder.
    }
  }
  return null;
}
