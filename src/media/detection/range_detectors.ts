/** The detectors of ranges, fed frame by frame: black, freezes, flashes, gradual transitions and repeats. */

import { type DetectedRange, type Detector, DETECTORS } from "../../model/frames/detected_range.ts";
import { LIMITS } from "../../contract/limits.ts";
import { type BlackBounds, BlackDetector } from "./ranges/black.ts";
import { type FlashBounds, FlashDetector } from "./ranges/flash.ts";
import { CELL_SAMPLES, CELLS, FrameHistory, LUMA_CELLS, PROFILE_VALUES } from "./ranges/frame_history.ts";
import type { RangeMeasures } from "../kernels/frame_filter.ts";
import { FreezeDetector } from "./freeze/freeze.ts";
import type { FreezeBounds } from "./freeze/still_stretch.ts";
import { GradualDetector, type StretchJudge } from "./gradual/gradual.ts";
import { type RepeatBounds, RepeatDetector } from "./ranges/repeat.ts";
import { REPEAT_LOOKAHEAD, RepeatedFrames } from "./ranges/repeated_frames.ts";
import type { CutScores, RangeDetector, RangeSink } from "./ranges/range_sink.ts";

/**
 * Most ranges that are kept: one more than are used, so that the user of the ranges sees that there were
 * more.
 */
const RANGES_MAX = LIMITS.detection.rangesMax + 1;

type HistoryDetector = Exclude<Detector, "repeat">;

/** What detectors decide by, where it is not what the service has: for the laboratory. */
export interface RangeNumbers {
  readonly black?: BlackBounds;
  readonly flash?: FlashBounds;
  readonly freeze?: FreezeBounds;
  readonly repeat?: RepeatBounds;
  /** What tells gradual transitions. */
  readonly judge?: StretchJudge;
}

type MakeDetector = (sink: RangeSink, cuts: CutScores, numbers: RangeNumbers) => RangeDetector;

const MAKE: Readonly<Record<HistoryDetector, MakeDetector>> = {
  black: (sink, _, { black }) => new BlackDetector(sink, black),
  flash: (sink, _, { flash }) => new FlashDetector(sink, flash),
  freeze: (sink, cuts, { freeze }) => new FreezeDetector(sink, cuts, freeze),
  gradual_transition: (sink, _, { judge }) => new GradualDetector(sink, judge),
};

/** The measures of a frame, kept while it is not known whether it only repeats the one before. */
interface WaitingFrame {
  readonly measures: {
    readonly cellSums: Uint16Array;
    readonly cellMoves: Uint16Array;
    readonly brightSamples: Int32Array;
    readonly profiles: Int16Array;
  };
  ptsMs: number;
}

/**
 * ```
 *        ┌→ RepeatDetector ───────────────────────────────────────────┐
 *   push ┤                                        ┌→ BlackDetector ──┐ │
 *        └→ waits while it may repeat ─→ FrameHistory ┼→ FreezeDetector ─┼─┴→ ranges: take(), finish()
 *                                                 └→ ...            ─┘
 * ```
 *
 * The memory is bounded, so a stream may be endless if `take` is called now and then. An ordinary frame
 * allocates nothing.
 */
export class RangeDetectors {
  readonly #history = new FrameHistory();
  readonly #repeated = new RepeatedFrames();
  /** Frame i in slot i % length, those from `#next` on. */
  readonly #waiting: readonly WaitingFrame[] = Array.from({ length: REPEAT_LOOKAHEAD + 1 }, waitingFrame);
  /** Frames that came, and the first one that waits. */
  #count = 0;
  #next = 0;
  readonly #detectors: readonly RangeDetector[];
  readonly #repeat: RepeatDetector | null;
  #found: DetectedRange[] = [];

  constructor(cuts: CutScores, wanted: readonly Detector[] = DETECTORS, numbers: RangeNumbers = {}) {
    const sink: RangeSink = {
      add: (type, startFrame, endFrame, startPtsMs, endPtsMs, confidence) => {
        if (this.#found.length >= RANGES_MAX) return;
        this.#found.push({ type, startFrame, endFrame, startPtsMs, endPtsMs, confidence });
      },
    };
    const ofHistory: CutScores = { cutScore: (frame) => cuts.cutScore(this.#numberOf(frame)) };
    this.#detectors = wanted.filter((type) => type !== "repeat").map((type) =>
      MAKE[type](sink, ofHistory, numbers)
    );
    this.#repeat = wanted.includes("repeat") ? new RepeatDetector(sink, numbers.repeat) : null;
  }

  /** Starts a new stream: the next frame is its first one. */
  reset(): void {
    this.#found = [];
    this.#count = this.#next = 0;
    this.#repeated.reset();
    this.#history.reset();
    this.#repeat?.reset();
    for (const detector of this.#detectors) detector.reset();
  }

  push(measures: RangeMeasures, ptsMs: number): void {
    this.#repeat?.push(measures.cellSums, ptsMs);
    if (this.#detectors.length === 0) return;
    this.#repeated.push(movedOf(measures));
    const number = this.#count++;
    if (number === this.#next && this.#repeated.isRepeat(number, false) === false) {
      this.#show(measures, ptsMs, this.#next++);
      return;
    }
    const frame = this.#waiting[number % this.#waiting.length]!;
    frame.measures.cellSums.set(measures.cellSums);
    frame.measures.cellMoves.set(measures.cellMoves);
    frame.measures.brightSamples.set(measures.brightSamples);
    frame.measures.profiles.set(measures.profiles);
    frame.ptsMs = ptsMs;
    this.#passOn(false);
  }

  /** The ranges that ended since the last call. */
  take(): readonly DetectedRange[] {
    const found = this.#found;
    if (found.length > 0) this.#found = [];
    return found;
  }

  /**
   * Ends the stream; gives the ranges that were not taken, sorted by start. `reset` must be called before the
   * next frame.
   */
  finish(): DetectedRange[] {
    this.#passOn(true);
    this.#repeat?.finish();
    for (const detector of this.#detectors) detector.finish(this.#history);
    return this.#found.toSorted((a, b) => a.startFrame - b.startFrame);
  }

  /** Takes the frames of which it is known by now whether they repeat the one before. */
  #passOn(isEnd: boolean): void {
    while (this.#next < this.#count) {
      const isFull = this.#count - this.#next === this.#waiting.length;
      const isRepeat = this.#repeated.isRepeat(this.#next, isEnd || isFull);
      if (isRepeat === null) return;
      const number = this.#next++;
      const { measures, ptsMs } = this.#waiting[number % this.#waiting.length]!;
      if (isRepeat) this.#history.extend(ptsMs, number);
      else this.#show(measures, ptsMs, number);
    }
  }

  #show(measures: RangeMeasures, ptsMs: number, number: number): void {
    this.#history.push(measures, ptsMs, number);
    // By index: here an iterator would allocate for each frame.
    for (let i = 0; i < this.#detectors.length; i++) this.#detectors[i]!.push(this.#history);
  }

  /** The number among all frames of one in the history; NaN for one that it has not. */
  #numberOf(frame: number): number {
    const isKept = frame >= this.#history.oldest && frame < this.#history.count;
    return isKept ? this.#history.first(frame) : NaN;
  }
}

function waitingFrame(): WaitingFrame {
  return {
    measures: {
      cellSums: new Uint16Array(CELLS),
      cellMoves: new Uint16Array(LUMA_CELLS),
      brightSamples: new Int32Array(1),
      profiles: new Int16Array(PROFILE_VALUES),
    },
    ptsMs: 0,
  };
}

/** Mean absolute difference of the luma samples to those of the frame before. */
function movedOf({ cellMoves }: RangeMeasures): number {
  let sum = 0;
  for (let cell = 0; cell < LUMA_CELLS; cell++) sum += cellMoves[cell]!;
  return sum / (LUMA_CELLS * CELL_SAMPLES);
}
