/** Which frames keep to a rate of sampling: as an expression for ffmpeg's `select` filter, and the same rule in the decode Worker. */

import { type SamplingPlan, takesEveryFrame } from "../../model/frames/sampling.ts";

/**
 * Of the periods since the first frame, each gives the first frame from its start on, at the frame's own time. A frame that is
 * a little early, such as one whose time was rounded, counts as being on time. ffmpeg's own filter `fps` would repeat frames
 * where there is none.
 */
export class SteadyRate {
  readonly #earlyText: string;
  readonly #fpsText: string;
  readonly #earlyS: number;
  readonly #fps: number;
  #startS = NaN;
  #period = NaN;

  private constructor({ sampleFps, sourceFps }: SamplingPlan) {
    this.#earlyText = (0.4 / Math.max(sampleFps, sourceFps ?? 0)).toFixed(6);
    this.#fpsText = sampleFps.toFixed(6);
    this.#earlyS = Number(this.#earlyText);
    this.#fps = Number(this.#fpsText);
  }

  /** Null where every frame is taken. */
  static of(plan: SamplingPlan): SteadyRate | null {
    return takesEveryFrame(plan) ? null : new SteadyRate(plan);
  }

  /** True for the frames that are taken, in ffmpeg. */
  get expression(): string {
    const period = (time: string) => `floor((${time}-start_t+${this.#earlyText})*${this.#fpsText})`;
    return `isnan(prev_selected_t)+gt(${period("t")},${period("prev_selected_t")})`;
  }

  /**
   * Whether the next frame is taken. The time is `pts * numerator / denominator` seconds. Numbers are computed and rounded in
   * the order in which ffmpeg does it.
   */
  takes(pts: number, numerator: number, denominator: number): boolean {
    const timeS = pts * (numerator / denominator);
    if (Number.isNaN(this.#startS)) this.#startS = timeS;
    const period = Math.floor((timeS - this.#startS + this.#earlyS) * this.#fps);
    if (period <= this.#period) return false;
    this.#period = period;
    return true;
  }
}
