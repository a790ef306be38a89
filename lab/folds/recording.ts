/** What the kernel says of each frame of a video, kept, so that detectors can run on it again and again
 * without a decode.
 */

import { createHash } from "node:crypto";
import { join } from "node:path";
import { deserialize, serialize } from "node:v8";
import type { Region } from "../../src/model/frames/coordinates.ts";
import { FrameFilter } from "../../src/media/kernels/frame_filter.ts";
import { LINES_BYTES } from "../../src/media/kernels/picture_lines.ts";
import { type FrameRow, KernelRows } from "../cuts/kernel_rows.ts";
import { linedFramesOf, timesOf } from "../cuts/measure_rows.ts";
import type { Truth } from "../scores/truth.ts";
import type { LabelledVideo } from "../scores/videos.ts";
import { reportsOf } from "./reports.ts";

export interface Recording {
  readonly frames: number;
  /** Media times in milliseconds. */
  readonly ptsMs: Float64Array;
  readonly cutScores: Float32Array;
  /** How many frames later each of them is known. */
  readonly cutLookahead: number;
  /** The fields of `RangeMeasures`, each with the same number of values for each frame. */
  readonly rangeMeasures: Readonly<Record<string, Values>>;
  readonly artifactMeasures: Float32Array;
  /** What the decoder says of each frame: bits of `REPORT`. */
  readonly reports: Uint16Array;
  /** Frames that may be cuts, each with the row that the cut detector decides on. */
  readonly candidates: readonly FrameRow[];
}

export interface RecordedVideo extends LabelledVideo {
  readonly recording: Recording;
}

type Values = Uint8Array | Uint16Array | Int16Array | Int32Array | Float32Array | Float64Array;

/** Files from which a recording follows, beside the video. */
const CODE = [
  "../../wasm/frame_filter.wasm",
  "../../src/media/kernels/frame_filter.ts",
  "../../src/media/kernels/picture_lines.ts",
  "../../src/media/kernels/taken_lines.ts",
  "../cuts/measure_rows.ts",
  "recording.ts",
  "reports.ts",
  "../../src/media/jobs/decoder_log.ts",
  "../../src/media/frame_reports.ts",
];

/** Records the videos, `jobs` side by side. The newest recording of each is kept in the folder `cache`. */
export async function recordAll(
  videos: readonly LabelledVideo[],
  { cache, jobs }: { readonly cache: string | undefined; readonly jobs: number },
): Promise<RecordedVideo[]> {
  if (cache !== undefined) await Deno.mkdir(cache, { recursive: true });
  const recorded: RecordedVideo[] = new Array(videos.length);
  const queue = [...videos.entries()];
  await Promise.all(Array.from({ length: jobs }, async () => {
    const recorder = await Recorder.load();
    for (let next = queue.shift(); next; next = queue.shift()) {
      const [at, video] = next;
      recorded[at] = { ...video, recording: await kept(video, cache, recorder) };
    }
  }));
  return recorded;
}

async function kept(video: LabelledVideo, cache: string | undefined, recorder: Recorder): Promise<Recording> {
  if (cache === undefined) return await recorder.record(video);
  const place = createHash("sha256").update(await Deno.realPath(video.path)).digest("hex").slice(0, 32);
  const path = join(cache, `${place}.recording`);
  const source = await hashOf(video.path);
  const bytes = await Deno.readFile(path).catch(() => null);
  const known = bytes && deserialize(bytes) as { readonly source: string; readonly recording: Recording };
  if (known?.source === source) return known.recording;
  const recording = await recorder.record(video);
  await Deno.writeFile(path, serialize({ source, recording }));
  return recording;
}

class Recorder {
  readonly #filter: FrameFilter;
  readonly #kernel: KernelRows;

  private constructor(filter: FrameFilter, kernel: KernelRows) {
    this.#filter = filter;
    this.#kernel = kernel;
  }

  static async load(): Promise<Recorder> {
    return new Recorder(await FrameFilter.load(), await KernelRows.load());
  }

  async record({ path, truth }: LabelledVideo): Promise<Recording> {
    const filter = this.#filter, kernel = this.#kernel;
    const times = await timesOf(path);
    const ptsMs: number[] = [], cutScores: number[] = [];
    const ranges = Object.entries(filter.rangeMeasures).map(([name, newest]) => new Column(name, newest));
    const artifacts = new Column("", filter.artifactMeasures);
    const candidates: FrameRow[] = [];
    filter.reset();
    filter.setRegion(regionOf(truth));
    kernel.reset();
    for await (const frame of linedFramesOf(path)) {
      const ms = times[ptsMs.length] ?? ptsMs.length * 1000 / (truth.fps ?? 25);
      ptsMs.push(Math.max(ms, ptsMs.at(-1) ?? 0));
      filter.staging.set(frame);
      filter.push(LINES_BYTES, ptsMs.at(-1)!, true, true);
      for (const column of [...ranges, artifacts]) column.add();
      const decided = filter.count - 1 - filter.cutLookahead;
      if (decided >= 0) cutScores.push(filter.cutScore(decided));
      const candidate = kernel.push(frame.subarray(LINES_BYTES), ptsMs.at(-1)!);
      if (candidate) candidates.push(candidate);
    }
    filter.finish();
    for (let frame = cutScores.length; frame < filter.count; frame++) cutScores.push(filter.cutScore(frame));
    candidates.push(...kernel.finish());
    return {
      frames: ptsMs.length,
      ptsMs: Float64Array.from(ptsMs),
      cutScores: Float32Array.from(cutScores),
      cutLookahead: filter.cutLookahead,
      rangeMeasures: Object.fromEntries(ranges.map((column) => [column.name, column.values])),
      artifactMeasures: artifacts.values as Float32Array,
      reports: await reportsOf(path),
      candidates,
    };
  }
}

/** The whole picture, where its size is known. */
export function regionOf({ width, height }: Pick<Truth, "width" | "height">): Region | null {
  return width === undefined || height === undefined ? null : { x: 0, y: 0, width, height };
}

/** Copies of the newest values of each frame, one after the other. */
class Column {
  readonly name: string;
  readonly #newest: Values;
  #values: Values;
  #filled = 0;

  constructor(name: string, newest: Values) {
    this.name = name;
    this.#newest = newest;
    this.#values = this.#ofLength(512 * newest.length);
  }

  get values(): Values {
    return this.#values.slice(0, this.#filled);
  }

  add(): void {
    if (this.#filled + this.#newest.length > this.#values.length) {
      const larger = this.#ofLength(2 * this.#values.length);
      larger.set(this.#values);
      this.#values = larger;
    }
    this.#values.set(this.#newest, this.#filled);
    this.#filled += this.#newest.length;
  }

  #ofLength(length: number): Values {
    return new (this.#newest.constructor as new (length: number) => Values)(length);
  }
}

/**
 * Hash of a recording: it changes with the kernel, with how frames come to it, and with the size and time of
 * the video.
 */
async function hashOf(path: string): Promise<string> {
  const { size, mtime } = await Deno.stat(path);
  const hash = createHash("sha256").update(`${size} ${mtime?.getTime()}`);
  for (const file of CODE) hash.update(await Deno.readFile(new URL(file, import.meta.url)));
  return hash.digest("hex").slice(0, 32);
}
