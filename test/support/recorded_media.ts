/** Shared by the tests of recorded media: requests, chunks and columns of decodes, and clips whose pictures
 * show their number.
 */

import { deepEqual, ok } from "node:assert/strict";
import { join } from "node:path";
import { joinedBytes } from "../../src/base/bytes.ts";
import { fileInput } from "../../src/media/input.ts";
import type { Decoder, DecodeRequest } from "../../src/media/files/decoder.ts";
import type { DecodedChunk, FrameStream } from "../../src/media/files/frame_stream.ts";
import { planSampling, type SamplingRequest } from "../../src/model/frames/sampling.ts";
import type { SignalColumns } from "../../src/model/frames/signals.ts";
import { childProcesses } from "./own_process.ts";
import { make, NEVER, probeOnce, type TempFolder, tools } from "./media.ts";

export type Column = Exclude<keyof SignalColumns, "count">;

/** What is measured of each frame for itself and beside the one before. */
export const MEASURED_COLUMNS = [
  "perceptualHash",
  "lumaMean",
  "flickerScore",
  "ghostingScore",
  "noiseVarianceScore",
] as const;

/** What every decode gives of each row. */
export const ROW_COLUMNS = ["ptsMs", ...MEASURED_COLUMNS, "cutScore"] as const;

/** A column of the rows of one decode that came in several parts. */
export function joinedColumn(parts: readonly { readonly signals: SignalColumns }[], column: Column) {
  return parts.flatMap(({ signals }): (number | bigint)[] => [...signals[column]!]);
}

/** A request for the file; every frame unless `sampling` says otherwise. */
export async function decodeRequest(
  decoder: Decoder,
  path: string,
  { sampling = {}, maxFrames = 500_000 }: { sampling?: SamplingRequest; maxFrames?: number } = {},
): Promise<DecodeRequest> {
  const info = await probeOnce(decoder, path);
  const plan = planSampling(sampling, info.video?.averageFps ?? null, "ingest");
  return { input: fileInput(path), info, plan, maxFrames, signal: NEVER };
}

/** The chunks that are left of the stream. */
export async function allChunks(frames: FrameStream): Promise<DecodedChunk[]> {
  const chunks: DecodedChunk[] = [];
  for (let chunk = await frames.next(); chunk; chunk = await frames.next()) chunks.push(chunk);
  return chunks;
}

/** Checks that no process with the folder in its command line is left, and no pipe. */
export function checkNothingLeft(folder: TempFolder): void {
  const temp = join(folder.path, "temp");
  deepEqual(childProcesses(temp), []);
  deepEqual([...Deno.readDirSync(temp)], []);
}

/** Levels by which each frame of a numbered clip is lighter than the one before. */
const STEP = 2;

/** A clip of uniform gray frames whose luma is their number, from `first` on, so that a JPEG shows it. */
export function makeNumbered(
  path: string,
  frames: number,
  args: readonly string[] = ["-c:v", "mpeg4", "-q:v", "2"],
  { first = 0, size = "64x48" } = {},
): string {
  const gray = `color=black:s=${size}:r=25,geq=lum='16+${STEP}*(N+${first})':cb=128:cr=128`;
  return make(path, "-f", "lavfi", "-i", gray, "-frames:v", String(frames), ...args);
}

/**
 * A numbered clip whose pictures become larger after `frames` frames: twice as many in all, or one less where
 * the parts meet.
 */
export function makeOfTwoSizes(folder: TempFolder, frames: number): string {
  const parts = ["64x48", "96x64"].map((size, part) => {
    const offset = ["-output_ts_offset", String(1 + part * frames / 25)];
    const args = ["-c:v", "mpeg2video", "-q:v", "1", "-f", "mpegts", ...offset];
    return makeNumbered(join(folder.path, `${size}.ts`), frames, args, { first: part * frames, size });
  });
  return folder.file("both.ts", joinedBytes(...parts.map((part) => Deno.readFileSync(part))));
}

/** The number of a frame of a numbered clip, by its signal. */
export function numberOf(lumaMean: number | bigint): number {
  return Math.round((Number(lumaMean) * 255 - 16) / STEP);
}

/** The numbers that JPEGs of a numbered clip show, all of one size. */
export function shownNumbers(folder: TempFolder, jpegs: readonly Uint8Array[]): number[] {
  return meansOf(folder, jpegs).map((mean) => Math.round(mean * 219 / 255 / STEP));
}

/** Decodes JPEGs, all of one size, with ffmpeg: their mean luma. */
export function meansOf(folder: TempFolder, jpegs: readonly Uint8Array[]): number[] {
  if (jpegs.length === 0) return [];
  const { stdout, success } = new Deno.Command(tools().ffmpeg, {
    args: [
      ...["-v", "error", "-f", "mjpeg", "-i", jpegFile(folder, jpegs)],
      ...[
        "-vf",
        "crop=32:32,extractplanes=y,scale=1:1:flags=area:in_range=full:out_range=full",
        "-f",
        "rawvideo",
        "-",
      ],
    ],
  }).outputSync();
  ok(success && stdout.length === jpegs.length, `${stdout.length} of ${jpegs.length} JPEGs can be read`);
  return [...stdout];
}

/** The JPEGs one behind the other in a file of the folder. */
export function jpegFile(folder: TempFolder, jpegs: readonly Uint8Array[]): string {
  const path = folder.file("pictures.mjpeg");
  using file = Deno.openSync(path, { write: true });
  for (const jpeg of jpegs) file.writeSync(jpeg);
  return path;
}
