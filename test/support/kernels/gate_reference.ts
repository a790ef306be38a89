/** The reference implementation of `assembly/gate.ts`: docs/frames.md#gate and docs/frames.md#context-pass,
 * frame by frame.
 */

import { GATE_REASONS } from "../../../src/model/frames/signals.ts";
import type {
  GateColumns,
  GateReason,
  GateThresholds,
  SignalColumns,
} from "../../../src/model/frames/signals.ts";
import { hammingDistance } from "./filter_reference.ts";

interface SeenFrame {
  readonly hash: bigint;
  readonly luma: number;
}

/** Keeps its state between calls, like a kernel with `resume`. */
export class ReferenceGate {
  #reference: (SeenFrame & { frameIndex: number }) | undefined;
  /**
   * Frame i is in slot i % windowSize. Sums are made in slot order, even and odd slots separately, as in the
   * kernel.
   */
  readonly #window: SeenFrame[] = [];
  #frames = 0;

  constructor(
    readonly thresholds: GateThresholds,
    readonly windowSize: number,
    readonly keepsAtOnce = true,
  ) {}

  run(signals: SignalColumns, frameIndex: Float64Array): GateColumns {
    const rows = Array.from(
      { length: signals.count },
      (_, row) => this.#step(signals, frameIndex[row]!, row),
    );
    return {
      count: signals.count,
      reason: Uint8Array.from(rows, (row) => GATE_REASONS.indexOf(row.reason)),
      gateConfidence: Float64Array.from(rows, (row) => row.gateConfidence),
      novelty: Float64Array.from(rows, (row) => row.novelty),
      temporalStability: Float64Array.from(rows, (row) => row.stability),
      motion: Float64Array.from(rows, (row) => row.motion),
      confidence: Float64Array.from(rows, (row) => row.confidence),
    };
  }

  keep(frameIndex: number, hash: bigint, luma: number): void {
    this.#reference = { frameIndex, hash, luma };
  }

  #step(signals: SignalColumns, frameIndex: number, row: number) {
    const frame = { hash: signals.perceptualHash[row]!, luma: signals.lumaMean[row]! };
    const [reason, gateConfidence] = this.#decide(signals, frame, frameIndex, row);
    const isKeep = reason === "initial_frame" || reason === "scene_cut" || reason === "periodic_keepalive";
    if (isKeep && this.keepsAtOnce) this.#reference = { frameIndex, ...frame };
    return { reason, gateConfidence, ...this.#observe(frame) };
  }

  #decide(signals: SignalColumns, frame: SeenFrame, frameIndex: number, row: number): [GateReason, number] {
    const reference = this.#reference;
    if (!reference) return ["initial_frame", 1];
    const cutScore = signals.cutScore?.[row] ?? NaN;
    const hamming = hammingDistance(frame.hash, reference.hash);
    const shift = Math.fround(Math.abs(Math.fround(frame.luma - reference.luma)));
    const limits = this.thresholds;
    const meets = (score: number, limit: number) => score >= Math.fround(limit);
    if (Number.isNaN(cutScore)) {
      if (hamming >= limits.sceneCutHammingThreshold) return ["scene_cut", hamming / 64];
    } else if (cutScore >= 0.5) return ["scene_cut", cutScore];
    const artifactScore = signals.artifactScore?.[row] ?? NaN;
    if (artifactScore >= 0.5) return ["temporal_fault", artifactScore];
    if (frameIndex - reference.frameIndex >= limits.keepaliveEveryFrames) return ["periodic_keepalive", 1];
    if (!Number.isNaN(artifactScore)) return ["no_trigger", 0];
    if (meets(shift, limits.lumaShiftThreshold)) return ["exposure_shift", shift];
    const [flicker, ghosting, noise] = [
      signals.flickerScore[row]!,
      signals.ghostingScore[row]!,
      signals.noiseVarianceScore[row]!,
    ];
    if (meets(flicker, limits.flickerThreshold)) return ["flicker_suspected", flicker];
    if (meets(ghosting, limits.ghostingThreshold)) return ["ghosting_suspected", ghosting];
    if (meets(noise, limits.noiseVarianceThreshold)) return ["noise_variance_spike", noise];
    return ["no_trigger", 0];
  }

  #observe(frame: SeenFrame) {
    const window = this.#window;
    const count = window.length;
    const previous = window[(this.#frames + this.windowSize - 1) % this.windowSize];
    const hammings = window.reduce((sum, seen) => sum + hammingDistance(frame.hash, seen.hash), 0);
    const distances = [0, 0];
    window.forEach((seen, slot) => distances[slot % 2]! += Math.abs(frame.luma - seen.luma));
    const novelty = count === 0 ? 1 : hammings / (64 * count);
    const stability = count === 0 ? 1 : clampUnit(1 - (distances[0]! + distances[1]!) / count);
    const motion = count === 0 ? 0 : hammingDistance(frame.hash, previous!.hash) / 64;
    const confidence = clampUnit(0.45 * novelty + 0.35 * (1 - stability) + 0.20 * motion);
    window[this.#frames % this.windowSize] = frame;
    this.#frames++;
    return { novelty, stability, motion, confidence };
  }
}

function clampUnit(value: number): number {
  return Math.min(Math.max(value, 0), 1);
}
