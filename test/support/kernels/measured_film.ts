/** Films of measures: frames that are described by what the kernel would measure, for bounds that pictures
 * cannot be drawn to.
 */

import type { Detector } from "../../../src/model/frames/detected_range.ts";
import {
  CELL_SAMPLES,
  CELLS,
  LUMA_CELLS,
  PROFILE_VALUES,
} from "../../../src/media/detection/ranges/frame_history.ts";
import { RangeDetectors } from "../../../src/media/detection/range_detectors.ts";
import { told } from "./drawn_film.ts";

/** What one frame shows; levels are luma or chroma levels. */
export interface MeasuredFrame {
  /** Mean of each cell: 240 of luma, then 60 of each chroma plane. */
  readonly mean: (cell: number) => number;
  /** Mean absolute difference to the frame before of the samples of each luma cell; 0 unless given. */
  readonly moved?: (cell: number) => number;
  /** Samples above 28; all unless given. */
  readonly brightSamples?: number;
}

export class MeasuredFilm {
  readonly #detectors: RangeDetectors;
  readonly #msPerFrame: number;
  readonly #measures = {
    cellSums: new Uint16Array(CELLS),
    cellMoves: new Uint16Array(LUMA_CELLS),
    brightSamples: new Int32Array(1),
    profiles: new Int16Array(PROFILE_VALUES),
  };
  /** The number of the next frame. */
  at = 0;

  /** Makes a film; `cuts` are the first frames of new shots. */
  constructor(wanted: Detector, { framesPerSecond = 25, cuts = [] as readonly number[] } = {}) {
    this.#msPerFrame = 1000 / framesPerSecond;
    this.#detectors = new RangeDetectors({ cutScore: (frame) => cuts.includes(frame) ? 1 : 0 }, [wanted]);
  }

  show({ mean, moved = () => 0, brightSamples = LUMA_CELLS * CELL_SAMPLES }: MeasuredFrame): void {
    const { cellSums, cellMoves } = this.#measures;
    for (let cell = 0; cell < CELLS; cell++) cellSums[cell] = Math.round(mean(cell) * CELL_SAMPLES);
    for (let cell = 0; cell < LUMA_CELLS; cell++) cellMoves[cell] = Math.round(moved(cell) * CELL_SAMPLES);
    this.#measures.brightSamples[0] = brightSamples;
    this.#detectors.push(this.#measures, this.at++ * this.#msPerFrame);
  }

  /** Plays `frames` frames, described by their number. */
  play(frames: number, describe: (n: number) => MeasuredFrame): this {
    for (let n = 0; n < frames; n++) this.show(describe(n));
    return this;
  }

  /** Begins another stream with the same detectors. */
  again(): this {
    this.#detectors.reset();
    this.at = 0;
    return this;
  }

  /** "freeze 30-50", with the first and the last frame. */
  end(): string[] {
    return told(this.#detectors.finish());
  }
}

/** A value in [-1,1) that looks random and is the same for the same numbers. */
export function scattered(n: number, cell: number): number {
  let bits = Math.imul(n + 1, 0x9e3779b1) ^ Math.imul(cell + 1, 0x85ebca6b);
  bits = Math.imul(bits ^ bits >>> 15, 0x2c1b3c6d);
  bits = Math.imul(bits ^ bits >>> 12, 0x297a2d39);
  return ((bits ^ bits >>> 15) >>> 0) / 2 ** 31 - 1;
}
