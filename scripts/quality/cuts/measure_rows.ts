/** Measures the candidates of labelled videos with the kernel of the service. */

import { basename } from "node:path";
import { FRAME_BYTES } from "../../../src/media/kernels/frame_filter.ts";
import { originOf } from "../edits/files/origins.ts";
import { tallyCuts } from "../score.ts";
import type { CutTruth, Truth } from "../truth.ts";
import { kindOf, type LabelledVideo } from "../videos.ts";
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
  const origins = new Map<string, number>();
  const rows: Uint8Array[] = [], measured: VideoRows[] = [];
  for await (const { truth, frames: pictures, times } of sourcesOf(videos, drawn)) {
    const frames: number[] = [];
    const add = (measured: FrameRow | null) => {
      if (!measured) return;
      frames.push(measured.frame);
      rows.push(measured.row);
    };
    kernel.reset();
    for await (const frame of pictures) {
      add(kernel.push(frame, times[kernel.count] ?? kernel.count * 1000 / (truth.fps ?? 25)));
    }
    kernel.finish().forEach(add);
    const originAt = originsOf(truth);
    const indexOf = (origin: string) => {
      if (!origins.has(origin)) origins.set(origin, origins.size);
      return origins.get(origin)!;
    };
    measured.push({
      ...{ name: truth.name, kind: kindOf(truth), cuts: truth.cuts, frames },
      labels: frames.map((frame) => labelOf(truth, frame)),
      before: frames.map((frame) => indexOf(originAt(frame - 1))),
      after: frames.map((frame) => indexOf(originAt(frame))),
    });
    say(`${truth.name}: ${kernel.count} frames, ${frames.length} candidates`);
  }
  const { width } = kernel;
  const values = new Uint8Array(rows.length * width);
  rows.forEach((row, at) => values.set(row, at * width));
  return { width, kernelSum: kernelSum(kernel), origins: [...origins.keys()], videos: measured, values };
}

interface Source {
  readonly truth: Truth;
  readonly frames: AsyncIterable<Uint8Array> | Iterable<Uint8Array>;
  /** Milliseconds; where there are none they follow from the rate. */
  readonly times: readonly number[];
}

async function* sourcesOf(
  videos: readonly LabelledVideo[],
  drawn: Iterable<DrawnVideo>,
): AsyncGenerator<Source> {
  for (const { path, truth } of videos) yield { truth, frames: framesOf(path), times: await timesOf(path) };
  for (const { truth, frames } of drawn) yield { truth, frames, times: [] };
}

/** The frame after or before a cut is no cut, but so near that it need not be told from one; see also `tallyCuts`. */
function labelOf(truth: CutTruth, frame: number): Label {
  if (truth.cuts.includes(frame)) return 1;
  const { hits, falseAlarms } = tallyCuts(truth, [frame]);
  return hits === 0 && falseAlarms.length > 0 ? 0 : 2;
}

/** Drawn shots are new in every video, so each is an origin of its own. */
function originsOf({ name, video, shots = [] }: Truth): (frame: number) => string {
  const alone = originOf(basename(video)).origin;
  return (frame) => {
    const shot = shots.findLast(({ start }) => start <= frame) ?? shots[0];
    if (!shot) return alone;
    const isDrawn = !shot.src || shot.src.startsWith("drawn");
    return isDrawn ? `${name}/${shot.start}` : shot.origin ?? originOf(shot.src).origin;
  };
}

/** Frames as the service reduces them; a file `<name>.yuv` has them already. */
async function* framesOf(path: string): AsyncGenerator<Uint8Array> {
  if (path.endsWith(".yuv")) {
    using file = await Deno.open(path);
    return yield* framesIn(file.readable);
  }
  const size = "scale=320:180:flags=area:in_range=full:out_range=full,format=yuv420p";
  const decode = [
    "-nostdin",
    "-v",
    "quiet",
    "-i",
    path,
    "-map",
    "0:v:0",
    "-vf",
    size,
    "-fps_mode",
    "passthrough",
  ];
  const child = new Deno.Command("ffmpeg", {
    args: [...decode, "-f", "rawvideo", "pipe:1"],
    stdin: "null",
    stdout: "piped",
    stderr: "null",
  }).spawn();
  yield* framesIn(child.stdout);
  await child.status;
}

async function* framesIn(stream: ReadableStream<Uint8Array>): AsyncGenerator<Uint8Array> {
  const frame = new Uint8Array(FRAME_BYTES);
  let filled = 0;
  for await (const chunk of stream) {
    for (let taken = 0; taken < chunk.length;) {
      const part = chunk.subarray(taken, taken + FRAME_BYTES - filled);
      frame.set(part, filled);
      filled += part.length;
      taken += part.length;
      if (filled < FRAME_BYTES) continue;
      yield frame;
      filled = 0;
    }
  }
}

/** Media times in milliseconds: those of ffprobe, or for reduced frames those of `<name>.pts.json`. */
async function timesOf(path: string): Promise<number[]> {
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
