/** Faults that begin at once, last for a while, and are seen in the frame itself: gray, green, wrong colours, noise, torn lines. */

import type { ArtifactKind } from "../../../model/frames/detected_range.ts";
import type { ArtifactMeasures } from "./artifact_measures.ts";
import { areChangingLines, noiseAt } from "./noise_onset.ts";

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

/** Levels that picture and colours must change by, at least, where gray or green appears. */
const CHANGE_MIN = 6;
/** An abrupt change is this many times as large as any of the three before. */
const ABRUPT = 2.5;
const GRAY_MIN = 0.13;
/** Gray is a fault where it has no texture: at least so many blocks have none, as a share of the gray. */
const GRAY_FLAT_MIN = 0.7;
/** So much plain gray is no new shot. */
const GRAY_CLEAR = 0.6;
const GRAY_LOSS_MIN = 0.03;
const GREEN_MIN = 0.03;

/** Chroma changes this much, and this many times as much as luma, in a picture of this contrast that keeps its structure. */
const CHROMA_MIN = 5;
const CHROMA_OVER_LUMA = 2.5;
const CHROMA_ABRUPT = 3.2;
const CHROMA_LOSS_MAX = 0.1;
/** So much chroma, so many times as much as luma, is clear beside motion too: then more structure may be lost. */
const CHROMA_CLEAR = 20;
const CLEAR_OVER_LUMA = 4;
const CLEAR_LOSS_MAX = 0.25;
/** What changes once more by so much of it, without going back, is a fade. */
const CHROMA_STEP_MAX = 0.6;
const CONTRAST_MIN = 6;
/** So much chroma is clear in a picture of less contrast too, if luma stays: less is a plain colour. */
const CHROMA_GLARING = 60;
const GLARING_LUMA_MAX = 3;
const GLARING_CONTRAST_MIN = 3;
/** A coloured flash covers the picture: a part of the contrast that must be left. */
const CONTRAST_KEPT = 0.6;
/**
 * A coarse encoder leaves chroma as it is for a while though luma changes, and then makes up for it: where chroma changed by less than
 * CHROMA_STILL, and luma by more than LUMA_MOVES, a step must be larger than CHROMA_COARSE.
 */
const CHROMA_STILL = 0.04;
const LUMA_MOVES = 0.3;
const CHROMA_COARSE = 12;

/** The part of a sign's rise below which it has gone. */
const GONE = 0.35;

/** A fault of one stream: none, or one that goes on. */
export class LastingFault {
  /** Of the fault that goes on. */
  kind: ArtifactKind = "decode_damage";

  readonly #measures: ArtifactMeasures;
  #sign: Sign | null = null;
  #start = 0;
  #before = 0;
  #rise = 0;
  #strength = 0;
  #lastCut = -9;
  /** The cut before that. */
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
    return this.#sign === "gray" || (this.#sign === null && this.#isChromaStep(frame));
  }

  /** Goes on to the next frame. Returns 0, or how clearly the frame is at fault: 1 where a rule just holds. */
  step(frame: number, isCut: boolean): number {
    if (isCut) {
      this.#cutBefore = this.#lastCut;
      this.#lastCut = frame;
    }
    if (isCut || frame === 0) this.#sign = null;
    if (isCut && frame > 0) this.#beginLost(frame);
    if (isCut || frame === 0) return this.#sign === null ? 0 : this.#strength;
    if (this.#sign === null) this.#begin(frame);
    else if (this.#hasEnded(frame, this.#sign)) this.#sign = null;
    return this.#sign === null ? 0 : this.#strength;
  }

  /** Whether the frame is the first one of a fault that may look like a cut. */
  hasBegun(frame: number): boolean {
    return this.#sign !== null && this.#start === frame;
  }

  /** So much was lost that it may look like a new shot. */
  #beginLost(frame: number): void {
    if (this.#beginGreen(frame)) return;
    if (this.#measures.at("gray", frame) > GRAY_CLEAR && this.#beginGray(frame)) return;
    if (frame - this.#cutBefore > 1 && areChangingLines(this.#measures, frame)) this.#beginNoise(frame);
  }

  #beginGreen(frame: number): boolean {
    const measures = this.#measures;
    const green = measures.at("green", frame) - measures.largestBefore("green", frame, 4);
    if (green <= GREEN_MIN || measures.change(frame) <= CHANGE_MIN) return false;
    this.#found("green", frame, measures.at("green", frame - 1), green, green / GREEN_MIN);
    return true;
  }

  #begin(frame: number): void {
    const measures = this.#measures;
    if (this.#beginGray(frame) || this.#beginGreen(frame)) return;
    if (this.#isChromaStep(frame)) {
      const chroma = measures.at("chroma1", frame);
      const goesOn = frame + 1 < measures.count &&
        measures.at("chroma1", frame + 1) > CHROMA_STEP_MAX * chroma;
      const isBack = measures.at("chroma2", frame + 1) < 0.4 * chroma;
      if (!goesOn || isBack) return this.#found("chroma", frame, 0, chroma, chroma / CHROMA_MIN);
    }
    if (frame - this.#lastCut > 1) this.#beginNoise(frame);
  }

  /** Chroma changes abruptly, and little else. */
  #isChromaStep(frame: number): boolean {
    const measures = this.#measures;
    const chroma = measures.at("chroma1", frame), luma = measures.at("luma1", frame);
    if (chroma <= CHROMA_MIN || chroma <= CHROMA_OVER_LUMA * luma) return false;
    const isGlaring = chroma > CHROMA_GLARING && luma < GLARING_LUMA_MAX;
    const least = isGlaring ? GLARING_CONTRAST_MIN : CONTRAST_MIN;
    const contrast = measures.at("contrast", frame);
    if (contrast <= Math.max(least, CONTRAST_KEPT * measures.at("contrast", frame - 1))) return false;
    const before = measures.largestBefore("chroma1", frame, 3);
    if (chroma <= CHROMA_ABRUPT * before) return false;
    const isCoarse = before < CHROMA_STILL && measures.largestBefore("luma1", frame, 3) > LUMA_MOVES;
    if (isCoarse && chroma < CHROMA_COARSE) return false;
    const isClear = chroma > CHROMA_CLEAR && chroma > CLEAR_OVER_LUMA * luma;
    return 1 - measures.at("correlation", frame) < (isClear ? CLEAR_LOSS_MAX : CHROMA_LOSS_MAX);
  }

  #beginGray(frame: number): boolean {
    const measures = this.#measures;
    const change = measures.change(frame);
    const isAbrupt = change > ABRUPT * largestChangeBefore(measures, frame, 3);
    const gray = measures.at("gray", frame);
    const more = gray - measures.largestBefore("gray", frame, 4);
    const isFlat = measures.at("flat", frame) > GRAY_FLAT_MIN * gray;
    // A plain ground that becomes darker is gray too, but nothing is lost.
    if (1 - measures.at("correlation", frame) < GRAY_LOSS_MIN) return false;
    if (more <= GRAY_MIN || change <= CHANGE_MIN || !isAbrupt || !isFlat) return false;
    this.#found("gray", frame, measures.at("gray", frame - 1), change, more / GRAY_MIN);
    return true;
  }

  #beginNoise(frame: number): void {
    const { sign, before, rise, strength } = noiseAt(this.#measures, frame);
    if (sign !== null) this.#found(sign, frame, before, rise, strength);
  }

  #found(sign: Sign, frame: number, before: number, rise: number, strength: number): void {
    this.#sign = sign;
    this.#start = frame;
    this.#before = before;
    this.#rise = rise;
    this.#strength = Math.max(1, Math.min(strength, 4));
    this.kind = KIND_OF[sign];
  }

  #hasEnded(frame: number, sign: Sign): boolean {
    const measures = this.#measures;
    if (frame - this.#start > LONGEST[sign]) return true;
    const rest = this.#before + GONE * this.#rise;
    switch (sign) {
      case "gray":
        return this.#grayHasEnded(frame);
      case "green":
        return measures.at("green", frame) < rest;
      case "salt":
        return measures.at("spikesAcross", frame) < rest;
      case "lines":
        return measures.at("spikesDown", frame) < rest;
      case "chroma": {
        const chroma = measures.at("chroma1", frame);
        const isBack = chroma > 0.4 * this.#rise && chroma > 1.5 * measures.at("luma1", frame);
        return isBack || 1 - measures.at("correlation", frame) > 0.35;
      }
    }
  }

  /**
   * After gray the picture comes back slowly where things move, and the rest at once with the next whole frame: by a change that is
   * abrupt again.
   */
  #grayHasEnded(frame: number): boolean {
    const measures = this.#measures;
    const change = measures.change(frame);
    const gray = measures.at("gray", frame), grayBefore = measures.at("gray", frame - 1);
    if (change <= Math.max(5, 0.3 * this.#rise)) return false;
    if (gray >= this.#before + 0.5 * (grayBefore - this.#before) + 0.02) return false;
    const isClear = change > 2.5 * measures.change(frame - 1) || gray <= this.#before + 0.02;
    return isClear && change > 3 * Math.min(measures.change(frame - 1), measures.change(frame + 1));
  }
}

function largestChangeBefore(measures: ArtifactMeasures, frame: number, frames: number): number {
  let largest = 0;
  for (let back = 1; back <= frames; back++) largest = Math.max(largest, measures.change(frame - back));
  return largest;
}
