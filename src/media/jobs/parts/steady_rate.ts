/** Which frames keep to a rate of sampling: as an expression for ffmpeg's filters, and the same rule in the
 * decode Worker.
 */

import { type SamplingPlan, takesEveryFrame } from "../../../model/frames/sampling.ts";

/**
 * A rate of sampling. Of each period since the first frame, the first frame from its start on is taken, at
 * the frame's own time. A frame that is a little early, such as one whose time was rounded, counts as being
 * on time. ffmpeg's own filter `fps` would repeat frames where there is none.
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

  /** The rate of a plan; null where every frame is taken. */
  static of(plan: SamplingPlan): SteadyRate | null {
    return takesEveryFrame(plan) ? null : new SteadyRate(plan);
  }

  /**
   * Expression for ffmpeg that is 1 for the frames that are taken. `time` and `start` are a filter's names
   * for the time of a frame and that of the first one.
   */
  expression(time = "T", start = "STARTT"): string {
    const period = `floor((${time}-${start}+${this.#earlyText})*${this.#fpsText})+1`;
    return `st(1,${period});st(2,gt(ld(1),ld(0)));st(0,max(ld(0),ld(1)));ld(2)`;
  }

  /**
   * Whether the next frame is taken. The time is `pts * numerator / denominator` seconds. Numbers are
   * computed and rounded in the order in which ffmpeg does it.
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
