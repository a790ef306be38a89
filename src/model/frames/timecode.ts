/** Non-drop SMPTE timecodes of media times: at which rates there are any, and which one a time has. See
 * docs/api/reading.md#edl.
 */

/** A rate at which timecodes can count. */
export interface TimecodeRate {
  /** Frames that one second of timecode counts. */
  readonly nominal: number;
  /** The time for so many frames: 1000 ms, or 1001 at the rates of NTSC, such as 30000/1001. */
  readonly secondMs: 1000 | 1001;
}

/** The highest rate with timecodes, which have two digits for frames. */
const NOMINAL_MAX = 100;
/** The relative difference below which two rates are equal, such as 2997/100 and 30000/1001. */
const SAME_RATE = 0.00002;

/**
 * The rate in timecodes; null where the rate is unknown, an average of a variable one such as 23.42, or too
 * high for two digits.
 */
export function timecodeRate(fps: number | null): TimecodeRate | null {
  if (fps === null) return null;
  const nominal = Math.round(fps);
  if (nominal < 1 || nominal > NOMINAL_MAX) return null;
  const secondMs = ([1000, 1001] as const).find((ms) =>
    Math.abs(nominal * 1000 / ms - fps) < fps * SAME_RATE
  );
  return secondMs === undefined ? null : { nominal, secondMs };
}

/**
 * The number of the frame that is next to the time: times are rounded to milliseconds, and a frame lasts at
 * least ten.
 */
export function frameAt(ms: number, { nominal, secondMs }: TimecodeRate): number {
  return Math.round(ms * nominal / secondMs);
}

/** The timecode of a frame, `HH:MM:SS:FF`, which begins again after 24 hours. */
export function timecode(frame: number, { nominal }: TimecodeRate): string {
  const seconds = Math.floor(frame / nominal);
  const parts = [
    Math.floor(seconds / 3600) % 24,
    Math.floor(seconds / 60) % 60,
    seconds % 60,
    frame % nominal,
  ];
  return parts.map((part) => String(part).padStart(2, "0")).join(":");
}
