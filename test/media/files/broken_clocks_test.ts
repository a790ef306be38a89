/** Films whose clocks are broken, in every container that has a clock: frame by frame as a plain decode gives
 * them.
 */

import { deepEqual, ok } from "node:assert/strict";
import { join } from "node:path";
import { clockFalls } from "../../../src/media/containers/clock_falls.ts";
import { mp4Faults } from "../../../src/media/containers/mp4_times.ts";
import { Extractor } from "../../../src/media/files/extractor.ts";
import type { DecodedChunk } from "../../../src/media/files/frame_stream.ts";
import { chosenPositions } from "../../../src/model/reason/chunks.ts";
import {
  BROKEN_FRAMES,
  CLOCKS,
  FRAME_MS,
  makeBroken,
  makeWithTables,
  TABLES,
} from "../../support/broken_clocks.ts";
import { localRunner } from "../../support/local_runner.ts";
import { LONG_TEST } from "../../support/long_tests.ts";
import { make, NEVER, openDecoder, TempFolder, tools, world } from "../../support/media.ts";
import { decodeRequest, joinedColumn, numberOf, shownNumbers } from "../../support/recorded_media.ts";

/** ffmpeg's names of those whose clocks are looked at. */
const FORMATS: Readonly<Record<string, string>> = {
  mkv: "matroska,webm",
  mp4: "mov,mp4",
  ts: "mpegts",
  flv: "flv",
  nut: "nut",
};

/** Containers that have clocks. */
const CONTAINERS = ["mkv", "nut", "flv", "mp4", "ts", "mpg"];

const CHUNK = 16;
const PICTURES = 3;
/** Chunks of which a clip is cut, and how long it is. */
const CLIPS = [1, 3];
const CLIP_MS = 400;
/** A frame whose time is lost is put between its neighbours. */
const TOLERANCE_MS = 6;

for (const container of CONTAINERS) {
  Deno.test({
    name: `frames, pictures and clips of ${container} are right, whatever its clock does`,
    ...LONG_TEST,
    fn: async () => {
      const faults: string[] = [];
      for (const [name, clock] of Object.entries(CLOCKS)) {
        using folder = new TempFolder();
        try {
          await check(folder, makeBroken(folder, container, clock));
        } catch (error) {
          faults.push(`${name}: ${error instanceof Error ? error.message : error}`);
        }
      }
      deepEqual(faults, []);
    },
  });
}

for (const isReordered of [false, true]) {
  const order = isReordered ? "in another order" : "in their order";
  Deno.test({
    name: `frames, pictures and clips of mp4 coded ${order} are right, whatever its tables say`,
    ...LONG_TEST,
    fn: async () => {
      const faults: string[] = [];
      for (const [name, tables] of Object.entries(TABLES)) {
        using folder = new TempFolder();
        try {
          await check(folder, makeWithTables(folder, tables, { isReordered }));
        } catch (error) {
          faults.push(`${name}: ${error instanceof Error ? error.message : error}`);
        }
      }
      deepEqual(faults, []);
    },
  });
}

Deno.test("a file tells that its clock falls, and reordered frames are no fall", async () => {
  for (const container of Object.keys(FORMATS)) {
    using folder = new TempFolder();
    for (const [name, isFalling] of [["right", false], ["one time is 100 s late", true]] as const) {
      const path = makeBroken(folder, container, CLOCKS[name] ?? ((_, t) => t), { isReordered: true });
      deepEqual(await clockFalls(path, FORMATS[container]!, 0), isFalling, `${container}: ${name}`);
    }
  }
});

Deno.test("frames that an edit list hides by mistake are shown, and those that it cuts off are not", async () => {
  using folder = new TempFolder();
  const film = makeBroken(folder, "mp4", (_, t) => t, { isReordered: true });
  deepEqual((await mp4Faults(film, 0)).hidesByMistake, false);
  const begun = make(join(folder.path, "cut.mp4"), "-ss", "1.2", "-i", film, "-c", "copy");
  deepEqual((await mp4Faults(begun, 0)).hidesByMistake, false);
  const broken = makeBroken(folder, "mp4", CLOCKS["the clock begins anew"]!, { isReordered: true });
  deepEqual((await mp4Faults(broken, 0)).hidesByMistake, true);
});

async function check(folder: TempFolder, path: string): Promise<void> {
  await using decoder = await openDecoder(folder);
  await using extractor = new Extractor({
    ...{ runner: localRunner(tools()), tempDir: join(folder.path, "temp"), world: world(), maxConcurrent: 1 },
  });
  // Where nothing says the rate, frames are taken by this one: more than the film has.
  const request = await decodeRequest(decoder, path, { sampling: { sampleFps: 120 } });
  await using frames = await decoder.streamFrames({
    ...request,
    chunks: { by: "count", size: CHUNK },
    images: { perChunk: PICTURES, maxEdge: null },
  });
  const chunks: DecodedChunk[] = [];
  for (let chunk = await frames.next(); chunk; chunk = await frames.next()) {
    chunks.push(chunk);
    if (!CLIPS.includes(chunk.index)) continue;
    const { bytes } = await extractor.clip({
      ...{ input: request.input, info: request.info, clock: frames.clock, coordinates: frames.coordinates },
      ...{ startMs: chunk.signals.ptsMs[0]!, durationMs: CLIP_MS, withAudio: false, signal: NEVER },
    });
    const shown = numbersIn(folder, bytes);
    const expected = Array.from({ length: CLIP_MS / FRAME_MS }, (_, i) => chunk.firstFrame + i);
    deepEqual(shown, expected, `the clip of chunk ${chunk.index}`);
  }
  const numbers = joinedColumn(chunks, "lumaMean").map(numberOf);
  deepEqual(numbers, Array.from({ length: BROKEN_FRAMES }, (_, k) => k), "rows");
  const times = joinedColumn(chunks, "ptsMs").map(Number);
  const wrong = times.findIndex((time, k) => Math.abs(time - k * FRAME_MS) > TOLERANCE_MS);
  ok(wrong === -1, `frame ${wrong} is at ${times[wrong]} ms`);
  const images = chunks.flatMap((chunk) => chunk.images);
  const chosen = chunks.flatMap(({ firstFrame, signals }) =>
    chosenPositions(signals.count, PICTURES).map((position) => firstFrame + position)
  );
  deepEqual(images.map(({ frameIndex }) => frameIndex), chosen, "chosen pictures");
  deepEqual(shownNumbers(folder, images.map(({ jpeg }) => jpeg)), chosen, "what the pictures show");
}

/** The numbers that the frames of a clip show. */
function numbersIn(folder: TempFolder, clip: Uint8Array): number[] {
  const path = folder.file("clip.mp4", clip);
  const { stdout } = new Deno.Command(tools().ffmpeg, {
    args: [
      ...["-v", "error", "-nostdin", "-i", path, "-fps_mode", "passthrough"],
      ...["-vf", "extractplanes=y,crop=1:1", "-f", "rawvideo", "-pix_fmt", "gray", "-"],
    ],
  }).outputSync();
  return [...stdout].map((luma) => Math.round((luma - 16) / 2));
}
