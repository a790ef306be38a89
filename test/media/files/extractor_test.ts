import { localRunner } from "../../support/local_runner.ts";
import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { join } from "node:path";
import { Metrics } from "../../../src/contract/metrics.ts";
import type { Tools } from "../../../src/base/program_paths.ts";
import type { World } from "../../../src/base/world.ts";
import { type DecodedSignals, Decoder } from "../../../src/media/files/decoder.ts";
import {
  type Clip,
  type ClipRequest,
  ExtractionFailed,
  Extractor,
} from "../../../src/media/files/extractor.ts";
import { fileInput, hlsInput, type MediaInput, rtspInput } from "../../../src/media/input.ts";
import type { MediaInfo } from "../../../src/media/media_info.ts";
import { croppedFrame, fullFrame } from "../../../src/model/frames/coordinates.ts";
import { planSampling } from "../../../src/model/frames/sampling.ts";
import { readWav, wavSamples } from "../../../src/model/sidecars/wav.ts";
import { make, makeTurned, NEVER, steppedWorld, TempFolder, tools, world } from "../../support/media.ts";
import { until } from "../../support/until.ts";
import { childProcesses } from "../../support/own_process.ts";
import { LONG_TEST } from "../../support/long_tests.ts";

/** An extractor with its own temp folder, and a decoder to check sources and clips. */
class ExtractorBench implements AsyncDisposable {
  readonly folder = new TempFolder();
  readonly tempDir = join(this.folder.path, "temp");
  readonly metrics = new Metrics();
  /** The kinds of the jobs that the extractor started. */
  readonly jobs: string[] = [];
  readonly #opened = new AsyncDisposableStack();

  private constructor(readonly extractor: Extractor, readonly decoder: Decoder) {}

  static open(
    changed: { tools?: Partial<Tools>; world?: World; maxConcurrent?: number; clipBytesMax?: number } = {},
  ): ExtractorBench {
    const bench = new ExtractorBench(null!, null!);
    Deno.mkdirSync(bench.tempDir);
    const shared = { tempDir: bench.tempDir, world: world(), maxConcurrent: 2, runner: localRunner(tools()) };
    const runner = localRunner({ ...tools(), ...changed.tools });
    const extractor = new Extractor({
      ...shared,
      ...changed,
      runner: {
        ...runner,
        run: (job, options) => {
          bench.jobs.push(job.kind);
          return runner.run(job, options);
        },
      },
      metrics: bench.metrics,
    });
    const decoder = bench.#opened.use(new Decoder(shared));
    bench.#opened.use(extractor);
    return Object.assign(bench, { extractor, decoder });
  }

  path(name: string): string {
    return join(this.folder.path, name);
  }

  probe(source: string | MediaInput): Promise<MediaInfo> {
    return this.decoder.probe(inputOf(source), NEVER);
  }

  async signals(source: string | MediaInput): Promise<DecodedSignals> {
    const info = await this.probe(source);
    const plan = planSampling({}, info.video?.averageFps ?? null, "ingest");
    const input = inputOf(source);
    return await this.decoder.decodeSignals({ input, info, plan, maxFrames: 100_000, signal: NEVER });
  }

  async clip(source: string | MediaInput, options: Partial<ClipRequest>): Promise<Clip> {
    const input = inputOf(source);
    const info = options.info ?? await this.probe(source);
    const { width, height } = info.video ?? { width: 2, height: 2 };
    return await this.extractor.clip({
      ...{ input, info, startMs: 0, durationMs: 1000, coordinates: fullFrame(width, height) },
      ...{ withAudio: info.audioStreams > 0, signal: NEVER },
      ...options,
    });
  }

  wav(source: string, info: MediaInfo, startMs: number, durationMs: number) {
    return this.extractor.wav({ input: fileInput(source), info, startMs, durationMs, signal: NEVER });
  }

  /** Checks that no process with the folder in its command line is left, and no file in the temp folder. */
  checkNothingLeft(): void {
    deepEqual(childProcesses(this.tempDir), []);
    deepEqual([...Deno.readDirSync(this.tempDir)], []);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#opened.disposeAsync();
    this.checkNothingLeft();
    this.folder[Symbol.dispose]();
  }
}

function inputOf(source: string | MediaInput): MediaInput {
  return typeof source === "string" ? fileInput(source) : source;
}

/** Frame n of 25 a second is one level brighter than the one before; a tone sounds from 3.5 s to 5.5 s. */
const PICTURE = "nullsrc=s=160x120:r=25:d=8,geq=lum='20+N':cb=128:cr=128";
const BEEP_MS = 3500;
const BEEP = "aevalsrc='0.5*sin(2*PI*1000*t)*between(t,3.5,5.5)':s=44100:d=8";
const ENCODED = ["-c:v", "libx264", "-g", "60", "-bf", "2", "-preset", "fast", "-crf", "10", "-c:a", "aac"];

function makeTimed(path: string, ...args: string[]): string {
  return make(path, "-f", "lavfi", "-i", PICTURE, "-f", "lavfi", "-i", BEEP, ...ENCODED, ...args);
}

/** The audio samples of a file, mono, from its start. */
function audioSamples(path: string, rate = 48_000): Int16Array {
  const { stdout, success } = new Deno.Command(tools().ffmpeg, {
    args: [
      ...["-v", "error", "-i", path, "-map", "0:a:0", "-ac", "1", "-ar", String(rate), "-f", "s16le", "-"],
    ],
  }).outputSync();
  ok(success);
  return new Int16Array(stdout.slice().buffer);
}

/** Milliseconds to the first sample that is loud; null when none is. */
function onsetMs(samples: Int16Array, rate: number): number | null {
  const at = samples.findIndex((sample) => Math.abs(sample) > 3000);
  return at < 0 ? null : at / rate * 1000;
}

/** How strong one frequency is, 0 to about 1 for a tone at full scale (Goertzel). */
function strength(samples: Int16Array, rate: number, hz: number): number {
  const turn = 2 * Math.cos(2 * Math.PI * hz / rate);
  let [last, before] = [0, 0];
  for (const sample of samples) [last, before] = [sample / 32768 + turn * last - before, last];
  const power = last * last + before * before - turn * last * before;
  return 2 * Math.sqrt(Math.max(0, power)) / samples.length;
}

interface ProbedStream {
  readonly codec_name: string;
  readonly pix_fmt?: string;
  readonly width?: number;
  readonly height?: number;
  readonly sample_rate?: string;
  readonly channels?: number;
  readonly duration: string;
}

function probed(
  path: string,
): { streams: ProbedStream[]; format: { duration: string; format_name: string } } {
  const { stdout } = new Deno.Command(tools().ffprobe, {
    args: ["-v", "error", "-show_streams", "-show_format", "-of", "json", path],
  }).outputSync();
  return JSON.parse(new TextDecoder().decode(stdout));
}

/** The types of the outermost boxes, in order. */
function boxes(bytes: Uint8Array): string[] {
  const view = new DataView(bytes.buffer, bytes.byteOffset, bytes.length);
  const types: string[] = [];
  for (let at = 0; at + 8 <= bytes.length; at += view.getUint32(at)) {
    types.push(String.fromCharCode(...bytes.subarray(at + 4, at + 8)));
  }
  return types;
}

function failsWith(reason: string, work: Promise<unknown>): Promise<void> {
  return rejects(work, (error) => {
    ok(error instanceof ExtractionFailed, String(error));
    equal(error.reason, reason, error.message);
    ok(error.message.length < 300 && !error.message.includes("/"), error.message);
    return true;
  });
}

Deno.test(
  "a clip begins with exactly the frame at its start, and sound and video stay in sync",
  LONG_TEST,
  async (t) => {
    await using bench = ExtractorBench.open();
    const plain = makeTimed(bench.path("plain.mp4"));
    const shifted = (name: string, videoS: number, audioS: number, ...args: string[]) =>
      make(
        bench.path(name),
        ...["-itsoffset", String(videoS), "-i", plain, "-itsoffset", String(audioS), "-i", plain],
        ...["-map", "0:v", "-map", "1:a", "-c", "copy", ...args],
      );
    /** Checks a window with a beep; `beepMs` counts from the first frame. */
    const check = (
      source: string | MediaInput,
      beepMs: number,
      toleranceMs = 22,
      starts = [2967.4, 4799.9],
    ) =>
      t.step(typeof source === "string" ? source.split("/").pop()! : "HLS on demand", async () => {
        const { signals } = await bench.signals(source);
        const info = await bench.probe(source);
        for (const startMs of starts) {
          const clip = await bench.clip(source, { info, startMs, durationMs: 1000 });
          const path = bench.folder.file("clip.mp4", clip.bytes);
          const got = (await bench.signals(path)).signals;
          const first = signals.ptsMs.findLastIndex((ptsMs) => ptsMs <= startMs + 1);
          const behind = signals.ptsMs.findIndex((ptsMs) => ptsMs >= startMs + 1000);
          equal(got.count, (behind < 0 ? signals.count : behind) - first, `frames from ${startMs} ms`);
          for (let frame = 0; frame < got.count; frame++) {
            const off = 255 * Math.abs(got.lumaMean[frame]! - signals.lumaMean[first + frame]!);
            ok(off < 0.5, `frame ${frame} from ${startMs} ms is ${off} levels off`);
            const atMs = Math.max(0, signals.ptsMs[first + frame]! - startMs);
            ok(Math.abs(got.ptsMs[frame]! - atMs) < 1.1, `frame ${frame} from ${startMs} ms`);
          }
          const wav = await bench.extractor.wav({
            input: inputOf(source),
            ...{ info, startMs, durationMs: 1000, signal: NEVER },
          });
          equal(wav.durationMs, 1000);
          const expectedMs = beepMs > startMs + 1000 ? null : Math.max(0, beepMs - startMs);
          for (
            const [kind, onsetAtMs] of [
              ["clip", onsetMs(audioSamples(path), 48_000)],
              ["wav", onsetMs(wavSamples(wav.bytes, isWav(wav.bytes)), 16_000)],
            ] as const
          ) {
            if (startMs >= beepMs + 2000) continue;
            equal(onsetAtMs === null, expectedMs === null, `${kind} from ${startMs} ms: ${onsetAtMs}`);
            if (onsetAtMs === null) continue;
            ok(
              Math.abs(onsetAtMs - expectedMs!) < toleranceMs,
              `${kind} from ${startMs} ms: sound at ${onsetAtMs}, not ${expectedMs}`,
            );
          }
        }
      });
    await check(plain, BEEP_MS, 22, [0, 2967.4, 3033, 4799.9]);
    await check(make(bench.path("late_start.ts"), "-i", plain, "-c", "copy"), BEEP_MS);
    // AVI has times for sound, but for video only the number of frames.
    await check(makeTimed(bench.path("h264.avi"), "-c:a", "mp3"), BEEP_MS, 90);
    await check(
      make(
        bench.path("plain.webm"),
        ...["-i", plain, "-c:v", "libvpx", "-crf", "4", "-b:v", "4M", "-g", "60", "-c:a", "libopus"],
      ),
      BEEP_MS,
    );
    await check(shifted("sound_first.mp4", 0.7, 0), BEEP_MS - 700);
    await check(shifted("sound_first.mkv", 0.7, 0), BEEP_MS - 700);
    await check(shifted("sound_later.mp4", 0, 0.7), BEEP_MS + 700);
    await check(shifted("sound_later.ts", 0, 0.7), BEEP_MS + 700);
    await check(make(bench.path("edited.mp4"), "-ss", "1.04", "-i", plain, "-c", "copy"), BEEP_MS - 1040);
  },
);

function isWav(bytes: Uint8Array) {
  const shape = readWav(bytes);
  if (typeof shape === "string") throw new Error(shape);
  return shape;
}

Deno.test("a clip is an MP4 that every player supports: index first, H.264 in 4:2:0, one mono AAC track", async () => {
  await using bench = ExtractorBench.open();
  const check = async (name: string, args: string[], extent: string, options: Partial<ClipRequest> = {}) => {
    const source = make(bench.path(name), ...args);
    const clip = await bench.clip(source, { startMs: 200, durationMs: 600, ...options });
    deepEqual(boxes(clip.bytes).filter((type) => type !== "free"), ["ftyp", "moov", "mdat"], name);
    const { streams, format } = probed(bench.folder.file("clip.mp4", clip.bytes));
    const [video, audio] = streams;
    equal(
      `${video!.codec_name} ${video!.pix_fmt} ${video!.width}x${video!.height}`,
      `h264 yuv420p ${extent}`,
    );
    ok(Math.abs(Number(format.duration) - 0.6) < 0.002, `${name} lasts ${format.duration} s`);
    equal(streams.length, clip.audioStreams === null ? 1 : 2);
    if (audio) equal(`${audio.codec_name} ${audio.sample_rate} ${audio.channels}`, "aac 48000 1");
    return clip;
  };
  const video = (
    size: string,
    format = "yuv420p",
  ) => ["-f", "lavfi", "-i", `testsrc2=s=${size}:r=25:d=2,format=${format}`];
  const sound = (
    channels: string,
  ) => ["-f", "lavfi", "-i", `anoisesrc=d=2,aformat=channel_layouts=${channels}`];
  const facts = ({ audioStreams, audioChannels, audioMixed }: Clip) => ({
    audioStreams,
    audioChannels,
    audioMixed,
  });
  const silent = { audioStreams: null, audioChannels: null, audioMixed: null };
  deepEqual(
    facts(await check("stereo.mp4", [...video("320x240"), ...sound("stereo")], "320x240")),
    { audioStreams: 1, audioChannels: 2, audioMixed: true },
  );
  deepEqual(
    facts(await check("mono.mkv", [...video("320x240"), ...sound("mono"), "-c:a", "flac"], "320x240")),
    { audioStreams: 1, audioChannels: 1, audioMixed: false },
  );
  const two = [...video("320x240"), ...sound("mono"), ...sound("5.1"), "-map", "0", "-map", "1", "-map", "2"];
  deepEqual(facts(await check("two.mkv", two, "320x240")), {
    audioStreams: 2,
    audioChannels: 1,
    audioMixed: true,
  });
  deepEqual(facts(await check("without.mkv", two, "320x240", { withAudio: false })), silent);
  deepEqual(facts(await check("mute.mp4", video("320x240"), "320x240")), silent);
  // Of odd sizes the last column or row is cropped.
  await check("odd.mkv", [...video("161x121", "yuv444p"), "-c:v", "ffv1"], "160x120");
  await check("deep.mkv", [...video("320x240", "yuv422p10le"), "-c:v", "ffv1"], "320x240");
  await check("bgr.mkv", [...video("320x240", "bgr0"), "-c:v", "ffv1"], "320x240");
  await check("slow.mp4", [...video("320x240"), "-r", "2", "-c:v", "mpeg4"], "320x240");
  await check("wide.mkv", [...video("320x240"), ...sound("mono")], "64x48", {
    coordinates: croppedFrame({ width: 320, height: 240 }, { x: 0.1, y: 0.1, width: 0.2, height: 0.2 }),
  });
  await check("tiny.mkv", video("320x240"), "2x2", {
    coordinates: croppedFrame({ width: 320, height: 240 }, {
      x: 0.5,
      y: 0.5,
      width: 0.00625,
      height: 0.0084,
    }),
  });
  matches(await bench.metrics.text(), /service_pipeline_media_clips_extracted_total 11\b/);
});

function matches(text: string, pattern: RegExp): void {
  ok(pattern.test(text), `${pattern}`);
}

Deno.test("a crop is exact, in the frame as it is displayed", async () => {
  await using bench = ExtractorBench.open();
  const halves = "color=black:s=160x120:r=5:d=2,drawbox=x=80:w=80:h=120:color=white:t=fill";
  const flat = make(bench.path("flat.mp4"), "-f", "lavfi", "-i", halves, "-c:v", "mpeg4", "-q:v", "2");
  const turned = makeTurned(bench.path("turned.mp4"), flat, 90);
  const check = async (
    source: string,
    crop: [number, number, number, number],
    extent: string,
    mean: number,
  ) => {
    const [x, y, width, height] = crop;
    const info = await bench.probe(source);
    const coordinates = croppedFrame(info.video!, { x, y, width, height });
    const clip = await bench.clip(source, { info, coordinates });
    const { signals, ...seen } = await bench.signals(bench.folder.file("clip.mp4", clip.bytes));
    equal(`${seen.width}x${seen.height}`, extent);
    equal(signals.count, 5);
    ok(Math.abs(signals.lumaMean[0]! * 255 - mean) < 3, `${crop}: ${signals.lumaMean[0]! * 255}`);
  };
  await check(flat, [0, 0, 0.5, 1], "80x120", 16);
  await check(flat, [0.5, 0, 0.5, 1], "80x120", 235);
  await check(flat, [0.375, 0, 0.25, 1], "40x120", 125.5);
  await check(turned, [0, 0, 1, 0.5], "120x80", 16);
  await check(turned, [0, 0.5, 1, 0.5], "120x80", 235);
  await check(turned, [0, 0, 1, 1], "120x160", 125.5);
});

Deno.test("all tracks have their share in the mix, and gaps are silent", async () => {
  await using bench = ExtractorBench.open();
  const tone = (
    hz: number,
    length: number,
  ) => ["-f", "lavfi", "-i", `aevalsrc='sin(2*PI*${hz}*t)':s=44100:d=${length}`];
  const source = make(
    bench.path("tones.mkv"),
    ...["-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=6", ...tone(500, 6), ...tone(1200, 2)],
    ...["-map", "0", "-map", "1", "-map", "2", "-c:v", "mpeg4", "-c:a", "pcm_s16le"],
  );
  const info = await bench.probe(source);
  const check = async (startMs: number, durationMs: number, low: number, high: number) => {
    const { bytes, durationMs: gotMs } = await bench.wav(source, info, startMs, durationMs);
    const samples = wavSamples(bytes, isWav(bytes));
    equal(gotMs, durationMs);
    equal(bytes.length, 44 + durationMs * 32);
    ok(Math.abs(strength(samples, 16_000, 500) - low) < 0.03, `${strength(samples, 16_000, 500)}`);
    ok(Math.abs(strength(samples, 16_000, 1200) - high) < 0.03, `${strength(samples, 16_000, 1200)}`);
    const clip = await bench.clip(source, { info, startMs, durationMs });
    const clipped = audioSamples(bench.folder.file("clip.mp4", clip.bytes));
    // AAC weakens pure tones a little.
    ok(
      Math.abs(strength(clipped, 48_000, 500) - low) < 0.08,
      `${strength(clipped, 48_000, 500)} ${clipped.length}`,
    );
    ok(Math.abs(strength(clipped, 48_000, 1200) - high) < 0.08, `${strength(clipped, 48_000, 1200)}`);
  };
  await check(0, 1000, 0.5, 0.5);
  await check(1000, 2000, 0.5, 0.25);
  await check(4000, 1000, 0.5, 0);
  const early = make(bench.path("early.mkv"), "-i", source, "-map", "0:v", "-map", "0:a:1", "-c", "copy");
  const quiet = await bench.wav(early, await bench.probe(early), 4000, 1000);
  ok(wavSamples(quiet.bytes, isWav(quiet.bytes)).every((sample) => sample === 0));
  ok(
    audioSamples(bench.folder.file("clip.mp4", (await bench.clip(early, { startMs: 4000 })).bytes)).length >=
      48_000,
  );
  matches(await bench.metrics.text(), /service_pipeline_local_audio_wav_bytes_total 160176\b/);
});

Deno.test("every window gives the right frames and sound, however short or close to the end", async () => {
  await using bench = ExtractorBench.open();
  const source = makeTimed(bench.path("plain.mp4"));
  const info = await bench.probe(source);
  const check = async (
    [startMs, durationMs]: [number, number],
    expected: { frames: number; level: number; lastsMs: number },
    withAudio = true,
  ) => {
    const clip = await bench.clip(source, { info, startMs, durationMs, withAudio });
    const path = bench.folder.file("clip.mp4", clip.bytes);
    const { signals } = await bench.signals(path);
    equal(signals.count, expected.frames, `from ${startMs} ms`);
    ok(Math.abs(signals.lumaMean[0]! * 255 - expected.level) < 0.5, `${signals.lumaMean[0]! * 255}`);
    const [video] = probed(path).streams;
    ok(Math.abs(Number(video!.duration) * 1000 - expected.lastsMs) < 2, `lasts ${video!.duration}`);
  };
  await check([0, 1], { frames: 1, level: 20, lastsMs: 1 });
  await check([1000, 1], { frames: 1, level: 45, lastsMs: 1 });
  // between two frames: the first of them is shown
  await check([1019, 1], { frames: 1, level: 45, lastsMs: 1 });
  await check([1019, 1], { frames: 1, level: 45, lastsMs: 1 }, false);
  await check([1020, 45], { frames: 2, level: 45, lastsMs: 45 });
  await check([7960, 1000], { frames: 1, level: 219, lastsMs: 40 });
  await check([7500, 60_000], { frames: 13, level: 207, lastsMs: 500 });
  await check([0, 60_000], { frames: 200, level: 20, lastsMs: 8000 });
  const shape = await bench.wav(source, info, 7500, 60_000);
  ok(Math.abs(shape.durationMs - 500) < 30, `${shape.durationMs}`);
  equal((await bench.wav(source, info, 0, 1)).durationMs, 1);
  const request = { input: fileInput(source), info, signal: NEVER };
  await failsWith("empty", bench.clip(source, { info, startMs: 9000 }));
  await failsWith("empty", bench.clip(source, { info, durationMs: 0 }));
  await failsWith("empty", bench.extractor.wav({ ...request, startMs: -1, durationMs: 10 }));
  await failsWith("empty", bench.extractor.wav({ ...request, startMs: 0, durationMs: NaN }));
  await failsWith("too_large", bench.clip(source, { info, durationMs: 60_001 }));
  const unsteady = make(
    bench.path("unsteady.mp4"),
    ...[
      "-i",
      source,
      "-vf",
      "select='not(mod(n,2))+lt(n,20)+eq(n,101)'",
      "-fps_mode",
      "vfr",
      "-c:v",
      "libx264",
    ],
  );
  const times = (await bench.signals(unsteady)).signals.ptsMs.filter((ptsMs) =>
    ptsMs >= 3800 && ptsMs < 4800
  );
  const clip = await bench.clip(unsteady, { startMs: 3800 });
  const got = (await bench.signals(bench.folder.file("clip.mp4", clip.bytes))).signals.ptsMs;
  const rounded = (list: Iterable<number>) => [...list].map((ms) => Math.round(ms));
  deepEqual(
    rounded(got),
    [0, ...rounded(times.map((ms) => ms - 3800))],
    "the picture of 3760 ms is shown at first",
  );
});

Deno.test(
  "video alone is copied where the copy is exactly the window, and encoded elsewhere",
  LONG_TEST,
  async () => {
    await using bench = ExtractorBench.open();
    const source = (name: string, ...args: string[]) =>
      make(
        bench.path(name),
        ...["-f", "lavfi", "-i", PICTURE, "-c:v", "libx264", "-g", "50", "-crf", "10"],
        ...args,
      );
    const keys = (...params: string[]) => ["-x264-params", ["scenecut=0", ...params].join(":")];
    const check = async (
      path: string,
      startMs: number,
      durationMs: number,
      ...rest: [number, boolean, object?]
    ) => {
      const [frames, isCopy, options = {}] = rest;
      bench.jobs.length = 0;
      const clip = await bench.clip(path, { startMs, durationMs, ...options });
      const what = `${path} from ${startMs} ms, ${durationMs} ms`;
      // A window that cannot be copied is not tried first, which would take as long as listing packets for
      // many windows.
      const started = bench.jobs.filter((kind) => kind.endsWith("_clip"));
      deepEqual(started, [isCopy ? "copy_clip" : "encode_clip"], what);
      const { signals } = await bench.signals(bench.folder.file("clip.mp4", clip.bytes));
      equal(signals.count, frames, what);
      const first = Math.round(startMs / 40);
      for (let frame = 0; frame < frames; frame++) {
        ok(Math.abs(signals.lumaMean[frame]! * 255 - 20 - first - frame) < 0.5, `${what}: frame ${frame}`);
        ok(Math.abs(signals.ptsMs[frame]! - frame * 40) < 2, `${what}: time of frame ${frame}`);
      }
    };
    const plain = source("plain.mp4", "-bf", "0", ...keys());
    await check(plain, 0, 60_000, 200, true);
    await check(plain, 2000, 1000, 25, true);
    await check(plain, 1999.6, 1000, 25, true);
    await check(plain, 2000, 240, 6, true);
    await check(plain, 2040, 1000, 25, false);
    const coordinates = croppedFrame({ width: 160, height: 120 }, { x: 0, y: 0, width: 0.5, height: 0.5 });
    const half = await bench.clip(plain, { startMs: 2000, durationMs: 1000, coordinates });
    equal(probed(bench.folder.file("half.mp4", half.bytes)).streams[0]!.width, 80);
    // Frames out of order: a group of pictures can be copied as a whole, also several, but none may be cut
    // off inside.
    for (const name of ["moved.mp4", "moved.mkv", "coarse.mp4"]) {
      const timescale = name === "coarse.mp4" ? ["-video_track_timescale", "25"] : [];
      const moved = source(name, "-bf", "3", ...keys("b-adapt=0", "open-gop=0"), ...timescale);
      await check(moved, 2000, 4000, 100, true);
      await check(moved, 2040, 1960, 49, false);
      if (name !== "moved.mp4") continue;
      await check(moved, 0, 2000, 50, true);
      await check(moved, 6000, 60_000, 50, true);
      await check(moved, 2000, 1040, 26, false);
      await check(moved, 4000, 2080, 52, false);
    }
    // Frames before a key frame may come after it in the order of decoding.
    const open = source("open.mp4", "-bf", "3", ...keys("b-adapt=0", "open-gop=1"));
    await check(open, 2000, 2000, 50, false);
    // The start of the source is cut off by an edit list, within a group of pictures.
    const edited = make(bench.path("edited.mp4"), "-ss", "1", "-i", plain, "-c", "copy", "-map", "0:v");
    const { signals } = await bench.signals(edited);
    equal(signals.count, 175);
    bench.jobs.length = 0;
    const clip = await bench.clip(edited, { startMs: 0, durationMs: 1000 });
    deepEqual(bench.jobs.filter((kind) => kind.endsWith("_clip")), ["encode_clip"]);
    equal((await bench.signals(bench.folder.file("clip.mp4", clip.bytes))).signals.count, 25);
  },
);

Deno.test("packets are listed once for many windows of a source", LONG_TEST, async () => {
  await using bench = ExtractorBench.open();
  const source = make(
    bench.path("long.mp4"),
    ...["-f", "lavfi", "-i", "testsrc=s=160x120:r=10:d=150", "-c:v", "libx264", "-preset", "ultrafast"],
    ...["-pix_fmt", "yuv420p", "-g", "20", "-bf", "0"],
  );
  const info = await bench.probe(source);
  for (let startMs = 0; startMs < 150_000; startMs += 10_000) {
    await bench.clip(source, { info, startMs, durationMs: 2000 });
  }
  const count = (kind: string) => bench.jobs.filter((started) => started === kind).length;
  deepEqual([count("copy_clip"), count("encode_clip"), count("list_packets")], [15, 0, 3]);
});

Deno.test("a failed extraction gives its reason and leaves nothing behind", async () => {
  await using bench = ExtractorBench.open({ clipBytesMax: 20_000 });
  const source = makeTimed(bench.path("plain.mp4"));
  const info = await bench.probe(source);
  const noisy = make(
    bench.path("noise.mp4"),
    ...[
      "-f",
      "lavfi",
      "-i",
      "color=gray:s=640x480:r=25:d=2,noise=alls=90:allf=t",
      "-c:v",
      "mpeg4",
      "-q:v",
      "4",
    ],
  );
  await failsWith("too_large", bench.clip(noisy, {}));
  bench.checkNothingLeft();
  const mute = { ...info, audioStreams: 0 };
  await failsWith("no_audio", bench.wav(source, mute, 0, 100));
  await failsWith("no_audio", bench.clip(source, { info: mute, withAudio: true }));
  await failsWith(
    "no_video",
    bench.clip(source, { info: { ...info, video: null }, coordinates: fullFrame(2, 2) }),
  );
  const endless = { ...info, durationMs: null };
  await failsWith("not_seekable", bench.clip(rtspInput("rtsp://127.0.0.1:1/x"), { info: endless }));
  await failsWith("not_seekable", bench.clip(hlsInput("http://127.0.0.1:1/x.m3u8"), { info: endless }));
  await failsWith("ffmpeg_failed", bench.clip(hlsInput("http://127.0.0.1:1/x.m3u8"), { info: { ...info } }));
  const text = bench.folder.file("text.mp4", "not a video any more");
  await failsWith("ffmpeg_failed", bench.clip(text, { info: { ...info } }));
  await failsWith("ffmpeg_failed", bench.wav(text, { ...info }, 0, 100));
  const cut = bench.folder.file("cut.mkv");
  make(cut, "-i", source, "-c", "copy");
  const cutInfo = await bench.probe(cut);
  Deno.truncateSync(cut, Deno.statSync(cut).size / 3);
  await failsWith("ffmpeg_failed", bench.wav(bench.path("gone.mp4"), { ...info }, 0, 100));
  const kept = await bench.clip(cut, { info: cutInfo, durationMs: 500 });
  ok(kept.bytes.length > 1000, "what is there before the damage can still be cut");
  matches(await bench.metrics.text(), /service_pipeline_media_clip_extraction_failures_total 7\b/);
  const windows = /^service_pipeline_local_audio_failures_total\{reason="decode"\} (\d+)$/m;
  equal(windows.exec(await bench.metrics.text())?.[1], "3");
  matches(await bench.metrics.text(), /service_pipeline_local_audio_analysis_failures_total 3\b/);
});

/** An extractor whose ffmpeg logs its start and then reads in real time. */
async function hanging(changed: { world?: World; maxConcurrent?: number } = {}) {
  const scripts = new TempFolder();
  const started = join(scripts.path, "started");
  const ffmpeg = scripts.script(
    "ffmpeg",
    `case "$*" in *framecrc*) ;; *) echo >> ${started}; exec ${tools().ffmpeg} -re "$@";; esac
    exec ${tools().ffmpeg} "$@"`,
  );
  const bench = ExtractorBench.open({ ...changed, tools: { ffmpeg, prlimit: null } });
  const source = make(
    bench.path("long.mp4"),
    ...["-f", "lavfi", "-i", "testsrc2=s=64x48:r=25:d=60", "-f", "lavfi", "-i", "sine=d=60", "-c:v", "mpeg4"],
  );
  const info = await bench.probe(source);
  return {
    bench,
    starts: () => scripts.names().includes("started") ? Deno.statSync(started).size : 0,
    begin: (signal: AbortSignal) => bench.clip(source, { info, durationMs: 59_000, signal }),
    [Symbol.asyncDispose]: async () => {
      await bench[Symbol.asyncDispose]();
      scripts[Symbol.dispose]();
    },
  };
}

Deno.test("a signal ends an extraction, or its wait, and the next waiting one starts", async () => {
  await using hung = await hanging({ maxConcurrent: 1 });
  const [first, second, third] = [new AbortController(), new AbortController(), new AbortController()];
  const running = hung.begin(first.signal);
  await until(() => hung.starts() === 1);
  await until(() => [...Deno.readDirSync(hung.bench.tempDir)].length === 1);
  const waiting = hung.begin(second.signal);
  const behind = hung.begin(third.signal);
  second.abort(new Error("the second left the queue"));
  await rejects(waiting, /the second left the queue/);
  equal(hung.starts(), 1);
  first.abort(new Error("the first gave up"));
  await rejects(running, /the first gave up/);
  await until(() => hung.starts() === 2);
  third.abort(new Error("the third gave up"));
  await rejects(behind, /the third gave up/);
  hung.bench.checkNothingLeft();
  matches(await hung.bench.metrics.text(), /clip_extraction_failures_total 0\b/);
});

Deno.test("an extraction that takes too long fails, and closing stops running and waiting ones", async () => {
  const stepped = steppedWorld();
  await using hung = await hanging({ world: stepped, maxConcurrent: 1 });
  const late = hung.begin(NEVER);
  await until(() => hung.starts() === 1);
  stepped.elapse();
  await failsWith("out_of_time", late);
  hung.bench.checkNothingLeft();
  const running = hung.begin(NEVER);
  await until(() => hung.starts() === 2);
  const both = [failsWith("saturated", running), failsWith("saturated", hung.begin(NEVER))];
  await hung.bench.extractor[Symbol.asyncDispose]();
  await Promise.all(both);
  await failsWith("saturated", hung.begin(NEVER));
  hung.bench.checkNothingLeft();
});

Deno.test("extracting at the end of a long file reads no more of it than at its start", async () => {
  using scripts = new TempFolder();
  const log = join(scripts.path, "log");
  // ffmpeg logs at its end how much it has read.
  const ffmpeg = scripts.script(
    "ffmpeg",
    `for word; do [ "$word" = error ] && word=verbose; set -- "$@" "$word"; shift; done
    exec ${tools().ffmpeg} "$@" 2>> ${log}`,
  );
  await using bench = ExtractorBench.open({ tools: { ffmpeg, prlimit: null } });
  const source = make(
    bench.path("long.mp4"),
    ...["-f", "lavfi", "-i", "testsrc2=s=160x120:r=25:d=300", "-f", "lavfi", "-i", "sine=d=300"],
    ...["-c:v", "libx264", "-preset", "ultrafast", "-g", "50", "-c:a", "aac"],
  );
  const info = await bench.probe(source);
  const bytesRead = async (work: Promise<unknown>) => {
    await work;
    const all = [...Deno.readTextFileSync(log).matchAll(/Total: \d+ packets \((\d+) bytes\) demuxed/g)];
    Deno.truncateSync(log);
    return Number(all.at(-1)![1]);
  };
  const whole = Deno.statSync(source).size;
  for (const startMs of [0, 3000, 150_000, 290_000]) {
    const ofClip = await bytesRead(bench.clip(source, { info, startMs, durationMs: 4000 }));
    const ofMute = await bytesRead(
      bench.clip(source, { info, startMs: startMs + 40, durationMs: 4000, withAudio: false }),
    );
    const ofWav = await bytesRead(bench.wav(source, info, startMs, 4000));
    ok(Math.max(ofClip, ofMute, ofWav) < whole / 20, `${ofClip}, ${ofMute}, ${ofWav} of ${whole} bytes`);
  }
});
