/** When the frames of a film are shown: films may have no steady rate, and need not begin at 0. */

/** What `GET /v1/runs/:id/signals` says of the times of a decode. */
export interface SignalTimes {
  /** Media time of the first frame of each bin, rising. */
  readonly pts_ms: readonly number[];
  /** Frames of each bin. */
  readonly counts: readonly number[];
  /** Media time of the last frame; null without a decode. */
  readonly last_pts_ms: number | null;
}

/** As many bins as the service gives: one for each frame of a short film. */
export const TIME_POINTS = 4096;

export class FilmTimes {
  readonly frames: number;
  /** When the first frame is shown. */
  readonly firstMs: number;
  /** When the last one ends. */
  readonly endMs: number;
  /** Frames whose times are known, and these, both rising; between them frames are evenly spread. */
  readonly #known: readonly (readonly [frame: number, ms: number])[];

  /** `fps` counts only where there are too few frames to tell how long one is shown. */
  constructor({ pts_ms, counts, last_pts_ms }: SignalTimes, fps: number) {
    const known: [number, number][] = [];
    let frame = 0;
    pts_ms.forEach((ms, bin) => {
      known.push([frame, ms]);
      frame += counts[bin]!;
    });
    this.frames = frame;
    const lastMs = last_pts_ms ?? 0;
    if (known.length === 0) known.push([0, lastMs]);
    const [before, beforeMs] = known.findLast(([each]) => each < frame - 1) ?? [0, lastMs];
    const shownMs = lastMs > beforeMs ? (lastMs - beforeMs) / (frame - 1 - before) : 1000 / fps;
    if (known.at(-1)![0] < frame - 1) known.push([frame - 1, lastMs]);
    known.push([frame, lastMs + shownMs]);
    this.#known = known;
    this.firstMs = known[0]![1];
    this.endMs = lastMs + shownMs;
  }

  get lengthMs(): number {
    return this.endMs - this.firstMs;
  }

  /** When a frame is shown; the number of all frames gives the end. */
  msAt(frame: number): number {
    return between(this.#known, frame, 0);
  }

  /** The frame that is shown at a time. */
  frameAt(ms: number): number {
    return Math.max(0, Math.min(this.frames - 1, Math.floor(between(this.#known, ms, 1) + 1e-6)));
  }
}

/** The other number of the place where one of the two is `value`. */
function between(known: readonly (readonly [number, number])[], value: number, of: 0 | 1): number {
  const other = of === 0 ? 1 : 0;
  let low = 0, high = known.length - 1;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if (known[middle]![of] <= value) low = middle;
    else high = middle;
  }
  const [from, to] = [known[low]!, known[high]!];
  const span = to[of] - from[of];
  const share = span > 0 ? Math.max(0, Math.min(1, (value - from[of]) / span)) : 0;
  return from[other] + share * (to[other] - from[other]);
}
