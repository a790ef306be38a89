/** The rows of stretches that may be gradual transitions, measured as the detector does, and what each should
 * be.
 */

import { createHash } from "node:crypto";
import { landscape, mixed, noisy, type Picture, plain } from "../../test/support/kernels/drawn_film.ts";
import { FrameHistory } from "../../src/media/detection/ranges/frame_history.ts";
import type { RangeMeasures } from "../../src/media/kernels/frame_filter.ts";
import { GradualDetector } from "../../src/media/detection/gradual/gradual.ts";
import { isPlainIn, ROW_NUMBERS } from "../../src/media/detection/gradual/transition_row.ts";
import { FrameFilter } from "../../src/media/kernels/frame_filter.ts";
import { framesOf, timesOf } from "../cuts/measure_rows.ts";
import { EITHER, type Label, type LabelledRows, type LabelledVideoRows } from "../cuts/rows.ts";
import { drawnTransitions } from "./drawn_transitions.ts";
import type { FrameRange, NamedRange, Truth } from "../scores/truth.ts";
import { kindOf, type LabelledVideo, originsOf } from "../scores/videos.ts";

/** A video and its stretches. */
export interface StretchVideo extends LabelledVideoRows {
  readonly fps: number;
  /** The true transitions. */
  readonly gradual: readonly NamedRange[];
  /** The first mixed frames, and the frames after the last ones. */
  readonly starts: readonly number[];
  readonly ends: readonly number[];
}

export type StretchRows = LabelledRows<StretchVideo>;

export interface MeasuredStretch {
  readonly start: number;
  readonly end: number;
  readonly row: Uint8Array;
}

/**
 * Least share of the longer one of a truth range and a stretch that both must cover for the stretch to be the
 * transition. With less than OTHER it is none.
 */
const SAME = 0.7;
const OTHER = 0.4;
/** A stretch that has this share of two transitions is neither. */
const HALF = 0.5;
/**
 * How near the outer ends of a half must lie to those of its fade, as a share of the half; or
 * HALF_REACH_FRAMES frames. A fade out and in may be found as two halves.
 */
const HALF_REACH = 0.15;
const HALF_REACH_FRAMES = 2;
/** Share of a half that must lie inside the fade. */
const HALF_INSIDE = 0.7;

/** A video with its stretches. */
export interface MeasuredVideo {
  readonly truth: Truth;
  readonly stretches: readonly MeasuredStretch[];
}

/** The stretches of the videos, and of drawn films after them. `say` gets a line for each. */
export async function measureStretches(
  videos: readonly LabelledVideo[],
  say: (line: string) => void = console.log,
): Promise<StretchRows> {
  const filter = await FrameFilter.load();
  const measured: MeasuredVideo[] = [];
  for (const { path, truth } of videos) {
    const times = await timesOf(path);
    const msOf = (frame: number) => times[frame] ?? frame * 1000 / (truth.fps ?? 25);
    const stretches = await stretchesOf(filter, framesOf(path), msOf);
    measured.push({ truth, stretches });
    say(`${truth.name}: ${filter.count} frames, ${stretches.length} stretches`);
  }
  return rowsOf([...measured, ...await measureDrawnFilms(filter)]);
}

export async function measureDrawnFilms(filter: FrameFilter): Promise<MeasuredVideo[]> {
  const measured: MeasuredVideo[] = [];
  for (const { truth, frames } of drawnTransitions()) {
    const stretches = await stretchesOf(filter, frames, (frame) => frame * 1000 / truth.fps!);
    measured.push({ truth, stretches });
  }
  return measured;
}

/** The rows of all videos, each with what it should be, and what is shown before and after it. */
export async function rowsOf(videos: readonly MeasuredVideo[]): Promise<StretchRows> {
  const origins = new Map<string, number>();
  const measured = videos.map(({ truth, stretches }) => labelled(truth, stretches, origins));
  const rows = videos.flatMap(({ stretches }) => stretches.map(({ row }) => row));
  const values = new Uint8Array(rows.length * ROW_NUMBERS);
  rows.forEach((row, at) => values.set(row, at * ROW_NUMBERS));
  return {
    ...{ width: ROW_NUMBERS, kernelSum: await stretchSum(), origins: [...origins.keys()] },
    ...{ videos: measured, values },
  };
}

function labelled(
  truth: Truth,
  stretches: readonly MeasuredStretch[],
  origins: Map<string, number>,
): StretchVideo {
  const originAt = originsOf(truth);
  const indexOf = (origin: string) => {
    if (!origins.has(origin)) origins.set(origin, origins.size);
    return origins.get(origin)!;
  };
  const gradual = truth.gradual ?? [];
  return {
    ...{ name: truth.name, kind: kindOf(truth), fps: truth.fps ?? 25, gradual },
    starts: stretches.map(({ start }) => start),
    ends: stretches.map(({ end }) => end),
    labels: stretches.map((stretch) => labelOf(gradual, stretch)),
    before: stretches.map(({ start }) => indexOf(originAt(start - 1))),
    after: stretches.map(({ end }) => indexOf(originAt(end))),
  };
}

function labelOf(truth: readonly NamedRange[], { start, end, row }: MeasuredStretch): Label {
  if (truth.filter((range) => inside({ start, end }, range.start, range.end) >= HALF).length > 1) return 0;
  let label: Label = 0;
  for (const range of truth) {
    const same = overlap(range, { start, end });
    if (same >= SAME || isHalf(range, start, end, row)) return 1;
    const isInsideFade = isFade(range) && inside(range, start, end) >= HALF_INSIDE;
    if (same >= OTHER || isInsideFade) label = EITHER;
  }
  return label;
}

function isHalf(range: NamedRange, start: number, end: number, row: Uint8Array): boolean {
  if (!isFade(range) || inside(range, start, end) < HALF_INSIDE) return false;
  const reach = Math.max(HALF_REACH_FRAMES, HALF_REACH * (end - start));
  return isPlainIn(row, "after") && Math.abs(start - range.start) <= reach ||
    isPlainIn(row, "before") && Math.abs(end - range.end) <= reach;
}

function isFade({ kind = "" }: NamedRange): boolean {
  return kind.includes("fade");
}

/** The share of `start` to `end` that lies in the range. */
function inside(range: FrameRange, start: number, end: number): number {
  return Math.max(0, Math.min(range.end, end) - Math.max(range.start, start)) / (end - start);
}

function overlap(one: FrameRange, other: FrameRange): number {
  const both = Math.max(0, Math.min(one.end, other.end) - Math.max(one.start, other.start));
  return both / Math.max(one.end - one.start, other.end - other.start);
}

/** What the detector asks its trees about in these frames, which come in one buffer. */
async function stretchesOf(
  filter: FrameFilter,
  frames: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  ptsMs: (frame: number) => number,
): Promise<MeasuredStretch[]> {
  const recorder = new StretchRecorder();
  filter.reset();
  for await (const frame of frames) {
    filter.staging.set(frame);
    const ms = ptsMs(filter.count);
    filter.push(0, ms);
    recorder.push(filter.rangeMeasures, ms);
  }
  return recorder.finish();
}

/** Runs the detector on the measures of one video. */
export class StretchRecorder {
  readonly #history = new FrameHistory();
  readonly #stretches: MeasuredStretch[] = [];
  readonly #detector = new GradualDetector({ add: () => {} }, (values, start, end) => {
    this.#stretches.push({ start, end: end - 1, row: values.slice() });
    return -1;
  });

  push(measures: RangeMeasures, ptsMs: number): void {
    this.#history.push(measures, ptsMs, this.#history.count);
    this.#detector.push(this.#history);
  }

  finish(): MeasuredStretch[] {
    this.#detector.finish(this.#history);
    return this.#stretches;
  }
}

/** Sum of the rows of a drawn film with transitions and a fast pan. */
export async function stretchSum(): Promise<string> {
  const sum = createHash("sha256");
  const stretches = await stretchesOf(await FrameFilter.load(), film(), (n) => n * 40);
  for (const { start, end, row } of stretches) sum.update(`${start}-${end}:`).update(row);
  return sum.digest("hex");
}

function* film(): Generator<Picture> {
  const black = plain(16);
  for (let n = 0; n < 220; n++) {
    const place = 2 * n + 14 * Math.max(0, Math.min(12, n - 180));
    const [one, two, three] = [landscape(1, n / 4), landscape(4, n), landscape(6, place)];
    const picture = n < 80 ? mixed(one, two, Math.max(0, Math.min(1, (n - 30) / 16))) : mixed(
      n < 120 ? two : three,
      black,
      Math.max(0, 1 - Math.abs(n - 120) / 14),
    );
    yield noisy(picture, 3, n);
  }
}
