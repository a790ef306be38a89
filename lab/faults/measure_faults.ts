/** Measures the frames of labelled videos with the kernel of the service, for the detector of damaged parts.
 */

import { createHash } from "node:crypto";
import { MEASURE_COUNT } from "../../src/media/kernels/frame_filter.ts";
import { DAMAGE_CODES, DamageHistory } from "../../src/media/detection/faults/damage_features.ts";
import { call, type ExportsOf, loadKernel } from "../../src/media/kernels/load_kernel.ts";
import { CUT_SCORE_THRESHOLD } from "../../src/model/frames/signals.ts";
import { measuredFilm } from "../cuts/kernel_rows.ts";
import { sourcesOf } from "../cuts/measure_rows.ts";
import type { Truth } from "../scores/truth.ts";
import { kindOf, type LabelledVideo } from "../scores/videos.ts";
import type { FaultRows, FaultVideo, Span } from "./rows.ts";

const EXPORTS = {
  STAGING: "global",
  RING_ROWS: "global",
  CUT_LOOKAHEAD: "global",
  CUT_SCORE: "global",
  ARTIFACT_MEASURES: "global",
  reset: call<() => void>(),
  setPictureSize: call<(width: number, height: number) => void>(),
  push: call<(offset: number, ptsMs: number, isRow: number) => void>(),
  finish: call<() => number>(),
} as const;
type Exports = ExportsOf<typeof EXPORTS>;

/** Drawn faults that the trees look for; the others have rules, or cannot be seen in reduced frames. */
const DAMAGE = /^(blocks|slice_|smear|burst_)/;
/** Kinds of damaged files: nobody can say which frames of one look damaged, unless much of the picture is. */
const DAMAGED_FILES = /^(damaged_bytes|lost_packets)$/;
/** Codecs whose decoders make a picture of any bytes. */
const SILENT = /^(hevc|vp8)$/;
/** Mean difference of luma from which on damage is clear. */
const CLEAR_MAD = 4;
/** First frames of damage that is decoded, in which it is new to the picture. */
const NEW_FRAMES = 30;

type FaultSpans = Pick<FaultVideo, "damaged" | "doubtful" | "lasting">;

/**
 * The rows of the videos. Damaged files are left out, except those with changed bytes of which no decoder
 * tells. `say` gets a line for each video.
 */
export async function measureFaults(
  videos: readonly LabelledVideo[],
  say: (line: string) => void = console.log,
): Promise<FaultRows> {
  const kernel = await FaultKernel.load();
  const measured: FaultVideo[] = [], rows: Uint8Array[] = [];
  const used = videos.filter(({ truth }) => !DAMAGED_FILES.test(kindOf(truth)) || isSilent(truth));
  for await (const { truth, frames, times } of sourcesOf(used)) {
    kernel.reset(truth);
    for await (const frame of frames) {
      rows.push(kernel.push(frame, times[kernel.count] ?? kernel.count * 1000 / (truth.fps ?? 25)));
    }
    const cuts = kernel.finish();
    const spans: FaultSpans = isSilent(truth) ? lastingSpansOf(truth) : spansOf(truth);
    const ends = (spans.lasting ?? []).map(([, end]) => end);
    const shots = [...new Set([...cuts, ...ends])].sort((a, b) => a - b);
    measured.push({
      ...{ name: truth.name, kind: kindOf(truth), group: truth.group ?? null },
      ...{ frames: kernel.count, shots, ...spans },
    });
    say(`${truth.name}: ${kernel.count} frames`);
  }
  const values = new Uint8Array(rows.length * DAMAGE_CODES);
  rows.forEach((row, at) => values.set(row, at * DAMAGE_CODES));
  return { width: DAMAGE_CODES, kernelSum: faultKernelSum(kernel), videos: measured, values };
}

function isSilent(truth: Truth): boolean {
  return kindOf(truth) === "damaged_bytes" && SILENT.test(truth.codec ?? "");
}

/** Where damage is that is decoded. It lasts, and is asked for only while it is new. */
function lastingSpansOf({ corruption = [], faint = [] }: Truth): FaultSpans {
  const damaged: Span[] = [], lasting: Span[] = [];
  const doubtful: Span[] = [...faint, ...corruption].map(({ start, end }) => [start, end]);
  for (const { start, end, max_mad = 0 } of corruption) {
    if (max_mad < CLEAR_MAD) continue;
    damaged.push([start, Math.min(end, start + NEW_FRAMES)]);
    lasting.push([start, end]);
  }
  return { damaged, doubtful, lasting };
}

function spansOf({ artifacts = [], corruption = [], faint = [], jumps = [] }: Truth): FaultSpans {
  const damaged: Span[] = [];
  const doubtful: Span[] = [...faint, ...corruption].map(({ start, end }) => [start, end]);
  for (const frame of jumps) doubtful.push([frame - 1, frame + 2]);
  for (const { start, end, kind = "" } of artifacts) {
    (DAMAGE.test(kind) ? damaged : doubtful).push([start, end]);
  }
  return { damaged, doubtful };
}

/** The codes of each frame, and where shots begin. */
export class FaultKernel {
  readonly #kernel: Exports;
  readonly #staging: Uint8Array;
  readonly #measures: Float32Array;
  readonly #cutScores: Float32Array;
  readonly #history = new DamageHistory();
  #shots: number[] = [];
  #settled = 0;

  private constructor(kernel: Exports) {
    const { buffer } = kernel.memory;
    this.#kernel = kernel;
    this.#staging = new Uint8Array(buffer, kernel.STAGING.value as number);
    this.#measures = new Float32Array(buffer, kernel.ARTIFACT_MEASURES.value as number, MEASURE_COUNT);
    this.#cutScores = new Float32Array(
      buffer,
      kernel.CUT_SCORE.value as number,
      kernel.RING_ROWS.value as number,
    );
  }

  static async load(): Promise<FaultKernel> {
    return new FaultKernel(
      await loadKernel("frame_filter", EXPORTS),
    );
  }

  /** Frames since the start. */
  get count(): number {
    return this.#history.count;
  }

  /** Starts a new video, of this size where it is known. */
  reset({ width = 0, height = 0 }: Pick<Truth, "width" | "height"> = {}): void {
    this.#kernel.reset();
    this.#kernel.setPictureSize(width, height);
    this.#history.reset();
    this.#shots = [];
    this.#settled = 0;
  }

  /** Adds a frame; gives its codes. */
  push(frame: Uint8Array, ptsMs: number): Uint8Array {
    this.#staging.set(frame);
    this.#kernel.push(0, ptsMs, 1);
    this.#history.push(this.#measures);
    this.#settle(this.count - (this.#kernel.CUT_LOOKAHEAD.value as number));
    return this.#history.newest();
  }

  /** The first frames of shots, after the last frame. */
  finish(): readonly number[] {
    this.#kernel.finish();
    this.#settle(this.count);
    return this.#shots;
  }

  #settle(end: number): void {
    for (; this.#settled < end; this.#settled++) {
      const score = this.#cutScores[this.#settled % this.#cutScores.length]!;
      if (score >= CUT_SCORE_THRESHOLD) this.#shots.push(this.#settled);
    }
  }
}

/** Sum of the codes of a drawn film. */
export function faultKernelSum(kernel: FaultKernel): string {
  const sum = createHash("sha256");
  kernel.reset();
  for (const { frame, ptsMs } of measuredFilm()) sum.update(kernel.push(frame, ptsMs));
  return sum.digest("hex");
}
