/** Files whose header claims a wrong frame rate: the frames' own times decide. */

import { deepEqual, equal, ok } from "node:assert/strict";
import { join } from "node:path";
import type { Decoder } from "../../../src/media/files/decoder.ts";
import { fileInput } from "../../../src/media/input.ts";
import { planSampling, type SamplingRequest } from "../../../src/model/frames/sampling.ts";
import { frameTimesMs, make, NEVER, openDecoder, TempFolder } from "../../support/media.ts";

const PICTURE = (fps: string, seconds: number) => [
  ...["-f", "lavfi", "-i", `testsrc2=s=320x240:r=${fps}:d=${seconds}`],
];

/** A copy of a Matroska file whose header says that a frame lasts `nanoseconds`. */
function withDefaultDuration(path: string, source: string, nanoseconds: number): string {
  const bytes = Deno.readFileSync(source);
  const at = indexOf(bytes, [0x23, 0xe3, 0x83, 0x84]);
  new DataView(bytes.buffer).setUint32(at + 4, nanoseconds);
  Deno.writeFileSync(path, bytes);
  return path;
}

/** A copy of an FLV file whose `onMetaData` claims another rate. */
function withFlvRate(path: string, source: string, fps: number): string {
  const bytes = Deno.readFileSync(source);
  const name = [...new TextEncoder().encode("framerate")];
  new DataView(bytes.buffer).setFloat64(indexOf(bytes, name) + name.length + 1, fps);
  Deno.writeFileSync(path, bytes);
  return path;
}

function indexOf(bytes: Uint8Array, part: readonly number[]): number {
  const at = bytes.findIndex((_, i) => part.every((byte, k) => bytes[i + k] === byte));
  if (at < 0) throw new Error("the header is not where it was expected");
  return at;
}

async function sampled(decoder: Decoder, path: string, request: SamplingRequest = {}, maxFrames = 500_000) {
  const input = fileInput(path);
  const info = await decoder.probe(input, NEVER);
  const plan = planSampling(request, info.video!.averageFps, "ingest");
  const { signals } = await decoder.decodeSignals({ input, info, plan, maxFrames, signal: NEVER });
  return { plan, times: [...signals.ptsMs] };
}

/** Times of decoded frames are as far apart as ffprobe's, from the first on. */
function areOwnTimes(times: readonly number[], path: string): void {
  const own = frameTimesMs(path, 0);
  equal(times.length, own.length, path);
  times.forEach((time, i) =>
    ok(Math.abs(time - own[i]!) < 0.6, `${path}: frame ${i} at ${time}, not ${own[i]}`)
  );
}

Deno.test("a wrong rate in the header invents no frame, and the rate is what the frames show", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  const at = (name: string) => join(folder.path, name);
  const check = async (path: string, fps: number) => {
    const { plan, times } = await sampled(decoder, path);
    equal(plan.sourceFps, fps, path);
    equal(plan.sampleFps, fps, path);
    areOwnTimes(times, path);
  };
  const plain = make(at("plain.mkv"), ...PICTURE("24", 4), "-c:v", "mpeg4");
  await check(plain, 24);
  for (const nanoseconds of [11_111, 1_000_000, 5_000_000, 20_833_333, 1_000_000_000, 0]) {
    await check(withDefaultDuration(at(`${nanoseconds}.mkv`), plain, nanoseconds), 24);
  }
  const ntsc = make(at("ntsc.mkv"), ...PICTURE("30000/1001", 4), "-c:v", "mpeg4");
  await check(withDefaultDuration(at("fields.mkv"), ntsc, 16_683_333), 30000 / 1001);

  // As a camera sends it: milliseconds that are never quite right, and a lost frame now and then.
  const uneven = "settb=1/1000,setpts='floor((N/24+0.004*random(0))*1000)',select='not(eq(mod(n,70),3))'";
  const encoded = make(
    at("encoded.flv"),
    ...PICTURE("24", 21),
    ...["-vf", uneven, "-fps_mode", "passthrough", "-enc_time_base", "1/1000", "-c:v", "flv1"],
  );
  // Not every version of ffmpeg writes a rate into the header when it encodes.
  const flv = make(at("uneven.flv"), "-i", encoded, "-c", "copy");
  for (const fps of [1000, 90_000, 1, 50]) await check(withFlvRate(at(`${fps}.flv`), flv, fps), 24);

  const nominal = ["-c:v", "libx264", "-bsf:v", "h264_metadata=tick_rate=180000"];
  await check(make(at("nominal.mp4"), ...PICTURE("25", 4), ...nominal), 25);
  await check(make(at("nominal.ts"), ...PICTURE("25", 4), ...nominal), 25);
});

Deno.test("a fixed rate, max_frames and a rate of its own take each frame at most once", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  const at = (name: string) => join(folder.path, name);
  const plain = make(at("plain.mkv"), ...PICTURE("24", 4), "-c:v", "mpeg4");
  const wrong = withDefaultDuration(at("wrong.mkv"), plain, 1_000_000);
  const fixed = (fixedFps: number) => ({ policy: "fixed", fixedFps });
  for (const path of [plain, wrong]) {
    deepEqual((await sampled(decoder, path, fixed(2))).times, [0, 500, 1000, 1500, 2000, 2500, 3000, 3500]);
    areOwnTimes((await sampled(decoder, path, fixed(60))).times, path);
    areOwnTimes((await sampled(decoder, path, fixed(24))).times, path);
    equal((await sampled(decoder, path, fixed(10))).times.length, 40);
    deepEqual((await sampled(decoder, path, {}, 3)).times, [0, 42, 83]);
  }
  // A slide show and a screen that stands still: nothing is repeated in the gaps.
  const slides = make(at("slides.mkv"), ...PICTURE("1/10", 40), "-c:v", "mpeg4");
  const slow = await sampled(decoder, slides);
  deepEqual([slow.plan.sourceFps, slow.plan.sampleFps, slow.times], [0.1, 0.2, [0, 10_000, 20_000, 30_000]]);
  deepEqual((await sampled(decoder, slides, fixed(2))).times, [0, 10_000, 20_000, 30_000]);
  // More than the highest rate: frames are dropped, at their own times.
  const fast = make(at("fast.mp4"), ...PICTURE("240", 1), "-c:v", "mpeg4");
  const kept = await sampled(decoder, fast);
  deepEqual([kept.plan.sourceFps, kept.plan.sampleFps, kept.times.length], [240, 120, 120]);
});

Deno.test("a variable rate stays what it is", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  const path = make(
    join(folder.path, "variable.mkv"),
    ...PICTURE("30", 6),
    ...["-vf", "select='lt(mod(n,30),10)+not(mod(n,4))'", "-fps_mode", "passthrough", "-c:v", "mpeg4"],
  );
  const { plan, times } = await sampled(decoder, path);
  areOwnTimes(times, path);
  ok(plan.sourceFps! > 10 && plan.sourceFps! < 30, `${plan.sourceFps}`);
});
