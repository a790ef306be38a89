/** The rate of a video as a person would call it, judged by the times of its frames and not by what a header
 * claims.
 */

/** The most frames a second that a film may have. Times that say more say nothing. */
export const RATE_MAX = 1000;

/**
 * Frames a second. `times` are those of consecutive frames, seconds, in any order; `claimed` is the
 * container's word, which counts only where the times allow it or are too few to tell. Null: unknown.
 *
 * Gaps (a camera that dropped frames) do not count: 24 frames a second with a pause are 24. Where no interval
 * is typical the rate varies, and the average is meant.
 */
export function frameRate(times: readonly number[], claimed: number | null): number | null {
  const rate = rateOf(times, claimed);
  return rate !== null && rate <= RATE_MAX ? rate : null;
}

function rateOf(times: readonly number[], claimed: number | null): number | null {
  const sorted = Float64Array.from(new Set(times)).sort();
  const intervals = sorted.slice(1).map((time, i) => time - sorted[i]!).sort();
  const lastsS = sorted.length > 0 ? sorted.at(-1)! - sorted[0]! : 0;
  if (lastsS * RATE_MAX < times.length - 1 || intervals.length === 0) {
    return claimed !== null && claimed <= CLAIM_MAX ? claimed : null;
  }
  const median = intervals[Math.floor(intervals.length / 2)]!;
  const typical = intervals.filter((interval) => interval >= median / 2 && interval <= median * 1.5);
  if (typical.length < intervals.length * TYPICAL_SHARE) return variableRate(intervals, claimed);
  const lengthS = typical.reduce((sum, interval) => sum + interval, 0);
  const measured = steadyRate(sorted, lengthS / typical.length);
  return called(measured, claimed, measured * (TICK_S / lengthS + SLACK));
}

/**
 * The slope of a straight line through the times, as a camera's times are never quite right, and those at the
 * ends alone would decide where only intervals are added. Frames that were lost leave a place free; behind a
 * pause a line of the same slope begins.
 *
 * ```
 *   time │               ⋰
 *        │             ⋰
 *        │      ⋰
 *        │  ⋰
 *        └────────────────  frames
 * ```
 */
function steadyRate(times: Float64Array, typicalS: number): number {
  let [frames2, framesByTime] = [0, 0];
  let line: { readonly frame: number; readonly time: number }[] = [];
  const finish = () => {
    const middle = line.reduce((sum, { frame }) => sum + frame, 0) / line.length;
    for (const { frame, time } of line) {
      frames2 += (frame - middle) ** 2;
      framesByTime += (frame - middle) * (time - line[0]!.time);
    }
  };
  for (const time of times) {
    const last = line.at(-1);
    const intervals = last ? (time - last.time) / typicalS : 1;
    const passed = Math.max(1, Math.round(intervals));
    if (passed > 1 && (passed > LOST_MAX || Math.abs(intervals - passed) > LOST_SLACK)) {
      finish();
      line = [];
    }
    line.push({ frame: (line.at(-1)?.frame ?? 0) + passed, time });
  }
  finish();
  return frames2 / framesByTime;
}

/**
 * Intervals that one gap may have for its frames to count as lost, and how far it may be from a whole number
 * of them.
 */
const [LOST_MAX, LOST_SLACK] = [10, 0.25];
/** A claim above this without frames that show it is a time base in the place of a rate. */
const CLAIM_MAX = 240;
/** Part of the intervals that are near the median where the rate is steady. */
const TYPICAL_SHARE = 0.8;
/** The coarsest unit in which containers count time: FLV and Matroska round to milliseconds. */
const TICK_S = 0.001;
/** The part of a rate by which a measured one may be wrong, as clocks are. */
const SLACK = 0.0002;

/**
 * The average of the frames that were seen, or the claim, if it is an average that those frames could have.
 */
function variableRate(intervals: Float64Array, claimed: number | null): number {
  const average = intervals.length / intervals.reduce((sum, interval) => sum + interval, 0);
  const isCredible = claimed !== null && Math.abs(claimed - average) < average / 4;
  return isCredible ? claimed : rounded(average);
}

/**
 * The usual rate next to the measured one, as far as the measurement tells; else the claim if it fits; else
 * the measured rate.
 */
function called(measured: number, claimed: number | null, tolerance: number): number {
  const whole = Math.round(measured);
  const usual = [whole, whole * 1000 / 1001, ...HALVES].filter((rate) => rate > 0);
  const fits = (rate: number | null): rate is number =>
    rate !== null && Math.abs(rate - measured) <= tolerance;
  const fitting = usual.filter(fits);
  const named = fitting.find((rate) => claimed !== null && Math.abs(rate - claimed) < rate * EXACT);
  if (named !== undefined) return named;
  if (fitting.length > 0) {
    return fitting.reduce((best, rate) =>
      Math.abs(rate - measured) < Math.abs(best - measured) ? rate : best
    );
  }
  const isNear = claimed !== null && Math.abs(claimed - measured) < measured * CLAIM_SLACK;
  return isNear ? claimed : rounded(measured);
}

/** Usual rates that are no whole numbers, besides those of NTSC. */
const HALVES = [7.5, 12.5];
/** How far a claim may be from what was measured over a few seconds of an unsteady clock. */
const CLAIM_SLACK = 0.03;
/** The relative difference below which two rates are equal, such as 2997/100 and 30000/1001. */
const EXACT = 0.00002;

function rounded(rate: number): number {
  return Number(rate.toPrecision(4));
}
