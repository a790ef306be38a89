import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { join } from "node:path";
import { Refusal } from "../../../src/contract/refusal.ts";
import { Decoder } from "../../../src/media/files/decoder.ts";
import type { DecodedChunk, FrameStream, FrameStreamRequest } from "../../../src/media/files/frame_stream.ts";
import { fileInput, rtspInput } from "../../../src/media/input.ts";
import { chosenPositions } from "../../../src/model/reason/chunks.ts";
import { planSampling, type SamplingRequest } from "../../../src/model/frames/sampling.ts";
import { serveRtsp } from "../../support/live/rtsp_server.ts";
import {
  exists,
  make,
  makeClip,
  makeTurned,
  NEVER,
  openDecoder,
  steppedWorld,
  TempFolder,
  tools,
  world,
} from "../../support/media.ts";
import {
  allChunks,
  checkNothingLeft,
  decodeRequest,
  joinedColumn,
  jpegFile,
  makeNumbered,
  makeOfTwoSizes,
  meansOf,
  numberOf,
  ROW_COLUMNS,
  shownNumbers,
} from "../../support/recorded_media.ts";
import { needing, SHARED_CLIPS, SHARED_CLIPS_FOLDER } from "../../support/needs.ts";
import { until } from "../../support/until.ts";
import { childProcesses } from "../../support/own_process.ts";
import { LONG_TEST } from "../../support/long_tests.ts";

const FIXTURES = new URL("../../../fixtures/clips/", import.meta.url).pathname;

interface TestOptions extends Partial<Omit<FrameStreamRequest, "input" | "info" | "plan">> {
  sampling?: SamplingRequest;
}

async function stream(decoder: Decoder, path: string, options: TestOptions = {}): Promise<FrameStream> {
  const { sampling, ...rest } = options;
  const request = await decodeRequest(decoder, path, { sampling });
  return await decoder.streamFrames({ ...request, chunks: { by: "count", size: 25 }, ...rest });
}

async function chunksOf(decoder: Decoder, path: string, options: TestOptions = {}): Promise<DecodedChunk[]> {
  await using frames = await stream(decoder, path, options);
  return await allChunks(frames);
}

function isFault(error: unknown, expected: RegExp): true {
  ok(error instanceof Refusal, String(error));
  equal(error.details[0]!.field, "source_uri");
  match(error.message, expected);
  return true;
}

/** Size of baseline JPEGs, all of one size. */
function extentOf(folder: TempFolder, jpegs: readonly Uint8Array[]): string {
  const entries = "stream=width,height,pix_fmt,profile";
  const { stdout } = new Deno.Command(tools().ffprobe, {
    args: ["-v", "error", "-show_entries", entries, "-of", "csv=p=0", jpegFile(folder, jpegs)],
  }).outputSync();
  const [profile, width, height, format] = new TextDecoder().decode(stdout).trim().split(",");
  deepEqual([profile, format], ["Baseline", "yuvj420p"]);
  return `${width}x${height}`;
}

/** The frame numbers that the JPEGs of a numbered clip show. */
function shownFrames(folder: TempFolder, chunks: readonly DecodedChunk[]): number[] {
  return shownNumbers(folder, chunks.flatMap(({ images }) => images.map(({ jpeg }) => jpeg)));
}

type CheckStream = (
  path: string,
  options?: TestOptions,
  columns?: readonly typeof ROW_COLUMNS[number][],
) => Promise<boolean>;

/**
 * Passes `work` a check, which runs as a step: a streamed file has the signals of a whole decode, bit for
 * bit.
 */
async function withStreamCheck(
  t: Deno.TestContext,
  work: (check: CheckStream) => Promise<void>,
): Promise<void> {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  await work((path, options = {}, columns = ROW_COLUMNS) =>
    t.step(`${path.split("/").pop()} ${JSON.stringify({ ...options, signal: undefined })}`, async () => {
      const { sampling, maxFrames, crop } = options;
      const request = await decodeRequest(decoder, path, { sampling, maxFrames });
      const whole = await decoder.decodeSignals({ ...request, ...(crop && { crop }) });
      await using frames = await stream(decoder, path, options);
      const chunks = await allChunks(frames);
      for (const column of columns) {
        deepEqual(joinedColumn(chunks, column), [...whole.signals[column]!], column);
      }
      chunks.forEach((chunk, index) => {
        equal(chunk.index, index);
        equal(chunk.firstFrame, chunks.slice(0, index).reduce((sum, { signals }) => sum + signals.count, 0));
      });
      const { coordinates, width, height, pixelFormat } = whole;
      deepEqual(frames.coordinates, coordinates);
      deepEqual([frames.width, frames.height, frames.pixelFormat], [width, height, pixelFormat]);
      checkNothingLeft(folder);
    })
  );
}

Deno.test(
  "the signals of all chunks together equal those of the whole file, bit for bit",
  LONG_TEST,
  (t) =>
    withStreamCheck(t, async (check) => {
      const bottle = join(FIXTURES, "intel_bottle.mp4");
      const images = { perChunk: 2, maxEdge: 128 };
      await check(bottle, { chunks: { by: "count", size: 7 }, images });
      await check(bottle, { chunks: { by: "window", windowMs: 777 } });
      await check(bottle, { sampling: { policy: "fixed", fixedFps: 3 }, images });
      await check(join(FIXTURES, "bbb480.mp4"), { maxFrames: 111, images });
      await check(join(FIXTURES, "bbb480.mp4"), {
        crop: { x: 0.25, y: 0.1, width: 0.5, height: 0.37 },
        chunks: { by: "count", size: 100 },
        images,
      });
    }),
);

Deno.test({
  ...needing(SHARED_CLIPS, "the chunks of real clips together are bit for bit the signals of the whole file"),
  ...LONG_TEST,
  fn: (t) =>
    withStreamCheck(t, async (check) => {
      const images = { perChunk: 2, maxEdge: 128 };
      for (const name of ["mediabunny_vfr_3026x1386.mp4", "bad_truncated_tail.mp4", "bad_bitflips.mp4"]) {
        await check(join(SHARED_CLIPS_FOLDER, name), { images });
      }
      for (const name of ["bbb_rotated.mp4", "vp8_1432x888.ivf", "bgs_video02.avi"]) {
        await check(join(SHARED_CLIPS_FOLDER, name), { images });
      }
    }),
});

Deno.test("JPEGs are of exactly the chosen frames, in the last chunk too", LONG_TEST, async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  const check = async (
    path: string,
    frames: number,
    size: number,
    perChunk: number,
    options: TestOptions = {},
  ) => {
    const images = { perChunk, maxEdge: null };
    const chunks = await chunksOf(decoder, path, { ...options, chunks: { by: "count", size }, images });
    const label = `${path.split("/").pop()} of ${frames}, ${perChunk} of ${size}`;
    const expected: number[] = [];
    for (let first = 0; first < frames; first += size) {
      const count = Math.min(size, frames - first);
      expected.push(...chosenPositions(count, perChunk).map((position) => first + position));
    }
    deepEqual(chunks.flatMap((chunk) => chunk.images.map(({ frameIndex }) => frameIndex)), expected, label);
    deepEqual(shownFrames(folder, chunks), expected, label);
    for (const { firstFrame, signals, images } of chunks) {
      for (const { frameIndex, ptsMs } of images) equal(ptsMs, signals.ptsMs[frameIndex - firstFrame]);
    }
    checkNothingLeft(folder);
  };
  const bFrames = ["-c:v", "mpeg4", "-bf", "2", "-g", "12", "-q:v", "2"];
  const clip = makeNumbered(join(folder.path, "clip.mp4"), 58, bFrames);
  for (const perChunk of [1, 2, 3, 4]) {
    await check(clip, 58, 25, perChunk);
    await check(clip, 58, 5, perChunk);
  }
  await check(clip, 58, 58, 2);
  await check(clip, 58, 100, 3);
  await check(clip, 58, 1, 1);
  await check(clip, 58, 5, 9);
  for (const maxFrames of [1, 2, 24, 25, 26, 43, 57, 58]) await check(clip, maxFrames, 25, 2, { maxFrames });
  await check(clip, 43, 25, 1, { maxFrames: 43 });
  const one = makeNumbered(join(folder.path, "one.mp4"), 1);
  await check(one, 1, 25, 2);
  // The sound is longer than the video, so the length in the container does not show where the last chunk
  // begins.
  const sound = ["-f", "lavfi", "-i", "sine=d=9", "-shortest", "-c:a", "aac"];
  const sounding = make(join(folder.path, "sounding.mp4"), "-i", clip, ...sound.slice(0, 4), "-c:v", "copy");
  for (const perChunk of [1, 2, 3]) await check(sounding, 58, 25, perChunk);
  // Starts at 10 s and can be decoded only from its key frames.
  const late = make(
    join(folder.path, "late.ts"),
    "-i",
    clip,
    ...["-c:v", "mpeg2video", "-bf", "2", "-q:v", "1"],
    "-output_ts_offset",
    "10",
  );
  const lateSound = make(
    join(folder.path, "late.mkv"),
    "-i",
    clip,
    ...sound.slice(0, 4),
    "-c:v",
    "copy",
    "-output_ts_offset",
    "7",
  );
  await check(late, 58, 25, 3);
  await check(lateSound, 58, 25, 3);
  // Frames with three different durations.
  const uneven = makeNumbered(
    join(folder.path, "uneven.mkv"),
    58,
    ["-vf", "setpts='(N*3+mod(N,3))/75/TB'", "-fps_mode", "passthrough", "-c:v", "ffv1"],
  );
  await check(uneven, 58, 25, 3);
  await check(uneven, 58, 7, 2);
});

Deno.test("JPEGs that need a second decode show the right frames, also where the medium cannot be seeked", async () => {
  using folder = new TempFolder();
  const log = folder.file("log");
  const noSeek = join(folder.path, "no-seek");
  const ffmpeg = folder.script(
    "ffmpeg",
    `echo "$*" >> ${log}; [ -e ${noSeek} ] && case "$*" in *" -ss "*) exit 1;; esac; exec ${tools().ffmpeg} "$@"`,
  );
  await using decoder = await openDecoder(folder, { tools: { ffmpeg, prlimit: null } });
  // 108 frames of video and 40 s of sound.
  const clip = makeNumbered(
    join(folder.path, "clip.mp4"),
    108,
    ["-c:v", "mpeg4", "-g", "12", "-bf", "2", "-q:v", "2"],
  );
  const sound = ["-f", "lavfi", "-i", "sine=d=40", "-c:a", "aac"];
  const path = make(join(folder.path, "sounding.mp4"), "-i", clip, ...sound, "-c:v", "copy");
  const check = async (options: TestOptions, framePeriod: number, expected: number[]) => {
    Deno.writeTextFileSync(log, "");
    const chunks = await chunksOf(decoder, path, { images: { perChunk: 2, maxEdge: null }, ...options });
    const last = chunks.at(-1)!;
    deepEqual(last.images.map(({ frameIndex }) => frameIndex), expected, JSON.stringify(options));
    const shown = shownFrames(folder, [last]).map((frame) => Math.round(frame / framePeriod));
    deepEqual(shown, expected, JSON.stringify(options));
    const starts = Deno.readTextFileSync(log).trim().split("\n").map((line) => / -ss \d/.test(line));
    deepEqual(starts, exists(noSeek) ? [false, true, false] : [false, true]);
  };
  for (const isBlocked of [false, true]) {
    if (isBlocked) folder.file("no-seek");
    await check({}, 1, [100, 107]);
    await check({ chunks: { by: "count", size: 10 } }, 1, [100, 107]);
    await check({ chunks: { by: "count", size: 200 } }, 1, [0, 107]);
    await check({ chunks: { by: "count", size: 9 }, sampling: { policy: "fixed", fixedFps: 5 } }, 5, [
      18,
      21,
    ]);
  }
});

Deno.test("JPEGs have the size of the region, scaled down to the requested edge and never enlarged", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  const source = (size: string, ...args: string[]) =>
    make(
      join(folder.path, `${size}${args.length}.mkv`),
      ...["-f", "lavfi", "-i", `testsrc2=s=${size}:r=5:d=1`, ...args, "-c:v", "ffv1"],
    );
  const check = async (path: string, options: TestOptions & { maxEdge?: number }, expected: string) => {
    const { maxEdge = null, ...rest } = options;
    const chunks = await chunksOf(decoder, path, { ...rest, images: { perChunk: 2, maxEdge } });
    equal(chunks[0]!.images.length, 2);
    equal(extentOf(folder, chunks[0]!.images.map(({ jpeg }) => jpeg)), expected);
  };
  const wide = source("320x180");
  await check(wide, {}, "320x180");
  await check(wide, { maxEdge: 4096 }, "320x180");
  await check(wide, { maxEdge: 320 }, "320x180");
  await check(wide, { maxEdge: 160 }, "160x90");
  await check(wide, { maxEdge: 101 }, "100x56");
  await check(wide, { maxEdge: 64 }, "64x36");
  await check(wide, { crop: { x: 0.5, y: 0.5, width: 0.5, height: 0.25 } }, "160x44");
  await check(wide, { crop: { x: 0.5, y: 0, width: 0.25, height: 1 }, maxEdge: 90 }, "40x90");
  await check(source("180x320"), { maxEdge: 160 }, "90x160");
  await check(source("161x121", "-pix_fmt", "yuv444p"), {}, "160x120");
  await check(source("160x120", "-pix_fmt", "yuv420p10le"), {}, "160x120");
  await check(source("160x120", "-pix_fmt", "bgra", "-r", "5"), {}, "160x120");
  await check(source("160x120", "-vf", "setsar=16/11", "-r", "5", "-an"), {}, "160x120");
  const turned = makeTurned(join(folder.path, "turned.mp4"), makeClip(join(folder.path, "flat.mp4")), 90);
  await check(turned, {}, "240x320");
  await check(turned, { maxEdge: 64 }, "48x64");
});

Deno.test("JPEGs have the right colours and show the right region", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  const check = async (name: string, args: string[], expected: number, options: TestOptions = {}) => {
    const path = make(join(folder.path, name), "-f", "lavfi", "-i", ...args);
    const [chunk] = await chunksOf(decoder, path, {
      ...options,
      images: { perChunk: 1, maxEdge: null, quality: 95 },
    });
    const [mean] = meansOf(folder, chunk!.images.map(({ jpeg }) => jpeg));
    ok(Math.abs(mean! - expected) <= 2, `${name}: ${mean}, not ${expected}`);
  };
  const halves = "color=black:s=160x120:r=5:d=1,drawbox=x=80:w=80:h=120:color=white:t=fill";
  await check("limited.mkv", [halves, "-pix_fmt", "yuv420p", "-c:v", "ffv1"], 127);
  await check(
    "full.mkv",
    [`${halves},scale=out_range=full,format=yuvj420p`, "-c:v", "mjpeg", "-q:v", "2"],
    127,
  );
  await check("deep.mkv", [halves, "-pix_fmt", "yuv422p10le", "-c:v", "ffv1"], 127);
  await check("rgb.mkv", [`${halves},format=bgra`, "-c:v", "ffv1"], 127);
  await check("right.mkv", [halves, "-c:v", "ffv1"], 255, { crop: { x: 0.5, y: 0, width: 0.5, height: 1 } });
  await check("left.mkv", [halves, "-c:v", "ffv1"], 0, { crop: { x: 0, y: 0, width: 0.5, height: 1 } });
  const flat = make(join(folder.path, "flat.mp4"), "-f", "lavfi", "-i", halves, "-c:v", "mpeg4", "-q:v", "2");
  const turned = makeTurned(join(folder.path, "turned.mp4"), flat, 90);
  const crop = { x: 0, y: 0.5, width: 1, height: 0.5 };
  const [lower] = await chunksOf(decoder, turned, { crop, images: { perChunk: 1, maxEdge: null } });
  ok(
    meansOf(folder, [lower!.images[0]!.jpeg])[0]! > 250,
    "the right half lies below when turned clockwise",
  );
});

Deno.test("windows begin with the first frame after the last window", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  const clip = makeClip(join(folder.path, "clip.mp4"), { frames: 50, fps: "25" });
  const check = async (windowMs: number, expected: number[]) => {
    const chunks = await chunksOf(decoder, clip, { chunks: { by: "window", windowMs } });
    deepEqual(chunks.map(({ signals }) => signals.count), expected, `${windowMs}`);
    ok(chunks.every(({ images }) => images.length === 0));
  };
  await check(500, [13, 13, 13, 11]);
  await check(1, Array(50).fill(1));
  await check(8000, [50]);
  await check(1000, [25, 25]);
});

Deno.test("in a video that changes its size on the way, the JPEGs still show the chosen frames", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  const path = makeOfTwoSizes(folder, 31);
  for (const perChunk of [1, 2, 3]) {
    const chunks = await chunksOf(decoder, path, {
      chunks: { by: "count", size: 8 },
      images: { perChunk, maxEdge: null },
    });
    // A frame is lost where the parts meet, so the number of each frame is read from its signals.
    const luma = joinedColumn(chunks, "lumaMean").map(numberOf);
    const chosen = chunks.flatMap(({ images }) => images.map(({ frameIndex }) => luma[frameIndex]!));
    const counts = chunks.map(({ signals }) => chosenPositions(signals.count, perChunk).length);
    deepEqual(chunks.map(({ images }) => images.length), counts);
    deepEqual(shownFrames(folder, chunks), chosen);
  }
});

Deno.test("while nobody asks, ffmpeg waits and uses no processor", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  const clip = makeClip(join(folder.path, "clip.mp4"), { frames: 6000, size: "64x48" });
  await using frames = await stream(decoder, clip, { images: { perChunk: 2, maxEdge: null } });
  const first = await frames.next();
  equal(first!.signals.count, 25);
  const cpuTicks = () => {
    const programs = childProcesses(join(folder.path, "temp"));
    equal(programs.length, 1, "one ffmpeg is alive");
    const stat = Deno.readTextFileSync(`/proc/${programs[0]!.pid}/stat`);
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return Number(fields[11]) + Number(fields[12]);
  };
  // It decodes as far as it is allowed to and then blocks: its CPU time does not change any more.
  let ticks = -1;
  while (cpuTicks() !== ticks) {
    ticks = cpuTicks();
    await new Promise((resolve) => setTimeout(resolve, 300));
  }
  ok(ticks < 100, `${ticks} hundredths of a second for a small part of 6,000 frames`);
  const rest = await allChunks(frames);
  equal(rest.length, 239);
  ok(rest.every(({ images }) => images.length === 2));
});

Deno.test("a stream that is disposed at any moment leaves nothing behind, and the decoder still works", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  const clip = makeClip(join(folder.path, "clip.mp4"), { frames: 3000 });
  const images = { perChunk: 2, maxEdge: null };
  for (const taken of [0, 1, 5]) {
    const frames = await stream(decoder, clip, { images });
    for (let i = 0; i < taken; i++) await frames.next();
    // The chunk may have been complete already; then it is the next one in order.
    const pending = frames.next().then((chunk) => `chunk ${chunk?.index}`, ({ message }) => String(message));
    await frames[Symbol.asyncDispose]();
    match(await pending, new RegExp(`^chunk ${taken}$|was closed`));
    await rejects(frames.next(), /was closed/);
    checkNothingLeft(folder);
  }
  const stop = new AbortController();
  const aborted = await stream(decoder, clip, { images, signal: stop.signal });
  await aborted.next();
  stop.abort(new Error("enough"));
  await aborted.closed;
  await rejects(aborted.next(), /enough/);
  checkNothingLeft(folder);
  equal((await chunksOf(decoder, clip, { maxFrames: 60 })).length, 3);
  const left = await stream(decoder, clip, { images });
  await decoder[Symbol.asyncDispose]();
  await rejects(left.next(), /closing/);
  checkNothingLeft(folder);
});

Deno.test("streams with slow consumers leave short decodes their permits", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  const clip = makeClip(join(folder.path, "clip.mp4"), { frames: 3000 });
  const held = await Promise.all([1, 2, 3, 4].map(() => stream(decoder, clip)));
  const info = await decoder.probe(fileInput(clip), NEVER);
  const plan = planSampling({}, 25, "ingest");
  const { signals } = await decoder.decodeSignals({
    input: fileInput(clip),
    info,
    plan,
    maxFrames: 10,
    signal: NEVER,
  });
  equal(signals.count, 10);
  const fifth = stream(decoder, clip);
  await held[0]![Symbol.asyncDispose]();
  equal((await (await fifth).next())!.signals.count, 25);
});

Deno.test("faults of the medium are refused by the first chunk, and an invalid request is refused at once", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  const clip = makeClip(join(folder.path, "clip.mp4"));
  const sound = make(join(folder.path, "sound.mp4"), "-f", "lavfi", "-i", "sine=d=1", "-c:a", "aac");
  await rejects(stream(decoder, sound), (error) => isFault(error, /no video stream/));
  const tiny = { x: 0, y: 0, width: 0.001, height: 1 };
  await rejects(stream(decoder, clip, { crop: tiny }), (error) => isFault(error, /2x2/));
  const info = await decoder.probe(fileInput(clip), NEVER);
  const request = { info, plan: planSampling({}, 25, "ingest"), maxFrames: 10, signal: NEVER };
  const chunks = { by: "count", size: 5 } as const;
  const text = folder.file("text.mp4", "no longer a video");
  for (
    const [path, reason] of [[join(folder.path, "gone.mp4"), /cannot be read/], [text, /source_uri/]] as const
  ) {
    for (const images of [undefined, { perChunk: 2, maxEdge: null }]) {
      await using frames = await decoder.streamFrames({
        ...request,
        input: fileInput(path),
        chunks,
        ...(images && { images }),
      });
      await rejects(frames.next(), (error) => isFault(error, reason));
      await rejects(frames.next(), (error) => isFault(error, reason));
    }
  }
  for (
    const wrong of [
      { chunks: { by: "window", windowMs: 500 }, images: { perChunk: 1, maxEdge: null } },
      { chunks: { by: "window", windowMs: 0 } },
      { chunks: { by: "count", size: 0 } },
      { chunks: { by: "count", size: 2.5 } },
      { images: { perChunk: 0, maxEdge: null } },
      { maxFrames: 0 },
    ] satisfies TestOptions[]
  ) await rejects(stream(decoder, clip, wrong), RangeError);
  checkNothingLeft(folder);
  equal((await chunksOf(decoder, clip)).length, 1);
});

Deno.test("an ffmpeg without output is ended while the consumer waits, and not otherwise", async () => {
  using folder = new TempFolder();
  const stepped = steppedWorld();
  const hangs = join(folder.path, "hangs");
  const ffmpeg = folder.script(
    "ffmpeg",
    `if [ -e ${hangs} ]; then echo > ${folder.path}/started; exec /bin/sleep 1000; fi; exec ${tools().ffmpeg} "$@"`,
  );
  await using decoder = await openDecoder(folder, { tools: { ffmpeg, prlimit: null }, world: stepped });
  const clip = makeClip(join(folder.path, "clip.mp4"), { frames: 3000 });
  await using held = await stream(decoder, clip);
  ok(await held.next());
  stepped.elapse();
  ok(await held.next(), "time that passes while nobody waits does not count");
  folder.file("hangs");
  await using frames = await stream(decoder, clip);
  await until(() => exists(join(folder.path, "started")));
  const waiting = frames.next();
  const refused = rejects(waiting, {
    code: "provider_saturated",
    message: /too busy: decoding came to a halt/,
  });
  await new Promise((resolve) => setTimeout(resolve, 0));
  stepped.elapse();
  await refused;
  await held[Symbol.asyncDispose]();
  checkNothingLeft(folder);
});

Deno.test("an endless source gives chunks as its frames come, until its deadline", async () => {
  using folder = new TempFolder();
  const clip = makeClip(join(folder.path, "clip.mp4"), { frames: 50 });
  const bytes = Deno.readFileSync(
    make(join(folder.path, "a.ts"), "-i", clip, "-c:v", "mpeg2video", "-f", "mpegts"),
  );
  await using camera = serveRtsp(bytes, { isEndless: true });
  const elapse: (() => void)[] = [];
  const real = world();
  // The deadline of the stream passes when the test calls `elapse`.
  const sleep = (ms: number, signal?: AbortSignal) => {
    if (ms !== 600_000) return real.sleep(ms, signal);
    return new Promise<void>((resolve, reject) => {
      elapse.push(resolve);
      signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  };
  await using decoder = await openDecoder(folder, { world: { ...real, sleep } });
  const input = rtspInput(`rtsp://127.0.0.1:${camera.port}/camera`);
  const info = await decoder.probe(input, NEVER);
  const request = { input, info, plan: planSampling({}, info.video!.averageFps, "ingest"), signal: NEVER };
  const chunks = { by: "count", size: 10 } as const;
  const images = { perChunk: 2, maxEdge: 64 };
  await using cut = await decoder.streamFrames({ ...request, maxFrames: 23, chunks, images });
  deepEqual((await allChunks(cut)).map(({ images }) => images.map(({ frameIndex }) => frameIndex)), [
    [0, 9],
    [10, 19],
    [20, 22],
  ]);
  await using endless = await decoder.streamFrames({ ...request, maxFrames: 500_000, chunks, images });
  equal((await endless.next())!.images.length, 2);
  elapse.forEach((pass) => pass());
  const rest = await allChunks(endless);
  const missing = rest.map(({ signals, images }) => chosenPositions(signals.count, 2).length - images.length);
  // The JPEGs of the last chunk may not have come before the deadline.
  equal(missing.slice(0, -1).filter((count) => count !== 0).length, 0);
  deepEqual(childProcesses("rtsp://"), []);
});
