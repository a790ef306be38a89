import { deepEqual, equal, ok } from "node:assert/strict";
import { join } from "node:path";
import { croppedFrame, FULL_REGION, type NormalizedRegion } from "../../../src/model/frames/coordinates.ts";
import { NutReader } from "../../../src/media/containers/nut.ts";
import { fileInput } from "../../../src/media/input.ts";
import { FRAME_BYTES, PLANE_BYTES } from "../../../src/media/kernels/frame_planes.ts";
import {
  copyLines,
  LINES_BYTES,
  STACKED_FRAME_BYTES,
  unstack,
} from "../../../src/media/kernels/picture_lines.ts";
import { inputArgs, planeOutput } from "../../../src/media/jobs/decode.ts";
import { make, openDecoder, probeOnce, TempFolder, tools } from "../../support/media.ts";

/** The frames that the decode Worker gets, each behind its lines. */
async function linedFramesOf(
  folder: TempFolder,
  path: string,
  { crop = FULL_REGION }: { readonly crop?: NormalizedRegion } = {},
): Promise<Uint8Array[]> {
  await using decoder = await openDecoder(folder);
  const info = await probeOnce(decoder, path);
  const { width, height } = info.video!;
  const subject = {
    input: fileInput(path),
    info,
    plan: { policy: "source_fps_adaptive" as const, sampleFps: 25, sourceFps: 25 },
    coordinates: croppedFrame({ width, height }, crop),
  };
  const output = join(folder.path, "frames.nut");
  ffmpeg([
    ...inputArgs(subject),
    ...planeOutput(subject, { fifoPath: output, maxFrames: null, selection: null }),
  ]);
  const bytes = Deno.readFileSync(output);
  const reader = new NutReader();
  const frames: Uint8Array[] = [];
  for (let at = 0; at < bytes.length;) {
    at = reader.read(bytes, at, bytes.length);
    ok(at >= 0, "a whole file");
    if (!reader.hasFrame) continue;
    deepEqual([reader.width, reader.height, reader.frameBytes], [320, 212, STACKED_FRAME_BYTES]);
    const frame = unstack(bytes, reader.frameOffset);
    frames.push(bytes.slice(frame - LINES_BYTES, frame + FRAME_BYTES));
  }
  return frames;
}

async function framesOf(...args: Parameters<typeof linedFramesOf>): Promise<Uint8Array[]> {
  return (await linedFramesOf(...args)).map((frame) => frame.subarray(LINES_BYTES));
}

function ffmpeg(args: string[]): Uint8Array {
  const { success, stdout, stderr } = new Deno.Command(tools().ffmpeg, { args: ["-y", ...args] })
    .outputSync();
  ok(success, new TextDecoder().decode(stderr));
  return stdout;
}

/** Mean U and V of the left and of the right half. */
function chromaOf(frame: Uint8Array): number[] {
  const means = [0, 0, 0, 0];
  for (let plane = 0; plane < 2; plane++) {
    for (let at = 0; at < 14_400; at++) {
      // The columns in the middle are mixed.
      const x = at % 160;
      if (x > 75 && x < 85) continue;
      means[2 * plane + (x < 80 ? 0 : 1)]! += frame[PLANE_BYTES + plane * 14_400 + at]! / 90;
    }
  }
  return [means[0]! / 76, means[1]! / 75, means[2]! / 76, means[3]! / 75].map(Math.round);
}

const RED_AND_BLUE = "color=red:s=642x358:r=5:d=1,drawbox=x=321:w=321:h=358:color=blue:t=fill";
const near = (actual: number[], expected: number[], what: string) =>
  actual.forEach((value, i) =>
    ok(Math.abs(value - expected[i]!) <= 4, `${what}: ${actual}, not ${expected}`)
  );

/** U of red and blue, V of red and blue, in limited and in full range. */
const LIMITED = [90, 240, 240, 110];
const FULL = [85, 255, 255, 107];
const GRAY = [128, 128, 128, 128];

Deno.test("frames are 320x180 yuv420p with the samples as they are, in every pixel format", async () => {
  using folder = new TempFolder();
  const check = async (
    format: string,
    codec: string,
    expected: number[],
    { crop }: { crop?: NormalizedRegion } = {},
  ) => {
    const path = join(
      folder.path,
      `${format}.${codec === "gif" ? "gif" : codec === "rawvideo" ? "nut" : "mkv"}`,
    );
    const noisy = `${RED_AND_BLUE},noise=alls=6:all_seed=3,format=${format}`;
    make(path, "-f", "lavfi", "-i", noisy, "-c:v", codec);
    const frames = await framesOf(folder, path, crop ? { crop } : {});
    equal(frames.length, 5, format);
    near(chromaOf(frames[0]!), expected, format);
    if (expected === GRAY) {
      ok(frames.every((frame) => frame.subarray(PLANE_BYTES).every((sample) => sample === 128)));
    }
    // Luma must not depend on chroma: it is what the same scaler makes of the luma alone.
    const isPlanar = expected !== FULL;
    const { width, height, x, y } =
      croppedFrame({ width: 642, height: 358 }, crop ?? FULL_REGION).resolved_region;
    const cropped = crop ? `crop=${width}:${height}:${x}:${y}:exact=1,` : "";
    const luma = `${
      isPlanar ? "" : "format=gray,"
    }${cropped}scale=320:180:flags=area:in_range=full:out_range=full,format=gray`;
    const output = ["-fps_mode", "passthrough", "-f", "rawvideo", "-"];
    const planes = ffmpeg(["-v", "error", "-i", path, "-vf", luma, ...output]);
    frames.forEach((frame, i) => {
      const plane = planes.subarray(i * PLANE_BYTES, (i + 1) * PLANE_BYTES);
      ok(plane.every((sample, at) => sample === frame[at]), `${format}: luma of frame ${i}`);
    });
  };
  const planar = [
    "yuv420p",
    "yuv422p",
    "yuv444p",
    "yuv411p",
    "yuv420p10le",
    "yuv422p12le",
    "yuva420p",
    "nv12",
  ];
  for (const format of planar) await check(format, "rawvideo", LIMITED);
  for (const format of ["rgb24", "bgra", "gbrp"]) await check(format, "rawvideo", FULL);
  for (const format of ["gray", "gray10le", "ya8"]) await check(format, "ffv1", GRAY);
  await check("yuv420p", "ffv1", LIMITED, { crop: { x: 0.25, y: 0.25, width: 0.5, height: 0.5 } });
  await check("pal8", "gif", FULL);
});

Deno.test("the lines that come with frames are those that live pictures give, of any size and region", async () => {
  using folder = new TempFolder();
  const region = { x: 0.25, y: 0.1, width: 0.5, height: 0.8 };
  const sizes = [[642, 358], [1280, 720], [320, 180], [178, 50], [64, 10], [20, 4]] as const;
  for (const [width, height] of sizes) {
    for (const crop of [FULL_REGION, region]) {
      const path = join(folder.path, `${width}.mkv`);
      const noise = `color=gray:s=${width}x${height}:r=5:d=0.4,noise=alls=90:all_seed=7,format=yuv420p`;
      make(path, "-f", "lavfi", "-i", noise, "-c:v", "ffv1");
      const luma = ffmpeg(["-v", "error", "-i", path, "-vf", "extractplanes=y", "-f", "rawvideo", "-"]);
      const expected = new Uint8Array(LINES_BYTES);
      copyLines(luma, width, croppedFrame({ width, height }, crop).resolved_region, expected);
      const [first] = await linedFramesOf(folder, path, { crop });
      deepEqual(first!.subarray(0, LINES_BYTES), expected, `${width}x${height}`);
    }
  }
});

Deno.test("a sensor's own pattern is converted", async () => {
  using folder = new TempFolder();
  // One sample for each pixel, all of the same level: gray.
  const raw = folder.file("bayer.raw", new Uint8Array(64 * 48 * 2).fill(90));
  const path = join(folder.path, "bayer.nut");
  ffmpeg([
    ...["-v", "error", "-f", "rawvideo", "-pixel_format", "bayer_rggb8", "-video_size", "64x48", "-i", raw],
    ...["-c:v", "rawvideo", path],
  ]);
  const frames = await framesOf(folder, path);
  equal(frames.length, 2);
  ok(frames[0]!.subarray(0, PLANE_BYTES).every((sample) => sample === 90), `${frames[0]![0]}`);
  ok(frames[0]!.subarray(PLANE_BYTES).every((sample) => sample === 128));
});
