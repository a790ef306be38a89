import { deepEqual, equal, ok } from "node:assert/strict";
import { join } from "node:path";
import type { DecodedSignals, Decoder } from "../../../src/media/files/decoder.ts";
import type { DecodedChunk, FrameStreamRequest } from "../../../src/media/files/frame_stream.ts";
import { chosenPositions } from "../../../src/model/reason/chunks.ts";
import { make, openDecoder, TempFolder, tools } from "../../support/media.ts";
import {
  allChunks,
  checkNothingLeft,
  decodeRequest,
  joinedColumn,
  makeNumbered,
  makeOfTwoSizes,
  MEASURED_COLUMNS,
  numberOf,
  ROW_COLUMNS,
  shownNumbers,
} from "../../support/recorded_media.ts";

interface Sampling {
  /** Frames a second; absent for every frame. */
  readonly fps?: number;
  readonly maxFrames?: number;
}

function requestOf(decoder: Decoder, path: string, { fps, maxFrames }: Sampling) {
  const sampling = fps === undefined ? {} : { policy: "fixed", fixedFps: fps };
  return decodeRequest(decoder, path, { sampling, maxFrames });
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
  return { chunks: await allChunks(stream), isTruncated: stream.isTruncated };
}

/** The rows of a decode are the same, whether they come at once or in chunks. */
function checkSameRows(chunks: readonly DecodedChunk[], whole: DecodedSignals, what: string): void {
  for (const column of [...ROW_COLUMNS, "cutPtsMs"] as const) {
    deepEqual(joinedColumn(chunks, column), joinedColumn([whole], column), `${what}, ${column}`);
  }
}

/**
 * Pictures of three kinds, 25 frames a second; the second begins at 2.36 s, the third at 6.52 s; 9.48 s in
 * all.
 */
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
    const whole = await decode(decoder, path, { fps });
    const { signals, isTruncated } = whole;
    deepEqual([...signals.ptsMs].map(Math.round), rowsMs);
    equal(isTruncated, false);
    signals.cutPtsMs!.forEach((ms, row) => {
      const expected = cuts[row];
      equal(Math.round(ms), expected ?? NaN, `row ${row}`);
      if (expected !== undefined) equal(signals.cutScore![row], score(Math.round(expected / 40)));
      else ok(signals.cutScore![row]! < 0.5);
    });
    for (const chunks of [{ by: "count", size: 3 }, { by: "window", windowMs: 2500 }] as const) {
      const streamed = await chunksOf(decoder, path, { fps, chunks });
      checkSameRows(streamed.chunks, whole, `${fps} fps`);
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
  for (const column of ["ptsMs", ...MEASURED_COLUMNS] as const) {
    deepEqual([...signals[column]], [...alone[column]], column);
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
    equal(streamed.isTruncated, isTruncated);
    checkSameRows(streamed.chunks, decoded, `${maxFrames} frames`);
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
  checkNothingLeft(folder);
});

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
        const numbers = joinedColumn(chunks, "lumaMean").map(numberOf);
        deepEqual(
          chunks.map(({ images }) => images.length),
          chunks.map(({ signals }) => chosenPositions(signals.count, perChunk).length),
        );
        const pictures = chunks.flatMap(({ images }) => images);
        deepEqual(
          shownNumbers(folder, pictures.map(({ jpeg }) => jpeg)),
          pictures.map(({ frameIndex }) => numbers[frameIndex]),
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
  await check(makeOfTwoSizes(folder, 52), 4, { decodes: 100 });
});
