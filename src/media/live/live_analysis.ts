/** What is decided of each picture of a live stream: signals at once, the gate's word in order and soon after. */

import type { World } from "../../base/world.ts";
import {
  croppedFrame,
  FULL_REGION,
  type ImageCoordinates,
  type NormalizedRegion,
} from "../../model/frames/coordinates.ts";
import { isKept } from "../../model/frames/frame_row.ts";
import { LoopDetector } from "../../model/live/loop.ts";
import {
  GATE_REASONS,
  type GateReason,
  type GateThresholds,
  type SignalColumns,
} from "../../model/frames/signals.ts";
import type { TriggerProgram } from "../../model/triggers/program.ts";
import { FIRED, MISSING_SIGNAL, tableOf } from "../../model/triggers/program_table.ts";
import { validProgram } from "../../model/triggers/validate.ts";
import type { RestrictedZone } from "../../model/policies/zone.ts";
import { emptyFrameSignals, FrameFilter, type FrameSignals, PLANE_BYTES } from "../kernels/frame_filter.ts";
import { newColumns } from "../kernels/filter_columns.ts";
import { GateKernel } from "../kernels/gate_kernel.ts";
import { type DecodedFrame, RING_FRAMES } from "./live_decoder.ts";
import { LumaReducer } from "../kernels/luma_reducer.ts";
import { TriggerKernel } from "../kernels/trigger_kernel.ts";
import { ZoneKernel } from "../kernels/zone_kernel.ts";

export interface LiveAnalysisOptions {
  readonly world: World;
  readonly gateThresholds: GateThresholds;
  /** Frames that novelty looks back on. Contract 3.3. */
  readonly windowSize: number;
  /** What is cut out of each picture before it is looked at; null is nothing. The zone's region where there is a zone. */
  readonly crop: NormalizedRegion | null;
  readonly zone: RestrictedZone | null;
  /** Throws from `load` what `validProgram` throws. */
  readonly trigger: TriggerProgram | null;
  /**
   * Once a frame, in their order, while its picture is still there. Of a frame that is kept, `keep` or `giveUp` must
   * follow: no later frame is decided before. Must not throw.
   */
  readonly onDecision: (decision: FrameDecision) => void;
}

/** Contract 3.2 and 3.3, and what else begins with a frame. */
export interface FrameDecision {
  readonly frame: DecodedFrame;
  readonly coordinates: ImageCoordinates;
  readonly gateReason: GateReason;
  readonly gateConfidence: number;
  readonly novelty: number;
  readonly motion: number;
  readonly stability: number;
  readonly confidence: number;
  /** The gate keeps it: `keep` or `giveUp` is waited for. */
  readonly isKept: boolean;
  /** The frames that the gate keeps repeat themselves, as of this frame; and whether that began with it. Contract 3.5. */
  readonly isLooping: boolean;
  readonly hasEnteredLoop: boolean;
  /** Activity entered the zone on this frame: how strong, and for how many frames in a row it had to last. */
  readonly zone:
    | { readonly score: number; readonly threshold: number; readonly consecutiveFrames: number }
    | null;
  /** The trigger fired on this frame. */
  readonly trigger:
    | {
      readonly inputs: {
        readonly motion_score: number;
        readonly novelty_score: number;
        readonly confidence: number;
      };
    }
    | null;
  /** The trigger asked for a signal that a live frame does not have. */
  readonly isTriggerSignalMissing: boolean;
}

/** D7: a cut is decided five frames or so many milliseconds late, whichever comes first. */
const CUT_DECISION_MS = 200;
/** Frames that wait for a decision; the pictures of more would leave the ring while they wait. */
const WAITING_MAX = RING_FRAMES - 2;

/** A frame that was measured and not yet decided. */
interface MeasuredFrame {
  readonly frame: DecodedFrame;
  readonly coordinates: ImageCoordinates;
  /** Its row in the filter. */
  readonly row: number;
  readonly pushedMs: number;
}

/**
 * ```
 *                 reduce, FrameFilter             cut score certain?        gate, loop, zone | trigger
 *   push(frame) ────────────────────→ [≤ 8 wait] ───────────────────→ decision ──→ onDecision
 *                     ≈ 0.4 ms                     nearly always at once        ↑ keep | giveUp
 * ```
 *
 * A frame that differs little from the one before can never become a cut, whatever follows, and is decided at once. One that
 * may be a cut is waited for, and what follows waits behind it. The gate's reference advances only by `keep`, when a JPEG was
 * made (contract 3.2); so that the frames in between are not judged by an old reference, they wait as well.
 */
export class LiveAnalysis implements Disposable {
  /** Frames that could not be looked at, as the crop leaves nothing of them. */
  framesTooSmall = 0;

  readonly #options: LiveAnalysisOptions;
  readonly #kernels: Kernels;
  readonly #loop = new LoopDetector();
  readonly #closing = new AbortController();
  readonly #plane: Uint8Array;
  readonly #signals = emptyFrameSignals();
  /** The gate takes columns: one row, used again for each frame. */
  readonly #row: SignalColumns & { readonly cutScore: Float32Array } = { count: 1, ...newColumns(1) };
  readonly #frameIndex = new Float64Array(1);
  #isResumed = false;
  #waiting: MeasuredFrame[] = [];
  #keeping: { readonly frameIndex: number; readonly hash: bigint; readonly lumaMean: number } | null = null;
  #isDeciding = false;
  #hasTimer = false;
  #coordinates: ImageCoordinates | null = null;

  private constructor(options: LiveAnalysisOptions, kernels: Kernels) {
    this.#options = options;
    this.#kernels = kernels;
    this.#plane = kernels.filter.staging.subarray(0, PLANE_BYTES);
  }

  /** Compiles the kernels and gives them memory of their own. */
  static async load(options: LiveAnalysisOptions): Promise<LiveAnalysis> {
    const { zone, trigger } = options;
    const [filter, gate, reducer, zoneKernel, triggerKernel] = await Promise.all([
      FrameFilter.load({ keepsRows: false }),
      GateKernel.load(),
      LumaReducer.load(),
      zone && ZoneKernel.load(),
      trigger && TriggerKernel.load(),
    ]);
    zoneKernel?.begin({
      enterScore: zone!.enter_motion_score,
      exitScore: zone!.exit_motion_score,
      enterAfterFrames: zone!.enter_after_frames,
      exitAfterFrames: zone!.exit_after_frames,
    });
    triggerKernel?.begin(tableOf(validProgram(trigger!)));
    return new LiveAnalysis(options, { filter, gate, reducer, zone: zoneKernel, trigger: triggerKernel });
  }

  /**
   * Measures the next frame and decides what can be decided. Its signals are in the result, which the next call fills
   * again; null for a picture of which the crop leaves less than 2x2 pixels.
   */
  push(frame: DecodedFrame): FrameSignals | null {
    const coordinates = this.#coordinatesOf(frame.pixels);
    if (!coordinates) {
      this.framesTooSmall++;
      return null;
    }
    const { filter, reducer } = this.#kernels;
    const { width, height, bytes } = frame.pixels;
    reducer.reduce(bytes.subarray(0, width * height), width, coordinates.resolved_region, this.#plane);
    const row = filter.count;
    filter.push(0, frame.ptsMs);
    this.#waiting.push({ frame, coordinates, row, pushedMs: this.#options.world.monotonicMs() });
    // A JPEG that takes so long has failed as far as the gate is concerned.
    if (this.#waiting.length > WAITING_MAX) this.#keeping = null;
    this.#decide();
    filter.readRow(row, this.#signals);
    return this.#signals;
  }

  /** A JPEG of the kept frame was made: it becomes the gate's reference. Late words, and those of other frames, are ignored. */
  keep(frameIndex: number): void {
    if (this.#keeping?.frameIndex !== frameIndex) return;
    this.#kernels.gate.keep(frameIndex, this.#keeping.hash, this.#keeping.lumaMean);
    this.#keeping = null;
    this.#decide();
  }

  /** No JPEG of the kept frame could be made: the reference stays what it was. */
  giveUp(frameIndex: number): void {
    if (this.#keeping?.frameIndex !== frameIndex) return;
    this.#keeping = null;
    this.#decide();
  }

  /** Frames that still wait are not decided any more. */
  [Symbol.dispose](): void {
    this.#closing.abort(new Error("the live analysis is closed"));
    this.#waiting = [];
  }

  #coordinatesOf({ width, height }: { width: number; height: number }): ImageCoordinates | null {
    const known = this.#coordinates?.source_extent;
    if (known?.width === width && known.height === height) return this.#coordinates;
    try {
      this.#coordinates = croppedFrame({ width, height }, this.#options.crop ?? FULL_REGION);
    } catch {
      this.#coordinates = null;
    }
    return this.#coordinates;
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

  /** Null while it has to be waited for; 0 stands for any score that is no cut. */
  #cutScoreOf({ row, pushedMs }: MeasuredFrame): number | null {
    const { filter } = this.#kernels;
    const isSettled = filter.count - row > filter.cutLookahead;
    if (isSettled) return filter.cutScoreSoFar(row);
    if (!filter.isCutOpen(row)) return 0;
    const leftMs = CUT_DECISION_MS - (this.#options.world.monotonicMs() - pushedMs);
    if (leftMs <= 0) return filter.cutScoreSoFar(row);
    this.#wakeAfter(leftMs);
    return null;
  }

  #wakeAfter(ms: number): void {
    if (this.#hasTimer) return;
    this.#hasTimer = true;
    this.#options.world.sleep(ms, this.#closing.signal).then(() => {
      this.#hasTimer = false;
      this.#decide();
    }, () => {/* closed */});
  }

  #judge({ frame, coordinates, row }: MeasuredFrame, cutScore: number): void {
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
    this.#frameIndex[0] = frame.frameIndex;
    const judged = gate.run(columns, this.#frameIndex, gateThresholds, windowSize, {
      resume: this.#isResumed,
      defersKeep: true,
    });
    this.#isResumed = true;
    const gateReason = GATE_REASONS[judged.reason[0]!]!;
    const [novelty, motion, confidence] = [judged.novelty[0]!, judged.motion[0]!, judged.confidence[0]!];
    // On the keyframe path the loop check comes first (contract 11.4), so it compares keyframes: any two frames in a row look
    // alike, and a camera would be in a loop all day.
    const hasEnteredLoop = isKept(gateReason) && this.#loop.step(signals.hashLow, signals.hashHigh);
    const hasEnteredZone = zone?.step(motion) === "entered";
    const flags = trigger?.step(frame.ptsMs, motion, novelty, confidence) ?? 0;
    if (isKept(gateReason)) {
      this.#keeping = { frameIndex: frame.frameIndex, hash, lumaMean: signals.lumaMean };
    }
    this.#options.onDecision({
      frame,
      coordinates,
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
  readonly filter: FrameFilter;
  readonly gate: GateKernel;
  readonly reducer: LumaReducer;
  readonly zone: ZoneKernel | null;
  readonly trigger: TriggerKernel | null;
}
