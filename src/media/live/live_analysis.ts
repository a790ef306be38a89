/** Analyses each frame of a live stream: signals at once, then in order and soon after the decisions of gate,
 * zone and trigger.
 */

import { timer } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import {
  croppedFrame,
  type Extent,
  FULL_REGION,
  type ImageCoordinates,
  isSameExtent,
  type NormalizedRegion,
  type Region,
} from "../../model/frames/coordinates.ts";
import type { DetectedRange } from "../../model/frames/detected_range.ts";
import { isKept } from "../../model/frames/frame_row.ts";
import { LoopDetector } from "../../model/live/loop.ts";
import {
  CUT_SCORE_THRESHOLD,
  GATE_REASONS,
  type GateReason,
  type GateThresholds,
  type SignalColumns,
} from "../../model/frames/signals.ts";
import type { TriggerProgram } from "../../model/triggers/program.ts";
import { FIRED, MISSING_SIGNAL, tableOf } from "../../model/triggers/program_table.ts";
import { validProgram } from "../../model/triggers/validate.ts";
import type { RestrictedZone } from "../../model/policies/zone.ts";
import { FrameAnalyser } from "../detection/frame_analyser.ts";
import { emptyFrameSignals, type FrameSignals } from "../kernels/frame_filter.ts";
import { FRAME_BYTES } from "../kernels/frame_planes.ts";
import { type FilterColumns, newColumns } from "../detection/filter_columns.ts";
import { copyLines, LINES_BYTES } from "../kernels/picture_lines.ts";
import { GateKernel } from "../kernels/gate_kernel.ts";
import type { FramePixels } from "./frame_ring.ts";
import { type DecodedFrame, RING_FRAMES } from "./live_decoder.ts";
import { LiveRanges } from "./live_ranges.ts";
import { FrameReducer } from "../kernels/frame_reducer.ts";
import { TriggerKernel } from "../kernels/trigger_kernel.ts";
import { ZoneKernel } from "../kernels/zone_kernel.ts";

export interface LiveAnalysisOptions {
  readonly world: World;
  readonly gateThresholds: GateThresholds;
  /** How many earlier frames novelty compares with. See docs/frames.md#context-pass. */
  readonly windowSize: number;
  /** The region of each frame that is analysed; null is all of it. With a zone it is the zone's region. */
  readonly crop: NormalizedRegion | null;
  readonly zone: RestrictedZone | null;
  /** The program of a trigger; null for none. `load` throws what `validProgram` throws. */
  readonly trigger: TriggerProgram | null;
  /**
   * Called once for each frame, in order, while its pixels are still available. For a frame that is kept,
   * `keep` or `discard` must be called afterwards; no later frame is decided before. Must not throw.
   */
  readonly onDecision: (decision: FrameDecision) => void;
  /**
   * Called when a freeze, a black stretch or a flash has ended; what lasts until the stream is interrupted
   * ends there. Frames are numbers of the session's frames, times their media times. Must not throw.
   */
  readonly onRange?: (range: DetectedRange) => void;
}

/** The decision of the gate on one frame, and what else happens on it. See docs/frames.md#gate. */
export interface FrameDecision {
  readonly frame: DecodedFrame;
  readonly coordinates: ImageCoordinates;
  /**
   * The rectangle of the frame's own pixels that was analysed; it differs from the coordinates where the
   * frame was scaled.
   */
  readonly region: Region;
  readonly gateReason: GateReason;
  readonly gateConfidence: number;
  readonly novelty: number;
  readonly motion: number;
  readonly stability: number;
  readonly confidence: number;
  /** Whether the gate keeps the frame: `keep` or `discard` must follow. */
  readonly isKept: boolean;
  /**
   * Whether the kept frames repeat themselves, and whether that began on this frame. See
   * docs/live/events.md#loop-detector.
   */
  readonly isLooping: boolean;
  readonly hasEnteredLoop: boolean;
  /**
   * Set when activity entered the zone on this frame: its score, and for how many frames in a row it had to
   * last.
   */
  readonly zone:
    | { readonly score: number; readonly threshold: number; readonly consecutiveFrames: number }
    | null;
  /** Set when the trigger fired on this frame. */
  readonly trigger:
    | {
      readonly inputs: {
        readonly motion_score: number;
        readonly novelty_score: number;
        readonly confidence: number;
      };
    }
    | null;
  /** Whether the trigger loaded a signal that a live frame does not have. */
  readonly isTriggerSignalMissing: boolean;
}

/**
 * Milliseconds after which a cut is decided if five frames have not come by then. See
 * docs/frames.md#cut-score.
 */
const CUT_DECISION_MS = 200;
/** Frames that may wait for a decision; the pixels of more would leave the ring while they wait. */
const WAITING_MAX = RING_FRAMES - 2;

/**
 * Where the analysed part of a frame lies: in the decoded picture, as readers are told, and in the scaled
 * one, as it is read here.
 */
interface Place {
  readonly coordinates: ImageCoordinates;
  readonly region: Region;
  /** The size of the frames that it is for. */
  readonly frameExtent: Extent;
}

/** A frame that was measured and not yet decided. */
interface MeasuredFrame {
  readonly frame: DecodedFrame;
  readonly place: Place;
  /** Row of the frame in the filter. */
  readonly row: number;
  readonly pushedMs: number;
}

/** A kept frame, as far as later frames are compared with it. */
interface Reference {
  readonly frameIndex: number;
  readonly hash: bigint;
  readonly lumaMean: number;
}

/**
 * ```
 *               reduce, FrameAnalyser              cut score certain?        gate, loop, zone | trigger
 *   push(frame) ────────────────────→ [≤ 8 wait] ───────────────────→ decision ──→ onDecision
 *                     ≈ 0.4 ms                     nearly always at once        ↑ keep | discard
 * ```
 *
 * A frame that differs little from the one before can never become a cut and is decided at once. A frame that
 * may be a cut waits for later frames, and those wait behind it. The gate's reference advances only by
 * `keep`, when a JPEG was made; the frames in between wait as well, so that they are not compared with an old
 * reference. Where more than eight would wait, the kept frame becomes the reference before its JPEG is made,
 * and stops being it should that fail. See docs/frames.md#gate.
 */
export class LiveAnalysis implements Disposable {
  /** Frames that could not be analysed, because the crop leaves less than 2x2 pixels of them. */
  framesTooSmall = 0;

  readonly #options: LiveAnalysisOptions;
  readonly #kernels: Kernels;
  readonly #loop = new LoopDetector();
  readonly #lines: Uint8Array;
  readonly #reduced: Uint8Array;
  readonly #signals = emptyFrameSignals();
  /** Columns of one row, as the gate takes columns; reused for each frame. */
  readonly #row: SignalColumns & FilterColumns = { count: 1, ...newColumns(1) };
  readonly #frameIndex = new Float64Array(1);
  /** What finds ranges; null where nobody wants them. */
  readonly #ranges: LiveRanges | null;
  #isResumed = false;
  /** The first row behind the last gap. */
  #rowBehindGap = -1;
  #waiting: MeasuredFrame[] = [];
  #keeping: Reference | null = null;
  /** The newest reference that has its JPEG; null before the first. */
  #certain: Reference | null = null;
  /**
   * References whose JPEGs are still being made, in order. The newest one of them is what frames are compared
   * with.
   */
  #assumed: Reference[] = [];
  #isDeciding = false;
  #isDisposed = false;
  /** The alarm that decides a frame that may be a cut when no later frames come. */
  #wakeUp: Disposable | null = null;
  #place: Place | null = null;

  private constructor(options: LiveAnalysisOptions, kernels: Kernels) {
    this.#options = options;
    this.#kernels = kernels;
    this.#ranges = options.onRange ? new LiveRanges(kernels.filter, options.onRange) : null;
    this.#lines = kernels.filter.staging.subarray(0, LINES_BYTES);
    this.#reduced = kernels.filter.staging.subarray(LINES_BYTES, LINES_BYTES + FRAME_BYTES);
  }

  /** Compiles the kernels and gives them memory of their own. */
  static async load(options: LiveAnalysisOptions): Promise<LiveAnalysis> {
    const { zone, trigger } = options;
    const [filter, gate, reducer, zoneKernel, triggerKernel] = await Promise.all([
      FrameAnalyser.load({ keepsRows: false }),
      GateKernel.load(),
      FrameReducer.load(),
      zone && ZoneKernel.load(),
      trigger && TriggerKernel.load(),
    ]);
    const kernels = { filter, gate, reducer, zone: zoneKernel, trigger: triggerKernel };
    const analysis = new LiveAnalysis(options, kernels);
    analysis.beginAgain();
    return analysis;
  }

  /** Lets zone and trigger begin anew, with the frame that is decided next. */
  beginAgain(): void {
    const { zone, trigger } = this.#options;
    this.#kernels.zone?.begin({
      enterScore: zone!.enter_motion_score,
      exitScore: zone!.exit_motion_score,
      enterAfterFrames: zone!.enter_after_frames,
      exitAfterFrames: zone!.exit_after_frames,
    });
    this.#kernels.trigger?.begin(tableOf(validProgram(trigger!)));
  }

  /**
   * Measures the next frame and decides all frames that can be decided now. Returns its signals, in an object
   * that the next call overwrites; null for a frame of which the crop leaves less than 2x2 pixels.
   */
  push(frame: DecodedFrame): FrameSignals | null {
    const place = this.#placeIn(frame.pixels);
    if (!place) {
      this.framesTooSmall++;
      return null;
    }
    const { filter, reducer } = this.#kernels;
    reducer.reduce(frame.pixels.bytes, frame.pixels, place.region, this.#reduced);
    copyLines(frame.pixels.bytes, frame.pixels.width, place.region, this.#lines);
    const row = filter.count;
    filter.report(frame.report);
    filter.push(LINES_BYTES, frame.ptsMs, true, true);
    this.#ranges?.push(filter.rangeMeasures, frame.frameIndex, frame.ptsMs);
    this.#waiting.push({ frame, place, row, pushedMs: this.#options.world.monotonicMs() });
    if (this.#waiting.length > WAITING_MAX) this.#assumeKept();
    this.#decide();
    filter.readRow(row, this.#signals);
    return this.#signals;
  }

  /** The rectangle of the newest frame that is analysed, the same object as long as it does not change. */
  get region(): Region | null {
    return this.#place?.region ?? null;
  }

  /**
   * A JPEG of the kept frame was made: it becomes the gate's reference. Calls for other frames are ignored.
   */
  keep(frameIndex: number): void {
    const kept = this.#pending(frameIndex);
    if (!kept) return;
    this.#certain = kept;
    this.#assumed = this.#assumed.filter((other) => other.frameIndex > frameIndex);
    if (kept !== this.#keeping) return;
    this.#compareWith(kept);
    this.#keeping = null;
    this.#decide();
  }

  /**
   * To be called where no JPEG of the kept frame could be made: the reference stays, or is again, the one
   * before.
   */
  discard(frameIndex: number): void {
    const failed = this.#pending(frameIndex);
    if (!failed) return;
    if (failed === this.#keeping) {
      this.#keeping = null;
      return this.#decide();
    }
    const wasNewest = failed === this.#assumed.at(-1);
    this.#assumed = this.#assumed.filter((other) => other !== failed);
    if (wasNewest) this.#compareWith(this.#assumed.at(-1) ?? this.#certain);
  }

  /**
   * The stream was interrupted: a range that lasts until now does not go on behind the gap, and no fault
   * begins there.
   */
  interrupt(): void {
    this.#ranges?.end();
    this.#rowBehindGap = this.#kernels.filter.count;
  }

  /** To be called when no more frames come: those that wait are decided with what has come. */
  finish(): void {
    this.#isDeciding = true;
    for (let next = this.#waiting.shift(); next; next = this.#waiting.shift()) {
      this.#assumeKept();
      this.#judge(next, this.#kernels.filter.cutScoreSoFar(next.row));
    }
    this.#isDeciding = false;
  }

  /** Frames that still wait are no longer decided. */
  [Symbol.dispose](): void {
    if (!this.#isDisposed) this.#ranges?.end();
    this.#isDisposed = true;
    this.#wakeUp?.[Symbol.dispose]();
    this.#waiting = [];
  }

  #placeIn({ width, height, sourceExtent }: FramePixels): Place | null {
    const known = this.#place;
    if (
      known && isSameExtent(known.frameExtent, { width, height }) &&
      isSameExtent(known.coordinates.source_extent, sourceExtent)
    ) {
      return known;
    }
    const crop = this.#options.crop ?? FULL_REGION;
    try {
      const { resolved_region: region } = croppedFrame({ width, height }, crop);
      const { width: analysedWidth, height: analysedHeight } = region;
      const analysis_extent = { width: analysedWidth, height: analysedHeight };
      const coordinates = { ...croppedFrame(sourceExtent, crop), analysis_extent };
      this.#place = { coordinates, region, frameExtent: { width, height } };
      this.#kernels.filter.setRegion(coordinates.resolved_region);
    } catch {
      this.#place = null;
    }
    return this.#place;
  }

  /** The kept frame of this index whose JPEG is being made, unless a later one has its JPEG already. */
  #pending(frameIndex: number): Reference | undefined {
    if (this.#keeping?.frameIndex === frameIndex) return this.#keeping;
    return this.#assumed.find((other) => other.frameIndex === frameIndex);
  }

  /**
   * Goes on as if the JPEG had been made, because the pixels of the frames that wait would leave the ring.
   * The encoder has a copy of the kept frame's pixels, so it nearly always succeeds, for instance once its
   * process has started.
   */
  #assumeKept(): void {
    if (!this.#keeping) return;
    this.#assumed.push(this.#keeping);
    this.#compareWith(this.#keeping);
    this.#keeping = null;
  }

  #compareWith(reference: Reference | null): void {
    const { gate } = this.#kernels;
    if (reference) gate.keep(reference.frameIndex, reference.hash, reference.lumaMean);
    else gate.forget();
  }

  #decide(): void {
    if (this.#isDeciding) return;
    this.#isDeciding = true;
    while (this.#keeping === null && this.#waiting.length > 0) {
      const cutScore = this.#cutScoreOf(this.#waiting[0]!);
      if (cutScore === null) break;
      this.#judge(this.#waiting.shift()!, cutScore);
    }
    this.#isDeciding = false;
  }

  /**
   * The cut score of a frame; null while it is not known well enough. 0 stands for any score that is no cut.
   */
  #cutScoreOf({ row, pushedMs }: MeasuredFrame): number | null {
    const { filter } = this.#kernels;
    const isFinal = filter.count - row > filter.cutLookahead;
    if (isFinal) return filter.cutScoreSoFar(row);
    const isCutOpen = filter.isCutOpen(row);
    if (!isCutOpen && !filter.isArtifactOpen(row)) return 0;
    const leftMs = CUT_DECISION_MS - (this.#options.world.monotonicMs() - pushedMs);
    if (leftMs <= 0) return filter.cutScoreSoFar(row);
    this.#wakeAfter(leftMs);
    return null;
  }

  #wakeAfter(ms: number): void {
    if (this.#isDisposed) return;
    this.#wakeUp ??= timer(this.#options.world, ms, () => {
      this.#wakeUp = null;
      this.#decide();
    });
  }

  #judge({ frame, place: { coordinates, region }, row }: MeasuredFrame, cutScore: number): void {
    const { filter, gate, zone, trigger } = this.#kernels;
    const signals = this.#signals;
    filter.readRow(row, signals);
    const { gateThresholds, windowSize } = this.#options;
    const columns = this.#row;
    const hash = BigInt(signals.hashHigh) << 32n | BigInt(signals.hashLow);
    columns.ptsMs[0] = frame.ptsMs;
    columns.perceptualHash[0] = hash;
    columns.lumaMean[0] = signals.lumaMean;
    columns.flickerScore[0] = signals.flickerScore;
    columns.ghostingScore[0] = signals.ghostingScore;
    columns.noiseVarianceScore[0] = signals.noiseVarianceScore;
    columns.cutScore[0] = cutScore;
    // Behind a gap the picture is another one, which is no fault.
    filter.judgeArtifact(row, cutScore >= CUT_SCORE_THRESHOLD || row === this.#rowBehindGap, columns);
    this.#frameIndex[0] = frame.frameIndex;
    const judged = gate.run(columns, this.#frameIndex, gateThresholds, windowSize, {
      resume: this.#isResumed,
      keepsAtOnce: false,
    });
    this.#isResumed = true;
    const gateReason = GATE_REASONS[judged.reason[0]!]!;
    const [novelty, motion, confidence] = [judged.novelty[0]!, judged.motion[0]!, judged.confidence[0]!];
    // The loop detector compares kept frames only: any two consecutive frames look alike, so that with all
    // frames a camera would always be in a loop. See docs/live/events.md#loop-detector.
    const hasEnteredLoop = isKept(gateReason) && this.#loop.step(signals.hashLow, signals.hashHigh);
    const hasEnteredZone = zone?.step(motion) === "entered";
    const flags = trigger?.step(frame.ptsMs, motion, novelty, confidence) ?? 0;
    if (isKept(gateReason)) {
      this.#keeping = { frameIndex: frame.frameIndex, hash, lumaMean: signals.lumaMean };
    }
    this.#options.onDecision({
      frame,
      coordinates,
      region,
      gateReason,
      gateConfidence: judged.gateConfidence[0]!,
      novelty,
      motion,
      stability: judged.temporalStability[0]!,
      confidence,
      isKept: isKept(gateReason),
      isLooping: this.#loop.isLooping,
      hasEnteredLoop,
      zone: hasEnteredZone
        ? {
          score: motion,
          threshold: this.#options.zone!.enter_motion_score,
          consecutiveFrames: this.#options.zone!.enter_after_frames,
        }
        : null,
      trigger: (flags & FIRED) !== 0
        ? { inputs: { motion_score: motion, novelty_score: novelty, confidence } }
        : null,
      isTriggerSignalMissing: (flags & MISSING_SIGNAL) !== 0,
    });
  }
}

interface Kernels {
  readonly filter: FrameAnalyser;
  readonly gate: GateKernel;
  readonly reducer: FrameReducer;
  readonly zone: ZoneKernel | null;
  readonly trigger: TriggerKernel | null;
}
