import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { join } from "node:path";
import { Refusal } from "../../../src/contract/refusal.ts";
import type { World } from "../../../src/base/world.ts";
import { type DecodedSignals, Decoder, type DecodeRequest } from "../../../src/media/files/decoder.ts";
import { fileInput } from "../../../src/media/input.ts";
import { planSampling, type SamplingRequest } from "../../../src/model/frames/sampling.ts";
import {
  frameTimesMs,
  make,
  makeClip,
  makeTurned,
  NEVER,
  openDecoder,
  probeOnce,
  steppedWorld,
  TempFolder,
  tools,
} from "../../support/media.ts";
import { needing, SHARED_CLIPS, SHARED_CLIPS_FOLDER } from "../../support/needs.ts";
import { until } from "../../support/until.ts";
import { childProcesses } from "../../support/own_process.ts";
import { LONG_TEST } from "../../support/long_tests.ts";

interface TestOptions extends Partial<Pick<DecodeRequest, "maxFrames" | "crop" | "signal">> {
  sampling?: SamplingRequest;
}

async function decode(decoder: Decoder, path: string, options: TestOptions = {}): Promise<DecodedSignals> {
  const { sampling = {}, maxFrames = 500_000, crop, signal = NEVER } = options;
  const info = await probeOnce(decoder, path, signal);
  const plan = planSampling(sampling, info.video?.averageFps ?? null, "ingest");
  return await decoder.decodeSignals({
    input: fileInput(path),
    info,
    plan,
    maxFrames,
    signal,
    ...(crop && { crop }),
  });
}

/** Checks that no process with the folder in its command line is left, and no pipe. */
function checkNothingLeft(folder: TempFolder): void {
  deepEqual(childProcesses(join(folder.path, "temp")), []);
  deepEqual([...Deno.readDirSync(join(folder.path, "temp"))], []);
}

function isFault(error: unknown, expected: RegExp): true {
  ok(error instanceof Refusal, String(error));
  equal(error.details[0]!.field, "source_uri");
  match(error.message, expected);
  return true;
}

Deno.test({
  ...needing(
    SHARED_CLIPS,
    "every frame of real clips of each kind is decoded at its exact time, and the bad ones are refused",
  ),
  ...LONG_TEST,
  async fn(t) {
    using folder = new TempFolder();
    await using decoder = await openDecoder(folder);
    const checkFrames = (name: string, frames: number, extent: string) =>
      t.step(`${name}: ${frames} frames of ${extent}`, async () => {
        const path = join(SHARED_CLIPS_FOLDER, name);
        const info = await probeOnce(decoder, path);
        const { signals, width, height, pixelFormat, coordinates } = await decode(decoder, path);
        equal(signals.count, frames);
        equal(`${width}x${height}`, extent);
        equal(pixelFormat, info.video!.pixelFormat);
        deepEqual(coordinates.source_extent, { width, height });
        equal(signals.ptsMs[0], 0);
        const times = frameTimesMs(path, info.video!.streamIndex);
        for (let frame = 0; frame < frames; frame++) {
          const time = times[frame]!;
          // ffprobe prints microseconds, and no time at all where the container has none.
          if (!Number.isNaN(time)) {
            ok(Math.abs(signals.ptsMs[frame]! - time) < 0.002, `frame ${frame} of ${name}`);
          }
          ok(frame === 0 || signals.ptsMs[frame]! >= signals.ptsMs[frame - 1]!);
          ok(signals.lumaMean[frame]! >= 0 && signals.lumaMean[frame]! <= 1);
        }
      });
    const checkRefused = (name: string, expected: RegExp) =>
      t.step(`${name} is refused`, async () => {
        await rejects(decode(decoder, join(SHARED_CLIPS_FOLDER, name)), (error) => isFault(error, expected));
      });
    await checkFrames("intel_bottle.mp4", 1189, "640x360");
    await checkFrames("bgs_video02.avi", 748, "320x240");
    await checkFrames("bbb480.mp4", 720, "854x480");
    await checkFrames("bbb_rotated.mp4", 45, "1080x1920");
    await checkFrames("chrome_ad.webm", 899, "480x270");
    await checkFrames("flower_cc0.mp4", 150, "960x540");
    await checkFrames("nasa_13013.mp4", 390, "480x270"); // the larger one of two default tracks
    await checkFrames("mediabunny_hevc.mp4", 300, "1920x1080");
    await checkFrames("mediabunny_vfr_3026x1386.mp4", 63, "3026x1386");
    await checkFrames("vp8_1432x888.ivf", 2, "1432x888"); // its header says no rate
    await checkFrames("flower_av1.mp4", 150, "960x540");
    await checkFrames("flower_vp9.webm", 150, "960x540");
    await checkFrames("bad_truncated_tail.mp4", 453, "854x480");
    await checkFrames("bad_bitflips.mp4", 377, "768x432");
    await checkRefused("bad_audio_only.mp4", /no video stream/);
    await checkRefused("bad_empty.mp4", /file is empty/);
    await checkRefused("bad_notvideo.mp4", /not a media file/);
    await checkRefused("bad_truncated_nomoov.mp4", /cut off/);
    checkNothingLeft(folder);
  },
});

Deno.test("the sampling plan decides which frames there are", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  const clip = makeClip(join(folder.path, "clip.mp4"), { frames: 100, fps: "25" });
  const check = async (options: TestOptions, expectedMs: number[]) => {
    const { signals } = await decode(decoder, clip, options);
    deepEqual([...signals.ptsMs].map(Math.round), expectedMs, JSON.stringify(options));
  };
  const every = (count: number, periodMs: number) =>
    Array.from({ length: count }, (_, i) => Math.round(i * periodMs));
  await check({}, every(100, 40));
  await check({ maxFrames: 7 }, every(7, 40));
  await check({ maxFrames: 1 }, [0]);
  await check({ sampling: { policy: "fixed", fixedFps: 2 } }, [0, 520, 1000, 1520, 2000, 2520, 3000, 3520]);
  await check({ sampling: { policy: "fixed", fixedFps: 2 }, maxFrames: 3 }, [0, 520, 1000]);
  await check({ sampling: { policy: "fixed", fixedFps: 50 } }, every(100, 40));
  await check({ sampling: { policy: "fixed", fixedFps: 29.97 }, maxFrames: 4 }, every(4, 40));
  await check({ sampling: { policy: "fixed", fixedFps: 0.2 } }, [0]);
});

Deno.test("luma is right in every pixel format, size and rotation", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  /** White in the right half: the mean luma shows how much of it is visible. */
  const halves = "color=black:s=160x120:r=5:d=1,drawbox=x=80:w=80:h=120:color=white:t=fill";
  const check = async (name: string, args: string[], expectedMean: number, crop?: DecodeRequest["crop"]) => {
    const path = make(join(folder.path, name), "-f", "lavfi", "-i", ...args);
    const { signals } = await decode(decoder, path, crop ? { crop } : {});
    equal(signals.count, 5, name);
    ok(Math.abs(signals.lumaMean[0]! - expectedMean) < 0.01, `${name}: ${signals.lumaMean[0]}`);
  };
  const black = 16 / 255, white = 235 / 255, middle = (black + white) / 2;
  for (const format of ["yuv420p", "yuv422p", "yuv444p", "yuv420p10le", "yuv411p", "nv12"]) {
    await check(`${format}.nut`, [halves, "-pix_fmt", format, "-c:v", "rawvideo"], middle);
  }
  await check("gray.mkv", [`${halves},format=gray`, "-c:v", "ffv1"], 0.5);
  await check("bgra.mkv", [`${halves},format=bgra`, "-c:v", "ffv1"], 0.5);
  await check("rgb24.nut", [`${halves},format=rgb24`, "-c:v", "rawvideo"], 0.5);
  await check("pal8.gif", [`${halves},format=pal8`, "-c:v", "gif"], 0.5);
  await check("odd.mkv", ["color=white:s=161x121:r=5:d=1,format=yuv444p", "-c:v", "ffv1"], white);
  await check("right.mkv", [halves, "-c:v", "ffv1"], white, { x: 0.5, y: 0, width: 0.5, height: 1 });
  await check("left.mkv", [halves, "-c:v", "ffv1"], black, { x: 0, y: 0, width: 0.5, height: 1 });
  await check("quarter.mkv", [halves, "-c:v", "ffv1"], white * .75 + black * .25, {
    x: 0.375,
    y: 0.25,
    width: 0.5,
    height: 0.5,
  });
  // Turned clockwise, the right half becomes the lower one; the crop refers to the frame as displayed.
  const flat = make(join(folder.path, "flat.mp4"), "-f", "lavfi", "-i", halves, "-c:v", "mpeg4", "-q:v", "2");
  const turned = makeTurned(join(folder.path, "turned.mp4"), flat, 90);
  const lower = await decode(decoder, turned, { crop: { x: 0, y: 0.5, width: 1, height: 0.5 } });
  equal(`${lower.width}x${lower.height}`, "120x160");
  deepEqual(lower.coordinates.resolved_region, { x: 0, y: 80, width: 120, height: 80 });
  ok(Math.abs(lower.signals.lumaMean[0]! - white) < 0.02, `${lower.signals.lumaMean[0]}`);
});

Deno.test("a video that changes its size on the way is decoded to the end", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  const parts = ["320x240", "176x144"].map((size) => {
    const path = join(folder.path, `${size}.ts`);
    make(path, "-f", "lavfi", "-i", `testsrc2=s=${size}:r=25:d=1`, "-c:v", "mpeg2video", "-f", "mpegts");
    return Deno.readFileSync(path);
  });
  const { signals } = await decode(
    decoder,
    folder.file("joined.ts", new Uint8Array([...parts[0]!, ...parts[1]!])),
  );
  ok(signals.count >= 48, `${signals.count} frames`);
});

Deno.test("a source without a single frame is refused", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  const sound = make(join(folder.path, "sound.mp4"), "-f", "lavfi", "-i", "sine=d=1", "-c:a", "aac");
  await rejects(decode(decoder, sound), (error) => isFault(error, /no video stream/));
  const clip = makeClip(join(folder.path, "clip.mp4"));
  const info = await decoder.probe(fileInput(clip), NEVER);
  const request = { info, plan: planSampling({}, 25, "ingest"), maxFrames: 10, signal: NEVER };
  const gone = join(folder.path, "gone.mp4");
  await rejects(
    decoder.decodeSignals({ ...request, input: fileInput(gone) }),
    (error) => isFault(error, /cannot be read/),
  );
  const text = folder.file("text.mp4", "no longer a video");
  await rejects(
    decoder.decodeSignals({ ...request, input: fileInput(text) }),
    (error) => isFault(error, /source_uri/),
  );
  const tiny = { x: 0, y: 0, width: 0.001, height: 1 };
  await rejects(
    decoder.decodeSignals({ ...request, input: fileInput(clip), crop: tiny }),
    (error) => isFault(error, /2x2/),
  );
  checkNothingLeft(folder);
  equal((await decode(decoder, clip)).signals.count, 25, "and the decoder still works");
});

Deno.test("at most maxConcurrent decodes run, and the others start in the order of their calls", async () => {
  const check = async (maxConcurrent: number) => {
    using folder = new TempFolder();
    const log = folder.file("log");
    const go = join(folder.path, "go");
    // Each logs its arguments, which show its caller, waits until the file `go` exists, and logs its end.
    const ffmpeg = folder.script(
      "ffmpeg",
      `echo "+ $*" >> ${log}; while [ ! -e ${go} ]; do /bin/sleep 0.01; done
      ${tools().ffmpeg} "$@"; code=$?; echo - >> ${log}; exit $code`,
    );
    await using decoder = await openDecoder(folder, { tools: { ffmpeg, prlimit: null }, maxConcurrent });
    const clip = makeClip(join(folder.path, "clip.mp4"));
    const info = await decoder.probe(fileInput(clip), NEVER);
    const plan = planSampling({}, 25, "ingest");
    const callers = [0, 1, 2, 3, 4, 5, 6];
    const lines = () => Deno.readTextFileSync(log).trim().split("\n").filter((line) => line !== "");
    const decoding = Promise.all(
      callers.map((caller) =>
        decoder.decodeSignals({ input: fileInput(clip), info, plan, maxFrames: 10 + caller, signal: NEVER })
      ),
    );
    await until(() => lines().length === maxConcurrent);
    Deno.writeTextFileSync(go, "");
    const counts = (await decoding).map((decoded) => decoded.signals.count);
    deepEqual(counts, callers.map((caller) => 10 + caller), "each caller gets its own answer");
    let running = 0, most = 0;
    for (const line of lines()) {
      running += line === "-" ? -1 : 1;
      most = Math.max(most, running);
    }
    equal(most, maxConcurrent);
    // ffmpeg gives one frame more than its caller wants, which shows whether any is left.
    const started = lines().filter((line) => line !== "-").map((line) =>
      Number(/-frames:v (\d+)/.exec(line)![1]) - 11
    );
    deepEqual(started.toSorted(), callers);
    if (maxConcurrent === 1) deepEqual(started, callers, "first come, first served");
    checkNothingLeft(folder);
  };
  await check(1);
  await check(2);
  await check(3);
});

/** A decoder whose ffmpeg logs its start, then reads 200 seconds of media in real time. */
async function hanging(folder: TempFolder, changed: { world?: World } = {}) {
  const started = join(folder.path, "started");
  // ffmpeg's arguments stay on the command line, so that a process left behind is found by its pipe.
  const ffmpeg = folder.script("ffmpeg", `echo >> ${started}; exec ${tools().ffmpeg} -re "$@"`);
  const decoder = await openDecoder(folder, {
    ...changed,
    tools: { ffmpeg, prlimit: null },
    maxConcurrent: 1,
  });
  const clip = makeClip(join(folder.path, "clip.mp4"), { frames: 5000, size: "64x48" });
  const info = await decoder.probe(fileInput(clip), NEVER);
  const starts = () => folder.names().includes("started") ? Deno.statSync(started).size : 0;
  return {
    decoder,
    starts,
    begin: (signal: AbortSignal) =>
      decoder.decodeSignals({
        input: fileInput(clip),
        info,
        plan: planSampling({}, 25, "ingest"),
        maxFrames: 5000,
        signal,
      }),
  };
}

Deno.test("aborting a decode ends it, and the next waiting one starts", async () => {
  using folder = new TempFolder();
  const { decoder, starts, begin } = await hanging(folder);
  await using _closing = decoder;
  const first = new AbortController(), second = new AbortController(), third = new AbortController();
  const running = begin(first.signal);
  await until(() => starts() === 1);
  const waiting = begin(second.signal);
  const behind = begin(third.signal);
  second.abort(new Error("the second left the queue"));
  await rejects(waiting, /the second left the queue/);
  equal(starts(), 1);
  first.abort(new Error("the first gave up"));
  await rejects(running, /the first gave up/);
  await until(() => starts() === 2);
  third.abort(new Error("the third gave up"));
  await rejects(behind, /the third gave up/);
  checkNothingLeft(folder);
  await rejects(begin(AbortSignal.abort(new Error("came too late"))), /came too late/);
  equal(starts(), 2);
});

Deno.test("a decode that takes too long is refused and leaves nothing behind", async () => {
  using folder = new TempFolder();
  const stepped = steppedWorld();
  const { decoder, starts, begin } = await hanging(folder, { world: stepped });
  await using _closing = decoder;
  const running = begin(NEVER);
  await until(() => starts() === 1);
  stepped.elapse();
  await rejects(running, {
    code: "provider_saturated",
    message: /too busy: decoding took longer than \d+ s/,
  });
  checkNothingLeft(folder);
});

Deno.test("closing the decoder stops running and waiting decodes", async () => {
  using folder = new TempFolder();
  const { decoder, starts, begin } = await hanging(folder);
  const running = begin(NEVER);
  await until(() => starts() === 1);
  const outcomes = Promise.allSettled([running, begin(NEVER)]);
  await decoder[Symbol.asyncDispose]();
  deepEqual((await outcomes).map((outcome) => outcome.status), ["rejected", "rejected"]);
  checkNothingLeft(folder);
  await rejects(begin(NEVER), /closing/);
});

Deno.test("a worker that gets wrong bytes is replaced, and the decoder still works", async () => {
  using folder = new TempFolder();
  const isBroken = join(folder.path, "broken");
  // The last argument is the pipe; a NUT file of the wrong size goes there for as long as the marker exists.
  const wrong = make(
    join(folder.path, "wrong.nut"),
    ...[
      "-f",
      "lavfi",
      "-i",
      "testsrc2=s=64x36:r=25",
      "-frames:v",
      "9",
      "-pix_fmt",
      "gray",
      "-c:v",
      "rawvideo",
    ],
  );
  const ffmpeg = folder.script(
    "ffmpeg",
    `for last; do :; done; [ -e ${isBroken} ] && exec /bin/cat ${wrong} /dev/zero > "\${last#file:}"; exec ${tools().ffmpeg} "$@"`,
  );
  await using decoder = await openDecoder(folder, { tools: { ffmpeg, prlimit: null }, maxConcurrent: 1 });
  const clip = makeClip(join(folder.path, "clip.mp4"));
  equal((await decode(decoder, clip)).signals.count, 25);
  folder.file("broken");
  await rejects(decode(decoder, clip), /decode worker failed/);
  Deno.removeSync(isBroken);
  equal((await decode(decoder, clip)).signals.count, 25);
  checkNothingLeft(folder);
});

Deno.test("an ffmpeg that cannot be started does not block later decodes", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder, {
    tools: { ffmpeg: "/no/such/ffmpeg", prlimit: null },
    maxConcurrent: 1,
  });
  const clip = makeClip(join(folder.path, "clip.mp4"));
  for (let attempt = 0; attempt < 3; attempt++) await rejects(decode(decoder, clip), Deno.errors.NotFound);
  checkNothingLeft(folder);
});
