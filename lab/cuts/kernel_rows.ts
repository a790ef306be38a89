/** The rows that the kernel of the service measures: one for each frame that may be a cut. */

import { createHash } from "node:crypto";
import { seededRandom } from "../../test/support/seeded_random.ts";
import { CHROMA_WIDTH, FRAME_BYTES, PLANE_BYTES, PLANE_WIDTH } from "../../src/media/kernels/frame_planes.ts";
import { call, type ExportsOf, loadKernel } from "../../src/media/kernels/load_kernel.ts";

const EXPORTS = {
  STAGING: "global",
  CUT_LOOKAHEAD: "global",
  CUT_ROW_BYTES: "global",
  reset: call<() => void>(),
  push: call<(offset: number, ptsMs: number) => void>(),
  cutRow: call<(frame: number) => number>(),
} as const;
type Exports = ExportsOf<typeof EXPORTS>;

export interface FrameRow {
  readonly frame: number;
  readonly row: Uint8Array;
}

export class KernelRows {
  /** How many numbers a row has. */
  readonly width: number;
  readonly #kernel: Exports;
  readonly #memory: Uint8Array;
  #frames = 0;

  private constructor(kernel: Exports) {
    this.#kernel = kernel;
    this.#memory = new Uint8Array(kernel.memory.buffer);
    this.width = kernel.CUT_ROW_BYTES.value as number;
  }

  static async load(): Promise<KernelRows> {
    return new KernelRows(
      await loadKernel("frame_filter", EXPORTS),
    );
  }

  get count(): number {
    return this.#frames;
  }

  reset(): void {
    this.#kernel.reset();
    this.#frames = 0;
  }

  /** Adds a frame; gives the row of the one that is decided with it, if that one may be a cut. */
  push(frame: Uint8Array, ptsMs: number): FrameRow | null {
    this.#memory.set(frame, this.#kernel.STAGING.value as number);
    this.#kernel.push(0, ptsMs);
    return this.#rowOf(this.#frames++ - (this.#kernel.CUT_LOOKAHEAD.value as number));
  }

  /** The rows of the frames that are still undecided after the last one. */
  finish(): FrameRow[] {
    const lookahead = this.#kernel.CUT_LOOKAHEAD.value as number;
    const frames = Array.from({ length: lookahead }, (_, i) => this.#frames - lookahead + i);
    return frames.map((frame) => this.#rowOf(frame)).filter((row) => row !== null);
  }

  #rowOf(frame: number): FrameRow | null {
    const at = frame > 0 ? this.#kernel.cutRow(frame) : 0;
    return at === 0 ? null : { frame, row: this.#memory.slice(at, at + this.width) };
  }
}

/** Sum of the rows of the film that every measure counts in. */
export function kernelSum(kernel: KernelRows): string {
  const sum = createHash("sha256");
  kernel.reset();
  const add = (measured: FrameRow | null) =>
    measured && sum.update(`${measured.frame}:`).update(measured.row);
  for (const { frame, ptsMs } of measuredFilm()) add(kernel.push(frame, ptsMs));
  kernel.finish().forEach(add);
  return sum.digest("hex");
}

/**
 * Frames of a drawn film in which every measure counts: noise, steps of light and colour, parts that move,
 * bars.
 */
export function* measuredFilm(): Generator<{ readonly frame: Uint8Array; readonly ptsMs: number }> {
  const random = seededRandom(12);
  const frame = new Uint8Array(FRAME_BYTES);
  let [phase, level, bars] = [0, 100, 0];
  for (let i = 0; i < 240; i++) {
    const dice = random();
    if (dice < 0.1) phase += 40 * random();
    else if (dice < 0.15) level = 40 + 180 * random();
    else if (dice < 0.17) bars = 60 * random();
    else phase += 0.1;
    for (let at = 0; at < FRAME_BYTES; at++) {
      const isLuma = at < PLANE_BYTES, inChroma = at - PLANE_BYTES;
      const [x, y] = isLuma
        ? [at % PLANE_WIDTH, Math.floor(at / PLANE_WIDTH)]
        : [inChroma % CHROMA_WIDTH * 2, Math.floor(inChroma / CHROMA_WIDTH)];
      const wave = triangle(x / 37 + phase) * triangle(y / 23 - phase / 2) + triangle((x + y) / 90 + phase);
      frame[at] = isLuma ? y < bars ? 16 : level + 30 * wave + 6 * random() : 128 + 20 * wave;
    }
    if (dice > 0.98) frame.fill(dice > 0.99 ? 128 : 235);
    yield { frame, ptsMs: i * (i < 120 ? 40 : 18) };
  }
}

/**
 * A wave that goes up and down between -1 and 1 with a period of 1, in operations that are exact everywhere.
 */
function triangle(x: number): number {
  return 4 * Math.abs(x - Math.floor(x + 0.5)) - 1;
}
