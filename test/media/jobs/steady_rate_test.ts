import { deepEqual, equal, ok } from "node:assert/strict";
import { join } from "node:path";
import { planSampling } from "../../../src/model/frames/sampling.ts";
import { fileInput } from "../../../src/media/input.ts";
import { SteadyRate } from "../../../src/media/jobs/parts/steady_rate.ts";
import { make, NEVER, openDecoder, probeOnce, TempFolder, tools } from "../../support/media.ts";

const NOISE = "testsrc2=s=64x48:r=30:d=10";

/** Clips by name, with the ends of their command lines. */
const CLIPS: Readonly<Record<string, readonly string[]>> = {
  "steady.mp4": ["-c:v", "mpeg4"],
  "film.mkv": ["-vf", "fps=24000/1001", "-c:v", "mpeg4"],
  // A time base of 1001/30000, which NUT does not keep.
  "tape.avi": ["-vf", "fps=30000/1001", "-c:v", "mpeg4"],
  "gaps.mkv": [
    "-vf",
    "select='gt(random(1),0.5)*not(between(t,3,5.2))'",
    "-fps_mode",
    "passthrough",
    "-c:v",
    "mpeg4",
  ],
  // Times in whole milliseconds, at every distance from 37 to 57.
  "jitter.webm": [
    ...["-vf", "settb=1/1000,setpts='N*37+floor(random(2)*20)'", "-fps_mode", "passthrough"],
    ...["-enc_time_base", "1:1000", "-c:v", "libvpx", "-deadline", "realtime", "-cpu-used", "8"],
  ],
  // Distances of 12 ms beside which a period of 100 ms begins on the millisecond.
  "fine.mp4": [
    ...["-vf", "settb=1/1000,setpts='N*12+eq(mod(N,7),3)*5'", "-fps_mode", "passthrough"],
    ...["-enc_time_base", "1:1000", "-video_track_timescale", "1000", "-c:v", "mpeg4"],
  ],
  "late.ts": ["-output_ts_offset", "7.3", "-c:v", "mpeg2video"],
};

const RATES = [0.2, 1, 5, 7.5, 10, 12, 29.97];

/** Times of the frames that ffmpeg's own filter chooses, milliseconds from the first frame. */
function byFfmpeg(path: string, expression: string): number[] {
  const { stdout, stderr } = new Deno.Command(tools().ffmpeg, {
    args: [
      ...["-v", "error", "-nostdin", "-i", path, "-map", "0:v:0", "-vf", `select='${expression}'`],
      ...["-fps_mode", "passthrough", "-enc_time_base", "-1", "-f", "framecrc", "-"],
    ],
  }).outputSync();
  const lines = new TextDecoder().decode(stdout).split("\n");
  const [numerator, denominator] = lines.find((line) => line.startsWith("#tb"))!.match(/\d+\/\d+/)![0].split(
    "/",
  ).map(Number);
  const pts = lines.filter((line) => /^0,/.test(line)).map((line) => Number(line.split(",")[2]));
  equal(new TextDecoder().decode(stderr), "");
  return pts.map((value) => (value - pts[0]!) * 1000 * numerator! / denominator!);
}

for (const [name, args] of Object.entries(CLIPS)) {
  Deno.test(`the decode Worker takes exactly the frames of ${name} that ffmpeg's expression chooses`, async () => {
    using folder = new TempFolder();
    await using decoder = await openDecoder(folder);
    const path = make(join(folder.path, name), "-f", "lavfi", "-i", NOISE, ...args);
    const info = await probeOnce(decoder, path);
    const counts = new Set<number>();
    for (const fixedFps of RATES) {
      const plan = planSampling({ policy: "fixed", fixedFps }, info.video!.averageFps, "ingest");
      const expected = byFfmpeg(path, SteadyRate.of(plan)!.expression("t", "start_t"));
      const { signals } = await decoder.decodeSignals({
        ...{ input: fileInput(path), info, plan, maxFrames: 100_000, signal: NEVER },
      });
      deepEqual([...signals.ptsMs].map(Math.round), expected.map(Math.round), `${fixedFps} fps`);
      counts.add(signals.count);
    }
    ok(counts.size >= 5, "the rates differ");
  });
}

Deno.test("a period gives its first frame, and one that is a little early is on time", () => {
  const taken = (plan: { fps: number; sourceFps: number | null }, timesMs: number[]) => {
    const rate = SteadyRate.of({ policy: "fixed", sampleFps: plan.fps, sourceFps: plan.sourceFps })!;
    return timesMs.filter((ms) => rate.takes(ms, 1, 1000));
  };
  deepEqual(taken({ fps: 2, sourceFps: 10 }, [0, 100, 200, 300, 400, 500, 600, 900, 1000]), [0, 500, 1000]);
  // 40 ms, which is .4 of the distance of two frames.
  deepEqual(taken({ fps: 2, sourceFps: 10 }, [0, 459, 461, 500, 959, 960]), [0, 461, 960]);
  // A gap skips periods, and nothing is taken twice.
  deepEqual(taken({ fps: 2, sourceFps: 10 }, [0, 100, 2600, 2700, 2900, 3000]), [0, 2600, 3000]);
  deepEqual(taken({ fps: 50, sourceFps: 10 }, [0, 100, 200]), [0, 100, 200]);
  // Times that go back are waited out.
  deepEqual(taken({ fps: 2, sourceFps: 10 }, [5000, 5500, 200, 700, 5900, 6000]), [5000, 5500, 6000]);
});

Deno.test("where every frame is taken there is no rule", () => {
  equal(SteadyRate.of({ policy: "source_fps_adaptive", sampleFps: 25, sourceFps: 25 }), null);
  ok(SteadyRate.of({ policy: "source_fps_adaptive", sampleFps: 10, sourceFps: null }));
});
