/** Films with damaged bytes and lost packets: the frames that come out different are decode damage, and no
 * others.
 */

import { deepEqual, equal, ok } from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { joinedBytes } from "../../../src/base/bytes.ts";
import type { World } from "../../../src/base/world.ts";
import { fileInput } from "../../../src/media/input.ts";
import type { Decoder } from "../../../src/media/files/decoder.ts";
import type { DecodedChunk } from "../../../src/media/files/frame_stream.ts";
import { artifactKindOf } from "../../../src/model/frames/detected_range.ts";
import { ARTIFACT_SCORE_THRESHOLD, type SignalColumns } from "../../../src/model/frames/signals.ts";
import { cutOut, flipped, zeroed } from "../../support/damage.ts";
import {
  make,
  NEVER,
  openDecoder,
  packetsOf,
  probeOnce,
  TempFolder,
  tools,
  world,
} from "../../support/media.ts";

const FILM = fileURLToPath(new URL("../../../fixtures/clips/bbb120.mp4", import.meta.url));
const WIDTH = 214, HEIGHT = 120;
/** Mean difference of luma from which on a frame is damaged, and up to which it is whole. */
const DAMAGED = 1, WHOLE = 0.02;
const DAY_MS = 24 * 3_600_000;
const EVERY_FRAME = { policy: "source_fps_adaptive" as const, sampleFps: 60, sourceFps: 60 };

const CODECS = {
  "H.264 with frames in between": { extension: "mp4", args: ["-c:v", "libx264", "-bf", "2", "-g", "48"] },
  "H.264": { extension: "ts", args: ["-c:v", "libx264", "-preset", "veryfast", "-bf", "0", "-g", "48"] },
  "MPEG-4": { extension: "avi", args: ["-c:v", "mpeg4", "-q:v", "4", "-g", "48"] },
};
type Codec = keyof typeof CODECS;

for (const codec of Object.keys(CODECS) as Codec[]) {
  Deno.test(`${codec}: frames that are decoded from damaged bytes are found, the same ones each time`, async () => {
    using folder = new TempFolder();
    await using decoder = await openDecoder(folder);
    const whole = encoded(folder, codec);
    const bytes = Deno.readFileSync(whole);
    for (const packet of [30, 31, 90, 151]) {
      const { pos, size } = packetsOf(whole)[packet]!;
      for (let at = pos + 48; at < pos + size; at += 23) bytes[at] = bytes[at]! ^ 0x5a;
    }
    const damaged = folder.file(`damaged.${CODECS[codec].extension}`, bytes);
    const found = await damageIn(decoder, damaged);
    check(found, await differences(damaged, whole));
    equal((await damageIn(decoder, damaged)).join(), found.join());
    equal((await damageIn(decoder, whole)).filter(Boolean).length, 0);
  });
}

const THREADS = [1, 2, 4];
/** What is not silent of its damage, and how it is damaged. */
const DAMAGED_FILMS = {
  "H.264 with frames in between": ["mp4", "libx264 -bf 2 -g 48", [flipped(1)]],
  "H.264 of several slices": ["ts", "libx264 -bf 0 -g 48 -slices 4", [cutOut]],
  "H.264 in AVI": ["avi", "libx264 -bf 2 -g 48", [flipped(4)]],
  "raw H.264": ["h264", "libx264 -bf 2 -g 48", [flipped(5)]],
  HEVC: ["mp4", "libx265 -g 48 -x265-params log-level=error", [flipped(6)]],
  "MPEG-2": ["ts", "mpeg2video -q:v 4 -bf 2 -g 24", [flipped(7)]],
  "MPEG-4": ["avi", "mpeg4 -q:v 4 -bf 2 -g 48", [flipped(8), zeroed]],
} as const;

const COLUMNS = ["lumaMean", "perceptualHash", "cutScore", "artifactScore"] as const;

for (const [name, [extension, encoder, damages]] of Object.entries(DAMAGED_FILMS)) {
  Deno.test(`damaged ${name}: the rows are the same whatever the number of threads, whole or in chunks`, async () => {
    using folder = new TempFolder();
    const args = ["-ss", "2", "-t", "3", "-i", FILM, "-an", "-c:v", ...encoder.split(" ")];
    const whole = Deno.readFileSync(make(join(folder.path, `film.${extension}`), ...args));
    const real = tools().ffmpeg;
    for (const [i, damage] of damages.entries()) {
      const film = folder.file(`damaged${i}.${extension}`, damage(whole));
      const runs: SignalColumns[] = [];
      for (const threads of THREADS) {
        const ffmpeg = folder.script(`ffmpeg${threads}`, `exec ${real} -threads ${threads} "$@"`);
        await using decoder = await openDecoder(folder, { tools: { ffmpeg } });
        runs.push(await signalsOf(decoder, film), await chunksOf(decoder, film));
      }
      for (const run of runs) {
        for (const column of COLUMNS) deepEqual(run[column], runs[0]![column], column);
      }
    }
  });
}

Deno.test("a film that was cut and joined inside open groups of pictures is not damaged: all threads decode it, to the same rows", async () => {
  using folder = new TempFolder();
  const open = "keyint=50:min-keyint=50:scenecut=0:open-gop=1:b-pyramid=normal:ref=4";
  const film = make(
    join(folder.path, "film.ts"),
    ...["-t", "16", "-i", FILM, "-an", "-c:v", "libx264", "-preset", "veryfast", "-bf", "3"],
    ...["-x264-params", open],
  );
  const part = (name: string, fromS: string, lengthS: string) =>
    Deno.readFileSync(
      make(join(folder.path, name), "-ss", fromS, "-t", lengthS, "-i", film, "-c", "copy"),
    );
  const joined = folder.file(
    "joined.ts",
    joinedBytes(part("one.ts", "5.3", "6"), part("two.ts", "9.1", "5")),
  );
  const log = new Deno.Command(tools().ffmpeg, { args: ["-v", "error", "-i", joined, "-f", "null", "-"] });
  ok(new TextDecoder().decode(log.outputSync().stderr).includes("mmco: unref short failure"));
  const started = join(folder.path, "started");
  const runs: SignalColumns[] = [];
  for (const threads of THREADS) {
    const script = `echo >> ${started}; exec ${tools().ffmpeg} -threads ${threads} "$@"`;
    const ffmpeg = folder.script(`ffmpeg${threads}`, script);
    await using decoder = await openDecoder(folder, { tools: { ffmpeg, prlimit: null } });
    runs.push(await signalsOf(decoder, joined));
  }
  equal(Deno.statSync(started).size, THREADS.length);
  for (const run of runs) for (const column of COLUMNS) deepEqual(run[column], runs[0]![column], column);
});

Deno.test("one thread has all of the time of a decode, however long the threads before it took", async () => {
  using folder = new TempFolder();
  const film = folder.file("damaged.ts", cutOut(Deno.readFileSync(encoded(folder, "H.264"))));
  const started = join(folder.path, "started");
  const ffmpeg = folder.script("ffmpeg", `echo >> ${started}; exec ${tools().ffmpeg} "$@"`);
  const starts = () => folder.names().includes("started") ? Deno.statSync(started).size : 0;
  const real = world();
  const late: World = { ...real, monotonicMs: () => real.monotonicMs() + (starts() > 0 ? DAY_MS : 0) };
  await using decoder = await openDecoder(folder, { tools: { ffmpeg, prlimit: null }, world: late });
  ok((await damageIn(decoder, film)).some(Boolean));
  equal(starts(), 2);
});

Deno.test("H.264: frames that refer to lost ones are found, up to the next key frame", async () => {
  for (const codec of ["H.264", "H.264 with frames in between"] as const) {
    using folder = new TempFolder();
    await using decoder = await openDecoder(folder);
    const whole = encoded(folder, codec);
    const damaged = join(folder.path, `damaged.${CODECS[codec].extension}`);
    make(damaged, "-i", whole, "-c", "copy", "-bsf:v", "noise=drop='between(n,30,32)+between(n,152,154)'");
    check(await damageIn(decoder, damaged), await differences(damaged, whole));
  }
});

for (const [codec, extension] of [["mpeg4", "mp4"], ["mpeg2video", "ts"], ["libvpx", "webm"]] as const) {
  Deno.test(`${codec}, of whose losses nothing is said: frames that were made of lost ones are found in part`, async () => {
    using folder = new TempFolder();
    await using decoder = await openDecoder(folder);
    // A negative speed is kept to; else the film depends on how busy the machine is that makes it.
    const bits = codec === "libvpx"
      ? ["-b:v", "400k", "-deadline", "realtime", "-cpu-used", "-6"]
      : ["-q:v", "4", "-bf", "1"];
    const args = ["-ss", "2", "-t", "8", "-i", FILM, "-an", "-c:v", codec, ...bits, "-g", "48"];
    const whole = make(join(folder.path, `whole.${extension}`), ...args);
    const damaged = join(folder.path, `damaged.${extension}`);
    make(damaged, "-i", whole, "-c", "copy", "-bsf:v", "noise=drop='between(n,31,33)+between(n,151,153)'");
    check(await damageIn(decoder, damaged), await differences(damaged, whole), 0.75);
  });
}

Deno.test("frames between others, of which nothing is made, may be lost", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  for (const [codec, key] of [["libx264", 48], ["mpeg2video", 12]] as const) {
    const args = [
      "-t",
      "8",
      "-i",
      FILM,
      "-an",
      "-c:v",
      codec,
      "-bf",
      "1",
      "-g",
      `${key}`,
      "-sc_threshold",
      "0",
    ];
    const whole = make(join(folder.path, "whole.ts"), ...args);
    const damaged = join(folder.path, "damaged.ts");
    // Packets are P, B, P, B, ...
    make(damaged, "-i", whole, "-c", "copy", "-bsf:v", "noise=drop='eq(n,32)+eq(n,102)'");
    equal((await damageIn(decoder, damaged)).filter(Boolean).length, 0);
  }
});

Deno.test("a film that skips frames is whole", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  for (const codec of ["libx264", "mpeg4"]) {
    for (const left of ["lt(mod(n*n*7,31),24)", "mod(n,50)", "gte(mod(n,90),2)"]) {
      const path = join(folder.path, `${codec}.mp4`);
      const select = ["-vf", `select='${left}'`, "-fps_mode", "vfr"];
      make(path, "-t", "8", "-i", FILM, "-an", ...select, "-c:v", codec, "-g", "48");
      equal((await damageIn(decoder, path)).filter(Boolean).length, 0, `${codec} ${left}`);
    }
  }
});

Deno.test("an ffmpeg that says nothing of its frames, or floods its log, decodes as well", async () => {
  using folder = new TempFolder();
  const path = make(join(folder.path, "film.mp4"), "-t", "2", "-i", FILM, "-an", "-c:v", "mpeg4");
  const real = tools().ffmpeg;
  const silent = folder.script("silent", `exec ${real} "$@" 2>/dev/null`);
  const flooding = folder.script(
    "flooding",
    `yes '[h264 @ 0x1] [error] error while decoding MB 3 4, bytestream -5' | head -c 50000000 >&2\nexec ${real} "$@"`,
  );
  for (const ffmpeg of [silent, flooding]) {
    await using decoder = await openDecoder(folder, { tools: { ffmpeg } });
    const frames = await damageIn(decoder, path);
    equal(frames.length, 48);
    equal(frames.filter(Boolean).length, 0);
  }
});

/** Which frames are decode damage. */
async function damageIn(decoder: Decoder, path: string): Promise<boolean[]> {
  const signals = await signalsOf(decoder, path);
  return Array.from(
    signals.artifactScore!,
    (score, frame) =>
      score >= ARTIFACT_SCORE_THRESHOLD && artifactKindOf(signals.artifactKind![frame]) === "decode_damage",
  );
}

async function signalsOf(decoder: Decoder, path: string): Promise<SignalColumns> {
  const info = await probeOnce(decoder, path);
  const { signals } = await decoder.decodeSignals({
    ...{ input: fileInput(path), info, plan: EVERY_FRAME, maxFrames: 10_000, signal: NEVER },
  });
  return signals;
}

/** The rows of all chunks of a stream. */
async function chunksOf(decoder: Decoder, path: string): Promise<SignalColumns> {
  const info = await probeOnce(decoder, path);
  await using stream = await decoder.streamFrames({
    ...{ input: fileInput(path), info, plan: EVERY_FRAME, maxFrames: 10_000, signal: NEVER },
    ...{ chunks: { by: "count", size: 48 }, images: { perChunk: 2, maxEdge: 128 } },
  });
  const chunks: DecodedChunk[] = [];
  for (let chunk = await stream.next(); chunk; chunk = await stream.next()) {
    chunks.push(chunk);
    equal(chunk.images.length, Math.min(2, chunk.signals.count));
  }
  const joined = (column: "lumaMean" | "cutScore" | "artifactScore") =>
    Float32Array.from(chunks.flatMap(({ signals }) => [...signals[column]!]));
  return {
    ...chunks[0]!.signals,
    ...{ lumaMean: joined("lumaMean"), cutScore: joined("cutScore"), artifactScore: joined("artifactScore") },
    perceptualHash: BigUint64Array.from(chunks.flatMap(({ signals }) => [...signals.perceptualHash])),
  };
}

/**
 * Nine of ten frames that were found are damaged, and at most the share `missing` of the damaged ones was not
 * found.
 */
function check(found: readonly boolean[], differences: readonly number[], missing = 0.1): void {
  equal(found.length, differences.length);
  const count = (holds: (frame: number) => boolean) => differences.filter((_, frame) => holds(frame)).length;
  const damaged = count((frame) => differences[frame]! > DAMAGED);
  ok(damaged >= 20, `${damaged} frames are damaged`);
  const missed = count((frame) => differences[frame]! > DAMAGED && !found[frame]);
  ok(missed <= missing * damaged, `${missed} of ${damaged} damaged frames are missed`);
  const invented = count((frame) => differences[frame]! <= WHOLE && found[frame]!);
  ok(invented <= 0.1 * damaged, `${invented} whole frames are called damaged`);
}

function encoded(folder: TempFolder, codec: Codec): string {
  const { extension, args } = CODECS[codec];
  return make(join(folder.path, `whole.${extension}`), "-ss", "2", "-t", "8", "-i", FILM, "-an", ...args);
}

/** For each frame how much it differs from the frame of the same time in the whole film. */
async function differences(damaged: string, whole: string): Promise<number[]> {
  const [film, frames] = await Promise.all([lumaOf(whole), lumaOf(damaged)]);
  return frames.map(({ timeS, luma }) => {
    const { luma: right } = film.reduce((a, b) =>
      Math.abs(a.timeS - timeS) <= Math.abs(b.timeS - timeS) ? a : b
    );
    return luma.reduce((sum, sample, i) => sum + Math.abs(sample - right[i]!), 0) / luma.length;
  });
}

async function lumaOf(path: string): Promise<{ timeS: number; luma: Uint8Array }[]> {
  const filter = "showinfo=checksum=0,extractplanes=y";
  const { stdout, stderr } = await new Deno.Command(tools().ffmpeg, {
    args: [
      ...["-v", "info", "-nostats", "-i", path, "-vf", filter, "-fps_mode", "passthrough"],
      ...["-f", "rawvideo", "pipe:1"],
    ],
  }).output();
  const times = new TextDecoder().decode(stderr).matchAll(/showinfo.* n: *\d+ pts: *\S+ pts_time:(\S+)/g);
  return Array.from(times, ([, time], frame) => ({
    timeS: Number(time),
    luma: stdout.subarray(frame * WIDTH * HEIGHT, (frame + 1) * WIDTH * HEIGHT),
  }));
}
