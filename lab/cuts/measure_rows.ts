/** Measures the candidates of labelled videos with the kernel of the service. */

import { FRAME_BYTES, PLANE_HEIGHT, PLANE_WIDTH } from "../../src/media/kernels/frame_planes.ts";
import {
  LINES_BYTES,
  STACKED_FRAME_BYTES,
  stackingFilters,
  unstack,
} from "../../src/media/kernels/picture_lines.ts";
import { reductionFilters } from "../../src/media/kernels/taken_lines.ts";
import { FrameReader } from "../edits/files/programs.ts";
import { tallyCuts } from "../scores/score.ts";
import type { CutTruth, Truth } from "../scores/truth.ts";
import { kindOf, type LabelledVideo, originsOf } from "../scores/videos.ts";
import type { DrawnVideo } from "./drawn_films.ts";
import { type FrameRow, KernelRows, kernelSum } from "./kernel_rows.ts";
import type { CutRows, Label, VideoRows } from "./rows.ts";

/** The candidates of the videos, and of drawn films after them. `say` gets a line for each. */
export async function measureRows(
  videos: readonly LabelledVideo[],
  say: (line: string) => void = console.log,
  drawn: Iterable<DrawnVideo> = [],
): Promise<CutRows> {
  const kernel = await KernelRows.load();
  const measured: Candidates[] = [];
  for await (const { truth, frames: pictures, times } of sourcesOf(videos, drawn)) {
    const candidates: FrameRow[] = [];
    const add = (candidate: FrameRow | null) => candidate && candidates.push(candidate);
    kernel.reset();
    for await (const frame of pictures) {
      add(kernel.push(frame, times[kernel.count] ?? kernel.count * 1000 / (truth.fps ?? 25)));
    }
    kernel.finish().forEach(add);
    measured.push({ truth, candidates });
    say(`${truth.name}: ${kernel.count} frames, ${candidates.length} candidates`);
  }
  return labelled(measured, kernel);
}

/** A video with its frames that may be cuts. */
export interface Candidates {
  readonly truth: Truth;
  readonly candidates: readonly FrameRow[];
}

/** The rows of all videos, each with what it should be, and what is shown before and after it. */
export function labelled(videos: readonly Candidates[], kernel: KernelRows): CutRows {
  const origins = new Map<string, number>();
  const measured = videos.map(({ truth, candidates }): VideoRows => {
    const frames = candidates.map(({ frame }) => frame);
    const originAt = originsOf(truth);
    const indexOf = (origin: string) => {
      if (!origins.has(origin)) origins.set(origin, origins.size);
      return origins.get(origin)!;
    };
    return {
      ...{ name: truth.name, kind: kindOf(truth), cuts: truth.cuts, frames },
      labels: frames.map((frame) => labelOf(truth, frame)),
      before: frames.map((frame) => indexOf(originAt(frame - 1))),
      after: frames.map((frame) => indexOf(originAt(frame))),
    };
  });
  const { width } = kernel;
  const rows = videos.flatMap(({ candidates }) => candidates.map(({ row }) => row));
  const values = new Uint8Array(rows.length * width);
  rows.forEach((row, at) => values.set(row, at * width));
  return { width, kernelSum: kernelSum(kernel), origins: [...origins.keys()], videos: measured, values };
}

interface Source {
  readonly truth: Truth;
  readonly frames: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
  /** Times of the frames, milliseconds; where there are none they follow from the rate. */
  readonly times: readonly number[];
}

/** The frames of labelled videos as the service reduces them, then those of drawn films. */
export async function* sourcesOf(
  videos: readonly LabelledVideo[],
  drawn: Iterable<DrawnVideo> = [],
): AsyncGenerator<Source> {
  for (const { path, truth } of videos) yield { truth, frames: framesOf(path), times: await timesOf(path) };
  for (const { truth, frames } of drawn) yield { truth, frames, times: [] };
}

/**
 * What a frame is by the truth. The frame after or before a cut is no cut, but so near that it need not be
 * told from one; see also `tallyCuts`.
 */
function labelOf(truth: CutTruth, frame: number): Label {
  if (truth.cuts.includes(frame)) return 1;
  const { hits, falseAlarms } = tallyCuts(truth, [frame]);
  return hits === 0 && falseAlarms.length > 0 ? 0 : 2;
}

/** Frames as the service reduces them, each in the same buffer; a file `<name>.yuv` has them already. */
export async function* framesOf(path: string): AsyncGenerator<Uint8Array> {
  for await (const frame of linedFramesOf(path)) yield frame.subarray(LINES_BYTES);
}

/**
 * Frames as the service reduces them, with the lines of the picture before each. The lines of a file
 * `<name>.yuv` tell nothing.
 */
export async function* linedFramesOf(path: string): AsyncGenerator<Uint8Array> {
  const input = path.endsWith(".yuv")
    ? ["-f", "rawvideo", "-pixel_format", "yuv420p", "-video_size", `${PLANE_WIDTH}x${PLANE_HEIGHT}`]
    : [];
  await using reader = new FrameReader([
    ...["-v", "quiet", ...input, "-i", path, "-map", "0:v:0"],
    ...[
      "-vf",
      stackingFilters([...reductionFilters(await heightOf(path)), "format=yuv420p"]),
      "-fps_mode",
      "passthrough",
    ],
  ]);
  const stacked = new Uint8Array(STACKED_FRAME_BYTES);
  const lined = stacked.subarray(0, LINES_BYTES + FRAME_BYTES);
  while (await reader.read(stacked)) {
    unstack(stacked, 0);
    yield lined;
  }
}

/** Height of the picture as it is displayed, in pixels. */
async function heightOf(path: string): Promise<number> {
  if (path.endsWith(".yuv")) return PLANE_HEIGHT;
  const entries = "stream=width,height:stream_side_data=rotation";
  const { stdout } = await new Deno.Command("ffprobe", {
    args: ["-v", "quiet", "-select_streams", "v:0", "-show_entries", entries, "-of", "json", path],
    stdin: "null",
  }).output();
  const [{ width, height, side_data_list: sideData = [] }] =
    JSON.parse(new TextDecoder().decode(stdout)).streams;
  const isTurned = sideData.some(({ rotation = 0 }: { rotation?: number }) => rotation % 180 !== 0);
  return isTurned ? width : height;
}

/** Media times in milliseconds: those of ffprobe, or for reduced frames those of `<name>.pts.json`. */
export async function timesOf(path: string): Promise<number[]> {
  if (path.endsWith(".yuv")) {
    return JSON.parse(await Deno.readTextFile(path.replace(/\.yuv$/, ".pts.json"))) as number[];
  }
  const { stdout } = await new Deno.Command("ffprobe", {
    args: [
      ...["-v", "quiet", "-select_streams", "v:0"],
      ...["-show_entries", "frame=best_effort_timestamp_time", "-of", "csv=p=0", path],
    ],
    stdin: "null",
  }).output();
  const times = new TextDecoder().decode(stdout).split("\n").map((line) => parseFloat(line) * 1000);
  return times.filter((time) => !Number.isNaN(time)).map((time) => time - times[0]!);
}
