/** Decides which frames are at fault and how, from measures of the frames around each:
 * docs/detection/faults.md.
 */

import { artifactCode, type ArtifactKind } from "../../../model/frames/detected_range.ts";
import { ArtifactMeasures } from "./artifact_measures.ts";
import { DamagedParts } from "./damaged_parts.ts";
import { isolatedRun, mayBeginRun } from "./isolated_frames.ts";
import { FlickeringLight } from "./flickering_light.ts";
import { CombedFrames } from "./combed_frames.ts";
import { DisorderedFrames } from "./disordered_frames.ts";
import { CutsOfDamage } from "./cuts_of_damage.ts";
import { ReportedDamage } from "./reported_damage.ts";
import { JudderingFrames } from "./juddering_frames.ts";
import { LastingFault } from "./lasting_fault.ts";

const DECODE_DAMAGE = artifactCode("decode_damage");
const NOISE_BURST = artifactCode("noise_burst");

/**
 * Decides on faults. A fault begins and ends at once, and the picture goes on as before. Frames are pushed in
 * order and decided in order, each with the frames that have come until then. Allocates nothing per frame.
 */
export class ArtifactDetector {
  /** Score of the frame that was decided last, in [0,1]: at fault from 0.5 on. */
  score = NaN;
  /**
   * Kind of the fault of the frame that was decided last: 0 for none, else 1 + the index in ARTIFACT_KINDS.
   */
  kind = 0;
  /** Whether a cut there would be none, because damage only begins or ends. */
  isNoCut = false;

  readonly #measures = new ArtifactMeasures();
  readonly #reported = new ReportedDamage(this.#measures);
  readonly #lasting = new LastingFault(this.#measures);
  readonly #disordered = new DisorderedFrames(this.#measures);
  readonly #juddering = new JudderingFrames(this.#measures);
  readonly #flickering = new FlickeringLight(this.#measures);
  readonly #cuts = new CutsOfDamage();
  readonly #damaged = new DamagedParts();
  #wasReported = false;
  #decided = 0;
  /** Frames up to this one belong to a run that was found. */
  #runEnd = -1;
  #runStrength = NaN;
  #runKind: ArtifactKind = "foreign_frame";
  readonly #combed = new CombedFrames(this.#measures);

  reset(): void {
    this.#measures.reset();
    this.#reported.reset();
    this.#lasting.reset();
    this.#disordered.reset();
    this.#juddering.reset();
    this.#cuts.reset();
    this.#damaged.reset();
    this.#wasReported = false;
    this.#decided = 0;
    this.#runEnd = -1;
    this.#combed.reset();
  }

  /** Takes the next frame; `cellSums` are those of `RangeMeasures`. */
  push(measures: Float32Array, cellSums: Uint16Array, ptsMs: number): void {
    this.#measures.push(measures);
    this.#cuts.push(cellSums);
    this.#reported.push(ptsMs);
    this.#juddering.push(ptsMs);
    this.#flickering.push();
    this.#damaged.push(measures);
  }

  /** What the decoder says of the next frame that has no report yet: bits of `REPORT`, 0 for nothing. */
  report(report: number): void {
    this.#reported.report(report);
  }

  /** Frames that were decided. */
  get decided(): number {
    return this.#decided;
  }

  /**
   * Whether the frames behind it may yet show that a frame, which is the next to be decided, is at fault.
   * Most frames are like their neighbours, and then a live stream need not wait.
   */
  isOpen(frame: number): boolean {
    const measures = this.#measures;
    if (this.#combed.isOpen(frame) || this.#reported.isShown) return true;
    if (this.#lasting.isOpen(frame) || this.#damaged.isOpen(frame) || this.#reported.isOpen(frame)) {
      return true;
    }
    if (this.#juddering.isOpen(frame)) return true;
    return this.#disordered.isOpen(frame) || mayBeginRun(measures, frame) || this.#flickering.isOpen(frame);
  }

  /** Decides the next frame; then `score`, `kind` and `isNoCut` are its own. */
  decide(isCut: boolean): void {
    const frame = this.#decided++;
    this.#judge(frame, isCut);
    const isDamaged = this.kind === DECODE_DAMAGE || this.kind === NOISE_BURST;
    this.isNoCut = this.#cuts.isNone(frame, isCut, isDamaged, this.#lasting.hasBegun(frame));
  }

  #judge(frame: number, isCut: boolean): void {
    this.score = 0;
    this.kind = 0;
    if (this.#reported.isShown && !isCut && this.#damaged.isOver(frame)) this.#reported.heal();
    const reported = this.#reported.step(frame, isCut);
    const isRefreshed = this.#wasReported && reported === 0;
    // Behind reported damage the picture comes back, which is as abrupt as a fault.
    const isCutOff = isCut || reported > 0 || this.#wasReported;
    const beginsAnew = this.#reported.beginsAnew(frame);
    this.#lasting.step(frame, isCutOff, beginsAnew);
    this.#wasReported = reported > 0;
    this.#disordered.step(frame, isCut);
    const isHeld = this.#juddering.step(frame, isCut);
    const isSilent = this.#reported.isSilent(frame);
    this.#damaged.step(
      frame,
      isCut || isRefreshed,
      isSilent,
      beginsAnew || this.#reported.beginsAnew(frame - 1),
    );
    this.#combed.step(frame, isCut);
    const isLasting = this.#lasting.strength > 0, isCombed = this.#combed.strength > 0;
    const isDamaged = this.#damaged.strength > 0;
    // What shows itself what it is was in the picture before it was encoded.
    if (isDamaged && !isLasting && !isCombed) this.#reported.show(frame);
    if (reported > 0) {
      this.score = reported;
      this.kind = DECODE_DAMAGE;
      return;
    }
    let kind: ArtifactKind | null = null, strength = 1;
    if (isCombed) {
      kind = "combing";
      strength = this.#combed.strength;
    } else if (isLasting) {
      kind = this.#lasting.kind;
      strength = this.#lasting.strength;
    } else if (isCut || frame === 0) {
      this.#runEnd = -1;
    } else if (this.#isInRun(frame)) {
      kind = this.#runKind;
      strength = this.#runStrength;
    } else if (this.#flickering.judge(frame)) {
      kind = "flicker";
      strength = this.#flickering.strength;
    } else if (this.#disordered.strength > 0) {
      kind = "foreign_frame";
      strength = this.#disordered.strength;
    } else if (isDamaged) {
      kind = "decode_damage";
      strength = this.#damaged.strength;
    } else if (isHeld) kind = "foreign_frame";
    if (kind === null) return;
    this.score = 1 - 0.5 / strength;
    this.kind = artifactCode(kind);
  }

  /** Whether a frame is of a run of foreign frames, or the first of one. */
  #isInRun(frame: number): boolean {
    if (frame <= this.#runEnd) return true;
    const run = isolatedRun(this.#measures, frame);
    if (run.frames === 0) return false;
    this.#runEnd = frame + run.frames - 1;
    this.#runStrength = run.strength;
    this.#runKind = run.isChroma ? "chroma_fault" : "foreign_frame";
    return true;
  }
}
