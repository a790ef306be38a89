/** How frames carry what ffmpeg would change or forget: their own times past its muxers, and their numbers
 * past its filters.
 */

import type { MediaInfo } from "../../media_info.ts";

/** Containers of broadcasts and recordings that are cut and joined as they are, so that their clocks jump. */
const JUMPING = /^(mpegts|mpeg|hls|wtv|nut|ogg|rm)\b/;
/** Longest gap in seconds: behind a longer one the clock was set forward. */
export const GAP_S = 10;

/** What is known of the times of a source before they come. */
export interface SourceClock {
  /** Unit of the times in seconds, such as `1/90000`. */
  readonly timeBase: string;
  /** The longest gap between frames that is believed, seconds; any unless given. */
  readonly gapMaxS?: number;
  /** Ticks by which steps below 0 are too large as they come; 0 for a source that has none. */
  readonly stepBackTicks: number;
  /** Whether its times say nothing of a frame, so that only its rate may be known. */
  readonly isSilent: boolean;
}

/** What is known of the times of a source with video. */
export function sourceClock({ formatName, video, mp4Clock }: MediaInfo): SourceClock {
  return {
    timeBase: video!.timeBase,
    ...(JUMPING.test(formatName) && { gapMaxS: GAP_S }),
    stepBackTicks: mp4Clock === "steps_back" ? 2 ** 32 : 0,
    isSilent: mp4Clock === "silent" || mp4Clock === "unordered",
  };
}

/**
 * Most seconds of a time in both directions; a time beyond counts as this. Six days are more than any film,
 * and small enough for exact numbers.
 */
const RANGE_S = 2 ** 19;

/**
 * ffmpeg's muxers and some encoders take no time that is not above the one before: they change it, or end. So
 * the packets of frames get rising times of decoding, which nobody needs, and the times at which they are
 * shown go through as the source has them. They are made positive, and have a bit behind them:
 *
 * ```
 *   in the pipe    2 * (time + 2 * range) + 1 where ffmpeg has begun its filters anew, as the picture changed its format
 * ```
 */
export class SourceTimes {
  /** Time of the frame that was read last, in the time base of the source. */
  ticks = 0;
  /** Whether ffmpeg's filters began with the frame that was read last: they count frames from there. */
  isFirst = false;
  /** Numerator of the time base: seconds = ticks * numerator / denominator. */
  readonly numerator: number;
  readonly denominator: number;

  readonly #range: number;
  readonly #stepBackTicks: number;
  readonly #isSilent: boolean;

  constructor({ timeBase, stepBackTicks, isSilent }: SourceClock) {
    this.#stepBackTicks = stepBackTicks;
    this.#isSilent = isSilent;
    const [numerator, denominator] = timeBase.split("/").map(Number);
    this.numerator = numerator!;
    this.denominator = denominator!;
    this.#range = Math.floor(RANGE_S * this.denominator / this.numerator);
  }

  /**
   * Filter for ffmpeg that packs times into those of the pipe; it comes before any filter that works on
   * pictures.
   */
  get filter(): string {
    const range = this.#range;
    return `settb=${this.numerator}/${this.denominator},` +
      `setpts='2*(clip(PTS,-${range},${range})+${2 * range})+eq(N,0)'`;
  }

  /** Takes the time of a frame in the pipe, whose muxer has a time base that may be finer. */
  read(pts: number, numerator: number, denominator: number): void {
    const carried = Math.round(pts / (denominator * this.numerator / (numerator * this.denominator)));
    this.isFirst = carried % 2 === 1;
    const ticks = Math.floor(carried / 2) - 2 * this.#range;
    const stepBack = this.#stepBackTicks;
    if (this.#isSilent) this.ticks = 0;
    else if (stepBack === 0) this.ticks = ticks;
    else this.ticks = ticks - stepBack * Math.round((ticks - this.ticks) / stepBack);
  }
}

/**
 * Options by which no frame is repeated or dropped for a steady rate, and times are in `timeBase`. A ratio is
 * the one form that every version of ffmpeg takes: the word for "as the source" is -1 or `demux`, or fails
 * behind some filters.
 */
export function ownTimes(timeBase: string): string[] {
  return ["-fps_mode", "passthrough", "-enc_time_base", timeBase];
}

/** Options of ffmpeg for an output with `SourceTimes`: times of decoding that rise. */
export const RISING_DECODE_TIMES: readonly string[] = ["-bsf:v", "setts=dts=N"];

/**
 * ```
 *   time of a JPEG in millionths     when the filters began, in quarters of a millisecond | number of the frame | whether it is taken
 *   bits                                                                               29 | 22                  | 1
 * ```
 *
 * It rises even where ffmpeg begins its filters, and so its numbers, anew.
 */
const BEGINNING_UNIT_US = 250;
const BEGINNINGS = 2 ** 29;
const NUMBERS = 2 ** 22;

/** Unit in seconds of the times that carry the numbers of frames. */
export const NUMBERING_TIME_BASE = "1/1000000";

/**
 * Gives frames their numbers as times. `taken` is an expression that is 1 for the frames that keep to a rate
 * and 0 for others, over the time T of a frame and that of the first one, STARTT; null takes all.
 */
export function numberingFilters(taken: string | null): string[] {
  const beginning = `mod(floor(RTCSTART/${BEGINNING_UNIT_US}),${BEGINNINGS})*${2 * NUMBERS}`;
  return [
    `settb=${NUMBERING_TIME_BASE}`,
    `setpts='${beginning}+2*N+${taken === null ? "1" : `(${taken})`}'`,
    ...(taken === null ? [] : ["select='mod(pts,2)'"]),
  ];
}

/**
 * Which frame the time of a JPEG means: its number since the filters began, and a value that tells their
 * beginnings apart.
 */
export function numberIn(pts: number): { readonly number: number; readonly beginning: number } {
  return { number: Math.floor(pts % (2 * NUMBERS) / 2), beginning: Math.floor(pts / (2 * NUMBERS)) };
}
