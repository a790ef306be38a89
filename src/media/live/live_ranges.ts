/** Freezes, black and flashes of a live stream, reported when they end, in the frame numbers of its session.
 */

import type { DetectedRange } from "../../model/frames/detected_range.ts";
import type { RangeMeasures } from "../kernels/frame_filter.ts";
import { RangeDetectors } from "../detection/range_detectors.ts";
import type { CutScores } from "../detection/ranges/range_sink.ts";

/**
 * Detectors that work on live streams: the others look back further than a live stream is kept, or need the
 * end of what they find.
 */
const LIVE_DETECTORS = ["freeze", "black", "flash"] as const;
/**
 * Places that are kept where the session's frame numbers jump. A range that began before the oldest one is
 * off by what was dropped there.
 */
const JUMPS_MAX = 256;

/**
 * A jump of the frame numbers: from this row on, a frame of the session has the number of its row plus
 * `offset`.
 */
interface Jump {
  readonly row: number;
  readonly offset: number;
}

export class LiveRanges {
  readonly #detectors: RangeDetectors;
  readonly #onRange: (range: DetectedRange) => void;
  /** Rows before the detectors were started anew: they count frames from 0 again. */
  #rowsBefore = 0;
  #rows = 0;
  #jumps: Jump[] = [];

  constructor(cuts: CutScores, onRange: (range: DetectedRange) => void) {
    const sinceStart: CutScores = { cutScore: (row) => cuts.cutScore(this.#rowsBefore + row) };
    this.#detectors = new RangeDetectors(sinceStart, LIVE_DETECTORS);
    this.#onRange = onRange;
  }

  /** Takes the next row of the filter; `frameIndex` is the number of its frame in the session. */
  push(measures: RangeMeasures, frameIndex: number, ptsMs: number): void {
    const row = this.#rows++ - this.#rowsBefore;
    const offset = frameIndex - row;
    if (offset !== this.#jumps.at(-1)?.offset) {
      this.#jumps.push({ row, offset });
      if (this.#jumps.length > JUMPS_MAX) this.#jumps.shift();
    }
    this.#detectors.push(measures, ptsMs);
    this.#report(this.#detectors.take());
  }

  /** The stream was interrupted or has ended: what lasts until now ends here. */
  end(): void {
    this.#report(this.#detectors.finish());
    this.#detectors.reset();
    this.#rowsBefore = this.#rows;
    this.#jumps = [];
  }

  #report(found: readonly DetectedRange[]): void {
    for (const range of found) {
      const { startFrame, endFrame } = range;
      this.#onRange({
        ...range,
        startFrame: this.#frameIndex(startFrame),
        endFrame: this.#frameIndex(endFrame),
      });
    }
  }

  #frameIndex(row: number): number {
    const jump = this.#jumps.findLast((each) => each.row <= row) ?? this.#jumps[0]!;
    return row + jump.offset;
  }
}
