import { deepEqual, equal, ok } from "node:assert/strict";
import { join } from "node:path";
import { planSampling } from "../../../src/model/frames/sampling.ts";
import type { SignalColumns } from "../../../src/model/frames/signals.ts";
import { fileInput } from "../../../src/media/input.ts";
import { type DecodedSignals, Decoder } from "../../../src/media/recorded/decoder.ts";
import type { DecodedChunk, FrameStreamRequest } from "../../../src/media/recorded/frame_stream.ts";
import { chosenPositions } from "../../../src/model/reason/chunks.ts";
import { childProcesses } from "../../support/own_process.ts";
import { make, NEVER, openDecoder, probeOnce, TempFolder, tools } from "../../support/media.ts";

interface Sampling {
  /** Absent: every frame. */
  readonly fps?: number;
  readonly maxFrames?: number;
}

async function requestOf(decoder: Decoder, path: string, { fps, maxFrames = 500_000 }: Sampling) {
  const info = await probeOnce(decoder, path);
  const sampling = fps === undefined ? {} : { policy: "fixed", fixedFps: fps };
  const plan = planSampling(sampling, info.video!.averageFps, "ingest");
  return { input: fileInput(path), info, plan, maxFrames, signal: NEVER };
}

async function decode(decoder: Decoder, path: string, sampling: Sampling = {}): Promise<DecodedSignals> {
  return await decoder.decodeSignals(await requestOf(decoder, path, sampling));
}

async function chunksOf(
  decoder: Decoder,
  path: string,
  { chunks, images, ...sampling }: Sampling & Pick<FrameStreamRequest, "chunks" | "images">,
): Promise<{ chunks: DecodedChunk[]; isTruncated: boolean }> {
  const request = await requestOf(decoder, path, sampling);
  await using stream = await decoder.streamFrames({ ...request, chunks, ...(images && { images }) });
  const all: DecodedChunk[] = [];
  for (let chunk = await stream.next(); chunk; chunk = await stream.next()) all.push(chunk);
  return { chunks: all, isTruncated: stream.isTruncated };
}

function column(signals: readonly SignalColumns[], name: Exclude<keyof SignalColumns, "count">) {
  return signals.flatMap((columns): (number | bigint)[] => [...columns[name]!]);
}

const ROW_COLUMNS = [
  "ptsMs",
  "perceptualHash",
  "lumaMean",
  "flickerScore",
  "ghostingScore",
  "noiseVarianceScore",
  "cutScore",
  "cutPtsMs",
] as const;

/** Pictures of three kinds, 25 frames a second; the second begins at 2.36 s, the third at 6.52 s; 9.48 s in all. */
function makeThreeShots(path: string, ...filters: string[]): string {
  const size = "s=320x180:r=25";
  const shots = [`testsrc2=${size}:d=2.36`, `smptehdbars=${size}:d=4.16`, `testsrc=${size}:d=2.96`];
  const joined = `${shots.map((_, i) => `[${i}]format=yuv420p,setsar=1[s${i}]`).join(";")};` +
    `${shots.map((_, i) => `[s${i}]`).join("")}concat=n=3${filters.map((filter) => `,${filter}`).join("")}`;
  return make(
    path,
    ...shots.flatMap((shot) => ["-f", "lavfi", "-i", shot]),
    ...["-filter_complex", joined, "-fps_mode", "passthrough", "-c:v", "ffv1"],
  );
}

Deno.test("a row tells of the cut since the row before, with its exact time, and none is lost at the end", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  const path = makeThreeShots(join(folder.path, "shots.mkv"));
  const full = (await decode(decoder, path)).signals;
  const score = (frame: number) => full.cutScore![frame]!;
  ok(score(59) >= 0.5 && score(163) >= 0.5, `${score(59)}, ${score(163)}`);
  deepEqual([...full.cutPtsMs!].flatMap((ms, frame) => Number.isNaN(ms) ? [] : [frame, Math.round(ms)]), [
    59,
    2360,
    163,
    6520,
  ]);
  const check = async (fps: number, rowsMs: number[], cuts: Record<number, number>) => {
    const { signals, isTruncated } = await decode(decoder, path, { fps });
    deepEqual([...signals.ptsMs].map(Math.round), rowsMs);
    equal(isTruncated, false);
    signals.cutPtsMs!.forEach((ms, row) => {
      const expected = cuts[row];
      equal(Math.round(ms), expected ?? NaN, `row ${row}`);
      if (expected !== undefined) equal(signals.cutScore![row], score(Math.round(expected / 40)));
      else ok(signals.cutScore![row]! < 0.5);
    });
    for (const chunks of [{ by: "count", size: 3 }, { by: "window", windowMs: 2500, endMs: null }] as const) {
      const streamed = await chunksOf(decoder, path, { fps, chunks });
      const all = streamed.chunks.map(({ signals }) => signals);
      for (const name of ROW_COLUMNS) {
        deepEqual(column(all, name), column([signals], name), `${fps} fps, ${name}`);
      }
      equal(streamed.isTruncated, false);
    }
  };
  await check(1, [0, 1000, 2000, 3000, 4000, 5000, 6000, 7000, 8000, 9000], { 3: 2360, 7: 6520 });
  await check(0.5, [0, 2000, 4000, 6000, 8000], { 2: 2360, 4: 6520 });
  // Nothing comes after the last row that could tell of the second cut.
  await check(0.3125, [0, 3200, 6400], { 1: 2360, 2: 6520 });
});

Deno.test("the signals of rows are those of a video that has only their frames", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  const path = makeThreeShots(join(folder.path, "shots.mkv"), "noise=alls=9:allf=t:all_seed=5");
  // One frame in five, which are those at 5 frames a second.
  const fifth = make(
    join(folder.path, "fifth.mkv"),
    ...["-i", path, "-vf", "select='not(mod(n,5))'", "-fps_mode", "passthrough", "-c:v", "ffv1"],
  );
  const { signals } = await decode(decoder, path, { fps: 5 });
  const alone = (await decode(decoder, fifth)).signals;
  equal(signals.count, 48);
  for (
    const name of [
      "ptsMs",
      "perceptualHash",
      "lumaMean",
      "flickerScore",
      "ghostingScore",
      "noiseVarianceScore",
    ] as const
  ) {
    deepEqual([...signals[name]], [...alone[name]], name);
  }
});

Deno.test("sampled rows are bounded, and ffmpeg ends when there are enough", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  const path = makeThreeShots(join(folder.path, "shots.mkv"));
  for (
    const [maxFrames, isTruncated] of [[1, true], [3, true], [9, true], [10, false], [11, false]] as const
  ) {
    const decoded = await decode(decoder, path, { fps: 1, maxFrames });
    deepEqual([decoded.signals.count, decoded.isTruncated], [Math.min(10, maxFrames), isTruncated]);
    const chunks = { by: "count", size: 4 } as const;
    const streamed = await chunksOf(decoder, path, { fps: 1, maxFrames, chunks });
    const all = streamed.chunks.map(({ signals }) => signals);
    equal(streamed.isTruncated, isTruncated);
    for (const name of ROW_COLUMNS) {
      deepEqual(
        column(all, name),
        column([decoded.signals], name),
        `${maxFrames}, ${name}`,
      );
    }
  }
  // A picture of an hour: decoding all of it would take minutes.
  const long = make(
    join(folder.path, "long.mkv"),
    "-f",
    "lavfi",
    "-i",
    "color=s=640x360:r=100:d=20",
    "-c:v",
    "ffv1",
  );
  const joined = folder.file("long.txt", `file '${long}'\n`.repeat(180));
  const hour = make(join(folder.path, "hour.mkv"), "-f", "concat", "-safe", "0", "-i", joined, "-c", "copy");
  const { signals, isTruncated } = await decode(decoder, hour, { fps: 1, maxFrames: 2 });
  deepEqual([signals.count, isTruncated], [2, true]);
  deepEqual(childProcesses(join(folder.path, "temp")), []);
  deepEqual([...Deno.readDirSync(join(folder.path, "temp"))], []);
});

/** Each frame is uniform gray, two levels lighter than the one before. */
function makeNumbered(
  path: string,
  frames: number,
  args: readonly string[],
  first = 0,
  size = "64x48",
): string {
  const gray = `color=black:s=${size}:r=25,geq=lum='16+2*(N+${first})':cb=128:cr=128`;
  return make(path, "-f", "lavfi", "-i", gray, "-frames:v", String(frames), ...args);
}

/** The numbers of the frames that JPEGs show. */
function shown(folder: TempFolder, jpegs: readonly Uint8Array[]): number[] {
  const path = folder.file("pictures.mjpeg");
  using file = Deno.openSync(path, { write: true });
  for (const jpeg of jpegs) file.writeSync(jpeg);
  const { stdout } = new Deno.Command(tools().ffmpeg, {
    args: [
      ...["-v", "error", "-f", "mjpeg", "-i", path],
      ...["-vf", "extractplanes=y,scale=1:1:flags=area:in_range=full:out_range=full", "-f", "rawvideo", "-"],
    ],
  }).outputSync();
  equal(stdout.length, jpegs.length);
  return [...stdout].map((mean) => Math.round(mean * 219 / 255 / 2));
}

Deno.test("each JPEG of sampled media shows the frame of its row, also at uneven rates", async (t) => {
  using folder = new TempFolder();
  const log = folder.file("log");
  const ffmpeg = folder.script("ffmpeg", `echo "$*" >> ${log}; exec ${tools().ffmpeg} "$@"`);
  await using decoder = await openDecoder(folder, { tools: { ffmpeg, prlimit: null } });
  const check = (path: string, fps: number, options: { maxFrames?: number; decodes?: number } = {}) =>
    t.step(`${path.split("/").at(-1)} at ${fps}`, async () => {
      const { decodes = 1, ...sampling } = options;
      for (const [size, perChunk] of [[3, 1], [5, 2], [7, 9]] as const) {
        Deno.writeTextFileSync(log, "");
        const images = { perChunk, maxEdge: null };
        const { chunks } = await chunksOf(decoder, path, {
          fps,
          ...sampling,
          chunks: { by: "count", size },
          images,
        });
        const luma = column(chunks.map(({ signals }) => signals), "lumaMean")
          .map((mean) => Math.round((Number(mean) * 255 - 16) / 2));
        deepEqual(
          chunks.map(({ images }) => images.length),
          chunks.map(({ signals }) => chosenPositions(signals.count, perChunk).length),
        );
        const pictures = chunks.flatMap(({ images }) => images);
        deepEqual(
          shown(folder, pictures.map(({ jpeg }) => jpeg)),
          pictures.map(({ frameIndex }) => luma[frameIndex]),
        );
        equal(
          Deno.readTextFileSync(log).trim().split("\n").length <= decodes,
          true,
          "no frame is decoded twice",
        );
      }
    });
  const mpeg4 = ["-c:v", "mpeg4", "-q:v", "2", "-bf", "2", "-g", "12"];
  const clip = makeNumbered(join(folder.path, "clip.mp4"), 100, mpeg4);
  await check(clip, 5);
  await check(clip, 7.5);
  await check(clip, 10, { maxFrames: 13 });
  const gaps = ["-vf", "select='gt(random(1),0.45)'", "-fps_mode", "passthrough", "-c:v", "ffv1"];
  await check(makeNumbered(join(folder.path, "gaps.mkv"), 50, gaps), 6);
  const uneven = ["-vf", "settb=1/1000,setpts='N*37+floor(random(2)*30)'", "-enc_time_base", "1:1000"];
  await check(
    makeNumbered(join(folder.path, "uneven.mkv"), 100, [
      ...uneven,
      "-fps_mode",
      "passthrough",
      "-c:v",
      "ffv1",
    ]),
    8,
  );
  // ffmpeg begins to count periods again where the size changes, the decode Worker does not.
  const parts = ["64x48", "96x64"].map((size, part) =>
    makeNumbered(
      join(folder.path, `${size}.ts`),
      52,
      ["-c:v", "mpeg2video", "-q:v", "1", "-f", "mpegts", "-output_ts_offset", String(1 + part * 52 / 25)],
      part * 52,
      size,
    )
  );
  const both = folder.file("both.ts", new Uint8Array(parts.flatMap((part) => [...Deno.readFileSync(part)])));
  await check(both, 4, { decodes: 100 });
});
