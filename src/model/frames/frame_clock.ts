/** The clock of a film's frames: corrects times that their neighbours contradict. See docs/frames.md#times.
 */

import { RATE_MAX } from "./frame_rate.ts";

/** Frames that may wait for the ones behind them, until it is decided which of their times are wrong. */
export const CLOCK_LOOK_AHEAD = 32;

/** Usual intervals that a frame may come after the one before to be believed at once. */
const USUAL_INTERVALS = 1.6;
/**
 * Steps that are shorter than both of these are no steps: some readers give frames of one time such steps.
 * Films without a fixed rate have short ones.
 */
const LEAST_INTERVALS = 1 / 16;
const LEAST_S = 0.002;
/** How many intervals tell the usual one, and after how many new ones it is computed again. */
const INTERVALS = 31;
const RENEWED_AFTER = 8;
/** How many frames in order begin a film. */
const BEGINNING = 4;
/** The interval where nothing tells of one, seconds. */
const ASSUMED_S = 1 / 25;

/**
 * What it costs to explain times that contradict each other; the cheapest explanation is taken. A wrong time
 * is half a point; the clock begins anew for eight. An interval that is longer than the usual one costs a
 * point each time it doubles, up to three, as films have gaps; a shorter one costs four, as nothing makes
 * frames come faster.
 */
const COST = { wrong: 0.5, anew: 8, longer: 1, longerMax: 3, shorter: 4 } as const;

/** What is known of the times of a film before they come. */
export interface FilmTimes {
  readonly ticksPerSecond: number;
  /** How many frames it should have in a second; null where nobody knows. */
  readonly fps: number | null;
  /** Seconds up to which a gap is believed; any unless given. */
  readonly gapMaxS?: number | undefined;
}

/**
 * Times are in ticks of any unit, from frame to frame in the order in which they are shown. A frame is pushed
 * with the time that its source gives it, and `take` gives its time when that is decided: at once where it
 * follows the one before as usual, and otherwise when enough frames behind it have come.
 *
 * ```
 *   source   0  1  2  3 99  5  6  7   one time is wrong:                    4 instead of 99
 *            0  1  2  3  3  5  6  7   two frames share a time:              4 instead of the second 3
 *            0  1  2  3  0  1  2 ...  the clock begins anew, and stays:     4, 5, 6, ...
 *            0  1  2  3 90 91 92 ...  a gap, which nothing contradicts:     as it is
 * ```
 *
 * Times that rise are never changed but where a gap is longer than is believed, and what is given rises
 * always. Memory is constant.
 */
export class FrameClock {
  /** Whether all times so far are those of the source. */
  isSteady = true;

  /** The times of the source of the frames that wait, and their number. */
  readonly #open = new Float64Array(CLOCK_LOOK_AHEAD);
  #openCount = 0;
  /** Decided times that were not taken yet: a ring. */
  readonly #decided = new Float64Array(2 * CLOCK_LOOK_AHEAD);
  #taken = 0;
  #decidedCount = 0;
  /** The time that was decided last; NaN before the first one. */
  #last = NaN;
  /** What is added to times of the source since the clock began anew. */
  #offset = 0;
  /**
   * The offset before the clock last began anew: a source may have two clocks, and ffmpeg takes the last
   * frames from the other one.
   */
  #otherOffset = NaN;
  readonly #intervals = new Float64Array(INTERVALS);
  readonly #sorted = new Float64Array(INTERVALS);
  #intervalCount = 0;
  #usual = NaN;
  #expected = NaN;
  #ticksPerSecond = 1;
  /** The longest step that is believed, in ticks; a longer one is a clock that was set forward. */
  #gapMax = Infinity;
  /**
   * The least costs in the search for the cheapest explanation, by frame; 0 stands for the last decided one.
   * Then the right frame before, on the cheapest way.
   */
  readonly #cost = new Float64Array(CLOCK_LOOK_AHEAD + 2);
  readonly #from = new Int8Array(CLOCK_LOOK_AHEAD + 2);

  /** Prepares for a new film. */
  reset({ ticksPerSecond, fps, gapMaxS = Infinity }: FilmTimes): void {
    this.isSteady = true;
    this.#openCount = 0;
    this.#taken = 0;
    this.#decidedCount = 0;
    this.#last = NaN;
    this.#offset = 0;
    this.#otherOffset = NaN;
    this.#intervalCount = 0;
    this.#usual = NaN;
    this.#ticksPerSecond = ticksPerSecond;
    this.#gapMax = gapMaxS * ticksPerSecond;
    this.#expected = fps === null ? NaN : ticksPerSecond / fps;
  }

  /** Frames whose time is not decided. */
  get waiting(): number {
    return this.#openCount;
  }

  /** The usual interval, in ticks. */
  get interval(): number {
    if (!Number.isNaN(this.#usual)) return this.#usual;
    return Number.isNaN(this.#expected) ? ASSUMED_S * this.#ticksPerSecond : this.#expected;
  }

  /** Takes the time that the source gives the next frame. */
  push(ticks: number): void {
    if (this.#openCount === 0 && this.#isUsual(ticks + this.#offset)) {
      this.#decide(ticks + this.#offset, true);
      return;
    }
    this.#open[this.#openCount++] = ticks;
    this.#settle(false);
  }

  /** No more frames come: all times are decided. */
  finish(): void {
    this.#settle(true);
  }

  /** The time of the next frame; NaN while it is not decided. */
  take(): number {
    if (this.#taken === this.#decidedCount) return NaN;
    return this.#decided[this.#taken++ % this.#decided.length]!;
  }

  #isUsual(time: number): boolean {
    const step = time - this.#last;
    return step > this.#leastStep && step <= USUAL_INTERVALS * this.interval;
  }

  /** The longest step that counts as none, in ticks: times that are no further apart are equal. */
  get #leastStep(): number {
    const isKnown = !Number.isNaN(this.#usual) || !Number.isNaN(this.#expected);
    return isKnown
      ? Math.min(this.interval * LEAST_INTERVALS, LEAST_S * this.#ticksPerSecond)
      : this.#shortest;
  }

  /** An interval so short that no film has it. */
  get #shortest(): number {
    return this.#ticksPerSecond / (2 * RATE_MAX);
  }

  #decide(time: number, isLearned: boolean): void {
    if (isLearned && !Number.isNaN(this.#last)) this.#learn(time - this.#last);
    this.#last = time;
    this.#decided[this.#decidedCount++ % this.#decided.length] = time;
  }

  #learn(interval: number): void {
    this.#intervals[this.#intervalCount++ % INTERVALS] = interval;
    if (this.#intervalCount % RENEWED_AFTER === 0 || this.#intervalCount < RENEWED_AFTER) this.#renew();
  }

  #renew(): void {
    const count = Math.min(INTERVALS, this.#intervalCount);
    // A few intervals say less than the source does of itself.
    if (count < RENEWED_AFTER && !Number.isNaN(this.#expected)) return;
    this.#usual = usual(this.#intervals, count, this.#sorted);
  }

  /** Decides what can be decided. */
  #settle(isEnd: boolean): void {
    while (this.#openCount > 0) {
      const isFull = isEnd || this.#openCount === CLOCK_LOOK_AHEAD;
      const first = this.#open[0]! + this.#offset;
      const isFirst = Number.isNaN(this.#last);
      if (!isFirst && this.#isUsual(first)) this.#accept(first);
      else if (!isFirst && this.#isUsual(this.#open[0]! + this.#otherOffset)) {
        [this.#offset, this.#otherOffset] = [this.#otherOffset, this.#offset];
        this.#accept(this.#timeOf(1));
      } else if (this.#rises()) {
        const span = this.#open[this.#openCount - 1]! + this.#offset - first;
        // A gap is believed when the frames behind it have gone on for as long as it lasted.
        const isBelieved = isFirst ? this.#openCount >= BEGINNING : span >= first - this.#last;
        if (!isFull && !isBelieved) return;
        // The last frames of a film whose clock has begun anew may have times of another one.
        const isOther = isEnd && !isBelieved && !Number.isNaN(this.#otherOffset);
        if (!isFirst && (isOther || this.#isClosed(first - this.#last))) this.#beginAnew(1);
        this.#accept(this.#timeOf(1));
      } else if (isFull) this.#explain();
      else return;
    }
  }

  #accept(time: number): void {
    this.#decide(time, true);
    this.#drop(1);
  }

  #drop(count: number): void {
    this.#open.copyWithin(0, count, this.#openCount);
    this.#openCount -= count;
  }

  /** Whether the times that wait rise, from the last decided one on. */
  #rises(): boolean {
    const leastStep = this.#leastStep;
    let before = Number.isNaN(this.#last) ? -Infinity : this.#last - this.#offset;
    for (let i = 0; i < this.#openCount; i++) {
      if (!(this.#open[i]! > before + leastStep)) return false;
      before = this.#open[i]!;
    }
    return true;
  }

  /**
   * Decides the times up to the first one that waits and is right, by the cheapest way from the last decided
   * time to the end of those that wait, in which each frame is right, wrong, or the first of a clock that
   * begins anew.
   */
  #explain(): void {
    this.isSteady = false;
    if (Number.isNaN(this.#usual) && Number.isNaN(this.#expected)) this.#guessInterval();
    const count = this.#openCount;
    const cost = this.#cost;
    const from = this.#from;
    const isFirst = Number.isNaN(this.#last);
    cost[0] = 0;
    for (let to = 1; to <= count; to++) {
      // At the beginning of a film nothing is before the first right time.
      cost[to] = isFirst ? (to - 1) * COST.wrong : Infinity;
      from[to] = 0;
      for (let before = isFirst ? 1 : 0; before < to; before++) {
        const frames = to - before;
        const step = this.#costOf(this.#timeOf(to) - this.#timeOf(before), frames);
        const way = cost[before]! + (frames - 1) * COST.wrong + Math.min(step, COST.anew);
        // Of equal ones the way with the fewest wrong times.
        if (way > cost[to]!) continue;
        cost[to] = way;
        from[to] = before;
      }
    }
    let last = 0;
    for (let to = isFirst ? 1 : 0, best = Infinity; to <= count; to++) {
      const all = cost[to]! + (count - to) * COST.wrong;
      if (all >= best) continue;
      best = all;
      last = to;
    }
    if (last === 0) return this.#extrapolate();
    let right = last;
    while (from[right]! > 0) right = from[right]!;
    this.#place(right);
  }

  /** The time of a frame that waits, from 1 on, or of the last decided one, 0, on the present clock. */
  #timeOf(frame: number): number {
    return frame === 0 ? this.#last : this.#open[frame - 1]! + this.#offset;
  }

  /**
   * What it costs that a clock goes on by a step from one right frame to the one that is `frames` behind it.
   */
  #costOf(step: number, frames: number): number {
    if (!(step > this.#leastStep)) return Infinity;
    const doublings = Math.log2(step / frames / this.interval);
    return doublings > 0 ? Math.min(COST.longerMax, doublings * COST.longer) : -doublings * COST.shorter;
  }

  /**
   * Decides that the frame `right`, from 1 on, is right, or begins a new clock; those before it are spread
   * evenly.
   */
  #place(right: number): void {
    const isFirst = Number.isNaN(this.#last);
    const step = this.#timeOf(right) - this.#last;
    const isAnew = !isFirst && (this.#costOf(step, right) > COST.anew || this.#isClosed(step));
    if (isAnew) this.#beginAnew(right);
    const end = this.#timeOf(right);
    const start = isFirst ? end - right * this.interval : this.#last;
    for (let frame = 1; frame < right; frame++) {
      this.#decide(start + (end - start) * frame / right, false);
    }
    this.#decide(end, right === 1 && !isAnew);
    this.#drop(right);
  }

  /** Decides that the frame `first`, from 1 on, begins a new clock: the film goes on at its usual rate. */
  #beginAnew(first: number): void {
    this.isSteady = false;
    this.#otherOffset = this.#offset;
    this.#offset += this.#last + first * this.interval - this.#timeOf(first);
  }

  /** Whether the clock has been set forward, and nothing is missing. */
  #isClosed(step: number): boolean {
    return step > this.#gapMax;
  }

  /** Decides times where nothing that waits is right: the film goes on at its usual rate. */
  #extrapolate(): void {
    const count = this.#openCount;
    const interval = this.interval;
    for (let frame = 0; frame < count; frame++) {
      this.#decide((Number.isNaN(this.#last) ? 0 : this.#last) + interval, false);
    }
    this.#drop(count);
  }

  /**
   * Guesses the usual interval from the times that wait, before any is decided. A clock that is too coarse
   * gives several frames one time, and never falls.
   */
  #guessInterval(): void {
    const steps = this.#openCount - 1;
    let count = 0;
    let falls = false;
    for (let i = 1; i <= steps && count < INTERVALS; i++) {
      const step = this.#open[i]! - this.#open[i - 1]!;
      if (step > this.#shortest) this.#intervals[count++] = step;
      if (step < 0) falls = true;
    }
    if (count === 0) return;
    const guessed = falls
      ? usual(this.#intervals, count, this.#sorted)
      : (this.#open[steps]! - this.#open[0]!) / steps;
    if (guessed > this.#shortest) this.#expected = guessed;
  }
}

/** The mean of the intervals that are about as long as their median: some are rounded up, and some down. */
function usual(intervals: Float64Array, count: number, sorted: Float64Array): number {
  sorted.set(intervals.subarray(0, count));
  const middle = sorted.subarray(0, count).sort()[count >> 1]!;
  let sum = 0;
  let found = 0;
  for (let i = 0; i < count; i++) {
    const interval = intervals[i]!;
    if (interval < middle * 0.75 || interval > middle * 1.25) continue;
    sum += interval;
    found++;
  }
  return sum / found;
}
