/** Calls `wasm/zone.wasm`, which decides when activity enters a restricted zone and when it has left. */

import { call, type ExportsOf, loadKernel } from "./load_kernel.ts";

/** What `assembly/zone.ts` exports. The globals are numbers and addresses in its memory. */
const EXPORTS = {
  BLOCK_ROWS: "global",
  SCORE: "global",
  TRANSITION: "global",
  begin: call<
    (enterScore: number, exitScore: number, enterAfterFrames: number, exitAfterFrames: number) => void
  >(),
  step: call<(score: number) => number>(),
  run: call<(rows: number) => void>(),
} as const;
type ZoneExports = ExportsOf<typeof EXPORTS>;

/** What a frame changes, by the codes of `assembly/zone.ts`. */
export const ZONE_TRANSITIONS = ["none", "entered", "left"] as const;
export type ZoneTransition = typeof ZONE_TRANSITIONS[number];

/**
 * When activity enters and leaves a zone. `exitScore` is below `enterScore`, and both numbers of consecutive
 * frames are at least 1.
 */
export interface ZoneThresholds {
  readonly enterScore: number;
  readonly exitScore: number;
  readonly enterAfterFrames: number;
  readonly exitAfterFrames: number;
}

/**
 * An interval of activity: from the frame on which it entered to the frame on which it left; null while it
 * has not left.
 */
export interface ZoneInterval {
  readonly enteredAt: number;
  readonly leftAt: number | null;
}

/**
 * One zone with the state of one sequence of frames. Scores are compared without rounding: a score of 0.6
 * meets the threshold 0.6. A frame between the two thresholds restarts the count, and so does NaN, a frame
 * without a score. See docs/live/events.md#restricted-zone.
 */
export class ZoneKernel {
  readonly #module: ZoneExports;
  readonly #scores: Float64Array;
  readonly #transitions: Uint8Array;

  private constructor(module: ZoneExports) {
    const { buffer } = module.memory;
    const rows = module.BLOCK_ROWS.value as number;
    this.#module = module;
    this.#scores = new Float64Array(buffer, module.SCORE.value, rows);
    this.#transitions = new Uint8Array(buffer, module.TRANSITION.value, rows);
  }

  /** Compiles the module and gives it memory of its own. `begin` must be called first. */
  static async load(): Promise<ZoneKernel> {
    return new ZoneKernel(await loadKernel("zone", EXPORTS));
  }

  /**
   * Starts a sequence with nobody in the zone. Throws a RangeError for thresholds that no policy may have.
   */
  begin({ enterScore, exitScore, enterAfterFrames, exitAfterFrames }: ZoneThresholds): void {
    const isCount = (frames: number) => Number.isInteger(frames) && frames >= 1 && frames < 2 ** 31;
    if (!(exitScore < enterScore) || !isCount(enterAfterFrames) || !isCount(exitAfterFrames)) {
      throw new RangeError(
        `Cannot watch a zone with scores ${enterScore} and ${exitScore} after ${enterAfterFrames} and ` +
          `${exitAfterFrames} frames`,
      );
    }
    this.#module.begin(enterScore, exitScore, enterAfterFrames, exitAfterFrames);
  }

  /** What the next frame changes. Allocates nothing. */
  step(score: number): ZoneTransition {
    return ZONE_TRANSITIONS[this.#module.step(score)]!;
  }

  /** Runs a whole recording; the intervals in order, as indices into `scores`. The last one may be open. */
  run(thresholds: ZoneThresholds, scores: Float64Array): ZoneInterval[] {
    this.begin(thresholds);
    const intervals: ZoneInterval[] = [];
    let enteredAt: number | undefined;
    for (let start = 0; start < scores.length; start += this.#scores.length) {
      const block = scores.subarray(start, start + this.#scores.length);
      this.#scores.set(block);
      this.#module.run(block.length);
      for (let row = 0; row < block.length; row++) {
        const transition = ZONE_TRANSITIONS[this.#transitions[row]!];
        if (transition === "entered") enteredAt = start + row;
        if (transition !== "left") continue;
        intervals.push({ enteredAt: enteredAt!, leftAt: start + row });
        enteredAt = undefined;
      }
    }
    return enteredAt === undefined ? intervals : [...intervals, { enteredAt, leftAt: null }];
  }
}
