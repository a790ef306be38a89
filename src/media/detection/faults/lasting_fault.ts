/** Faults that begin at once, last for a while, and are seen in the frame itself: gray, green, wrong colours,
 * noise, torn lines.
 */

import type { ArtifactKind } from "../../../model/frames/detected_range.ts";
import { type ArtifactMeasures, MEASURES } from "./artifact_measures.ts";
import { chromaStep } from "./chroma_step.ts";
import { areChangingLines, mayBeLines, noiseAt } from "./noise_onset.ts";

/** What gives a fault away, and so what its end is decided on. */
type Sign = "gray" | "green" | "chroma" | "salt" | "lines";

const KIND_OF: Readonly<Record<Sign, ArtifactKind>> = {
  gray: "decode_damage",
  green: "decode_damage",
  chroma: "chroma_fault",
  salt: "noise_burst",
  lines: "noise_burst",
};

/** Frames after which a fault counts as what the picture is like now. */
const LONGEST: Readonly<Record<Sign, number>> = { gray: 45, green: 45, chroma: 60, salt: 15, lines: 15 };

/** Least change of luma and chroma together, in levels, where gray or green appears. */
const CHANGE_MIN = 6;
/** An abrupt change is this many times as large as any of the three before. */
const ABRUPT = 2.5;
const GRAY_MIN = 0.13;
/** Least share of the gray that must be blocks without texture: gray is a fault only where it has none. */
const GRAY_FLAT_MIN = 0.7;
/** Share of the picture from which on plain gray that looks like a cut is a fault and no new shot. */
const GRAY_CLEAR = 0.6;
const GRAY_LOSS_MIN = 0.03;
const GREEN_MIN = 0.03;

/** Part of the first step from which on a second one that does not go back is a fade. */
const CHROMA_STEP_MAX = 0.6;
/**
 * Chroma goes back where it changes by this part of the first step again, by CHROMA_BACK_OVER_LUMA times the
 * change of luma, and by CHROMA_BACK_ABRUPT times its own change in the frame before.
 */
const CHROMA_BACK = 0.4;
const CHROMA_BACK_OVER_LUMA = 1.5;
const CHROMA_BACK_ABRUPT = 2;
/**
 * Where chroma ends a fault with a step this many times the first one, another fault begins: the first one
 * was taken for a fault where a faint one ended that was not seen.
 */
const CHROMA_NEXT = 2.5;
/** Behind a single frame: most of the first step that may be left between the frames on both sides. */
const CHROMA_BACK_LEFT = 0.6;
/**
 * Loss of correlation with which the picture is another one, if chroma changes by the part CHROMA_OTHER of
 * the first step too.
 */
const CHROMA_OTHER_LOSS = 0.35;
const CHROMA_OTHER = 0.2;

/** The part of a sign's rise below which it has gone. */
const GONE = 0.35;
/**
 * Part of the first rise below which noise has gone. It is lower than GONE, as an encoder with few bits
 * leaves weaker noise from the second frame on.
 */
const SALT_GONE = 0.15;
/**
 * Thousandths of the picture that salt and pepper on a key frame must make new, if it does not last: a key
 * frame brings grain back.
 */
const SALT_KEY_NOVEL = 80;
/**
 * Gray has gone, however slowly, where the contrast is as before it within this part, and the share of plain
 * blocks within FLAT_BACK.
 */
const CONTRAST_BACK = 0.06;
const FLAT_BACK = 0.05;

/** A fault of one stream: none, or one that goes on. */
export class LastingFault {
  /** Kind of the fault that goes on. */
  kind: ArtifactKind = "decode_damage";
  /** How clearly the frame that was judged last is at fault: 0 for not, 1 where a rule just holds. */
  strength = NaN;

  readonly #measures: ArtifactMeasures;
  #sign: Sign | null = null;
  #start = 0;
  #before = NaN;
  #contrastBefore = NaN;
  #flatBefore = NaN;
  #rise = NaN;
  /** How clearly the fault began. */
  #clearness = NaN;
  #lastCut = -9;
  /** The cut before `#lastCut`. */
  #cutBefore = -9;

  constructor(measures: ArtifactMeasures) {
    this.#measures = measures;
  }

  reset(): void {
    this.#sign = null;
    this.#lastCut = -9;
    this.#cutBefore = -9;
  }

  /** Whether the next frame may still change what is said of this one. */
  isOpen(frame: number): boolean {
    return this.#sign === "gray" ||
      (this.#sign === null &&
        (chromaStep(this.#measures, frame, false).strength > 0 || mayBeLines(this.#measures, frame) ||
          noiseAt(this.#measures, frame).sign === "salt"));
  }

  /**
   * Goes on to the next frame, and sets `strength`. `isKey`: it is a key frame, and the one before it is
   * none.
   */
  step(frame: number, isCut: boolean, isKey: boolean): void {
    this.#follow(frame, isCut, isKey);
    this.strength = this.#sign === null ? 0 : this.#clearness;
  }

  #follow(frame: number, isCut: boolean, isKey: boolean): void {
    if (isCut) {
      this.#cutBefore = this.#lastCut;
      this.#lastCut = frame;
    }
    if (isCut || frame === 0) {
      this.#sign = null;
      if (frame > 0) this.#beginLost(frame);
    } else if (this.#sign === null) this.#begin(frame, isKey);
    else if (this.#hasEnded(frame, this.#sign)) {
      const { values } = this.#measures, place = this.#measures.placeOf(frame);
      const isOther = this.#sign === "chroma" &&
        values[place + MEASURES.chroma1]! > CHROMA_NEXT * this.#rise;
      this.#sign = null;
      if (isOther) this.#begin(frame, isKey);
    }
  }

  /** Whether the frame is the first one of a fault that may look like a cut. */
  hasBegun(frame: number): boolean {
    return this.#sign !== null && this.#start === frame;
  }

  /** Begins a fault at a cut: one that loses so much of the picture that it looks like a new shot. */
  #beginLost(frame: number): void {
    if (this.#beginGreen(frame)) return;
    const { values } = this.#measures, place = this.#measures.placeOf(frame);
    if (values[place + MEASURES.gray]! > GRAY_CLEAR && this.#beginGray(frame)) return;
    if (frame - this.#cutBefore > 1 && areChangingLines(this.#measures, frame)) {
      this.#beginNoise(frame, false);
    }
  }

  #beginGreen(frame: number): boolean {
    const measures = this.#measures, { values } = measures, now = measures.placeOf(frame);
    if (values[now + MEASURES.green]! <= GREEN_MIN) return false;
    const green = values[now + MEASURES.green]! -
      values[measures.largestBefore(MEASURES.green, frame, 4)]!;
    if (green <= GREEN_MIN || values[now + MEASURES.change]! <= CHANGE_MIN) return false;
    this.#before = values[measures.placeOf(frame - 1) + MEASURES.green]!;
    this.#rise = green;
    this.#clearness = green / GREEN_MIN;
    this.#found("green", frame);
    return true;
  }

  #begin(frame: number, isKey: boolean): void {
    const measures = this.#measures, { values } = measures, now = measures.placeOf(frame);
    if (this.#beginGray(frame) || this.#beginGreen(frame)) return;
    const step = chromaStep(measures, frame, isKey);
    if (step.strength > 0) {
      const next = measures.placeOf(frame + 1), chroma = values[now + MEASURES.chroma1]!;
      const goesOn = frame + 1 < measures.count &&
        values[next + MEASURES.chroma1]! > CHROMA_STEP_MAX * chroma;
      const isBack = values[next + MEASURES.chroma2]! < 0.4 * chroma;
      if (!goesOn || isBack) {
        this.#before = 0;
        this.#rise = chroma;
        this.#clearness = step.strength;
        return this.#found("chroma", frame);
      }
    }
    if (frame - this.#lastCut > 1) this.#beginNoise(frame, isKey);
  }

  #beginGray(frame: number): boolean {
    const measures = this.#measures, { values } = measures, now = measures.placeOf(frame);
    const gray = values[now + MEASURES.gray]!;
    if (gray <= GRAY_MIN) return false;
    const change = values[now + MEASURES.change]!;
    const isAbrupt = change > ABRUPT * values[measures.largestBefore(MEASURES.change, frame, 3)]!;
    const more = gray - values[measures.largestBefore(MEASURES.gray, frame, 4)]!;
    const isFlat = values[now + MEASURES.flat]! > GRAY_FLAT_MIN * gray;
    // A plain ground that becomes darker is gray too, but nothing is lost.
    if (1 - values[now + MEASURES.correlation]! < GRAY_LOSS_MIN) return false;
    if (more <= GRAY_MIN || change <= CHANGE_MIN || !isAbrupt || !isFlat) return false;
    this.#before = values[measures.placeOf(frame - 1) + MEASURES.gray]!;
    this.#rise = change;
    this.#clearness = more / GRAY_MIN;
    this.#found("gray", frame);
    return true;
  }

  #beginNoise(frame: number, isKey: boolean): void {
    const onset = noiseAt(this.#measures, frame);
    if (onset.sign === null) return;
    const { values } = this.#measures;
    const isGrain = isKey && onset.sign === "salt" &&
      values[this.#measures.placeOf(frame) + MEASURES.novel]! < SALT_KEY_NOVEL &&
      values[this.#measures.placeOf(frame + 1) + MEASURES.spikesAcross]! < onset.before + GONE * onset.rise;
    if (isGrain) return;
    this.#before = onset.before;
    this.#rise = onset.rise;
    this.#clearness = onset.strength;
    this.#found(onset.sign, frame);
  }

  /** Begins a fault whose `#before`, `#rise` and `#clearness` are set. */
  #found(sign: Sign, frame: number): void {
    const { values } = this.#measures, last = this.#measures.placeOf(frame - 1);
    this.#sign = sign;
    this.#start = frame;
    this.#contrastBefore = values[last + MEASURES.contrast]!;
    this.#flatBefore = values[last + MEASURES.flat]!;
    this.#clearness = Math.max(1, Math.min(this.#clearness, 4));
    this.kind = KIND_OF[sign];
  }

  #hasEnded(frame: number, sign: Sign): boolean {
    if (frame - this.#start > LONGEST[sign]) return true;
    const { values } = this.#measures, now = this.#measures.placeOf(frame);
    const rest = this.#before + GONE * this.#rise;
    switch (sign) {
      case "gray":
        return this.#grayHasEnded(frame);
      case "green":
        return values[now + MEASURES.green]! < rest;
      case "salt":
        return this.#saltHasEnded(frame);
      case "lines":
        return values[now + MEASURES.spikesDown]! < rest;
      case "chroma":
        return this.#chromaHasEnded(frame);
    }
  }

  /**
   * Whether little is left of the salt and pepper of the frame before. Behind the first frame as good as
   * nothing may be left.
   */
  #saltHasEnded(frame: number): boolean {
    const { values } = this.#measures;
    const now = this.#measures.placeOf(frame), last = this.#measures.placeOf(frame - 1);
    const left = frame - 1 === this.#start ? 0 : values[last + MEASURES.spikesAcross]! - this.#before;
    return values[now + MEASURES.spikesAcross]! - this.#before <
      Math.max(SALT_GONE * this.#rise, GONE * left);
  }

  /** Chroma changes back, or the picture is another one. */
  #chromaHasEnded(frame: number): boolean {
    const { values } = this.#measures;
    const now = this.#measures.placeOf(frame), last = this.#measures.placeOf(frame - 1);
    const chroma = values[now + MEASURES.chroma1]!;
    const isAbrupt = frame - 1 === this.#start
      ? values[now + MEASURES.chroma2]! < CHROMA_BACK_LEFT * this.#rise
      : chroma > CHROMA_BACK_ABRUPT * values[last + MEASURES.chroma1]!;
    const isBack = isAbrupt && chroma > CHROMA_BACK * this.#rise &&
      chroma > CHROMA_BACK_OVER_LUMA * values[now + MEASURES.luma1]!;
    return isBack ||
      (1 - values[now + MEASURES.correlation]! > CHROMA_OTHER_LOSS && chroma > CHROMA_OTHER * this.#rise);
  }

  /**
   * Whether gray is over. After gray the picture comes back slowly where things move, and the rest at once
   * with the next whole frame: by a change that is abrupt again.
   */
  #grayHasEnded(frame: number): boolean {
    const { values } = this.#measures;
    const now = this.#measures.placeOf(frame), last = this.#measures.placeOf(frame - 1);
    const change = values[now + MEASURES.change]!, changeBefore = values[last + MEASURES.change]!;
    const changeBehind = values[this.#measures.placeOf(frame + 1) + MEASURES.change]!;
    const gray = values[now + MEASURES.gray]!, grayBefore = values[last + MEASURES.gray]!;
    if (gray <= this.#before + 0.02 && this.#isAsBefore(frame)) return true;
    if (change <= Math.max(5, 0.3 * this.#rise)) return false;
    if (gray >= this.#before + 0.5 * (grayBefore - this.#before) + 0.02) return false;
    const isClear = change > 2.5 * changeBefore || gray <= this.#before + 0.02;
    return isClear && change > 3 * Math.min(changeBefore, changeBehind);
  }

  #isAsBefore(frame: number): boolean {
    const { values } = this.#measures, now = this.#measures.placeOf(frame);
    const contrast = values[now + MEASURES.contrast]! - this.#contrastBefore;
    const flat = values[now + MEASURES.flat]! - this.#flatBefore;
    return Math.abs(contrast) <= CONTRAST_BACK * this.#contrastBefore && Math.abs(flat) <= FLAT_BACK;
  }
}
