/** Where bursts of noise begin: salt and pepper, torn lines and white ones, by the fine texture of a frame beside those before it. */

import type { ArtifactMeasures } from "./artifact_measures.ts";

export interface NoiseOnset {
  /** Null where none begins. */
  sign: "salt" | "lines" | null;
  /** The measure that grew: what it was before, and by how much it grew. */
  before: number;
  rise: number;
  /** 1 where the rule just holds. */
  strength: number;
}

/** Least spikes that growth is told from. */
const SPIKES_FLOOR = 0.6;
/** Spikes grow by this factor in this share of the blocks, more than a change of light explains. */
const SALT_GROWTH = 1.6;
const SALT_SPREAD = 0.6;
const SALT_MORE = 2.5;
/**
 * Thousandths of the picture that salt and pepper makes new, beside so many times what was new before: a key frame that brings grain
 * back makes fine texture everywhere and nothing new.
 */
const SALT_NOVEL = 6;
const SALT_NOVEL_MORE = 1.5;
/** Spikes down columns grow by this factor, and more than those along rows; a strong line appears. */
const LINES_GROWTH = 1.3;
const LINES_OVER_ACROSS = 1.25;
const LINES_SPREAD = 0.36;
const LINE_MIN = 5;
/** Where spikes grow so much more down columns than along rows, thin lines are clear without a step. */
const LINES_CLEAR = 2;
/** Little salt and pepper is clear where so much is new, beside so many times what was new before, and the picture changes little. */
const LITTLE_SALT_GROWTH = 1.1;
const LITTLE_SALT_SPREAD = 0.2;
const LITTLE_SALT_MORE = 1.1;
const LITTLE_SALT_NOVEL = 40;
const LITTLE_SALT_NOVEL_MORE = 5;
const LITTLE_SALT_CHANGE_MAX = 12;
/** A few lines are clear where spikes down columns grow by this, in some blocks, and so many new edges along rows appear where none did. */
const FEW_LINES_GROWTH = 1.8;
const FEW_LINES_SPREAD = 0.12;
const FEW_LINES_EDGES = 25;
const FEW_LINES_BEFORE = 4;
/** The next frame is not twice as far from the one before the lines as they are: blinds that open go on. */
const LINES_ONWARD = 1.7;
const NOISE_LOSS_MAX = 0.5;
/** Many lines take the structure away too: spikes down columns grow so many times as much as along rows, with so many new edges. */
const MANY_LINES_OVER_ACROSS = 3;
const MANY_LINES_EDGES = 60;
/** Least correlation of the three frames before: a shaken camera blurs some frames and others not. */
const CALM_MIN = 0.8;
/** All of the picture becomes darker where a flash ends. */
const DARKER_MAX = 0.9;
/** Lines that change from frame to frame: the next step is this part of theirs. */
const CHANGING_MIN = 0.4;

const onset: NoiseOnset = { sign: null, before: 0, rise: 0, strength: 0 };

/** The burst that begins with this frame. The object is the same in every call. */
export function noiseAt(measures: ArtifactMeasures, frame: number): NoiseOnset {
  onset.sign = null;
  if (measures.at("grown", frame) <= FEW_LINES_SPREAD) return onset;
  const loss = 1 - measures.at("correlation", frame);
  const isCalm = measures.leastBefore("correlation", frame, 3) > CALM_MIN;
  const lift = measures.at("lumaMean", frame) - measures.at("lumaMean", frame - 1);
  const isDarker = lift < -DARKER_MAX * measures.at("luma1", frame);
  if (!isCalm || isDarker || (loss >= NOISE_LOSS_MAX && !areManyLines(measures, frame))) return onset;
  const acrossBefore = measures.largestBefore("spikesAcross", frame, 3);
  const downBefore = measures.largestBefore("spikesDown", frame, 3);
  const across = spikeGrowth(measures, "spikesAcross", frame, acrossBefore);
  const down = spikeGrowth(measures, "spikesDown", frame, downBefore);
  const salt = Math.min(across, down) / (SALT_GROWTH * lightGrowth(measures, frame));
  const more = measures.at("spikesAcross", frame) - acrossBefore;
  if (isSalt(measures, frame, salt, more)) return found("salt", acrossBefore, more, salt);
  const lines = Math.min(down / LINES_GROWTH, down / (LINES_OVER_ACROSS * across));
  if (lines > 1 && areLines(measures, frame, across, down) && !goesOnward(measures, frame)) {
    return found("lines", downBefore, measures.at("spikesDown", frame) - downBefore, lines);
  }
  return onset;
}

/** Whether lines appear that took so much of the structure away that it looks like a cut, and change with the next frame. */
export function areChangingLines(measures: ArtifactMeasures, frame: number): boolean {
  return areManyLines(measures, frame) && frame + 1 < measures.count &&
    measures.largestBefore("edgesAcrossNew", frame, 3) <= FEW_LINES_BEFORE &&
    measures.at("luma1", frame + 1) > CHANGING_MIN * measures.at("luma1", frame);
}

function found(sign: "salt" | "lines", before: number, rise: number, strength: number): NoiseOnset {
  onset.sign = sign;
  onset.before = before;
  onset.rise = rise;
  onset.strength = strength;
  return onset;
}

function isSalt(measures: ArtifactMeasures, frame: number, salt: number, more: number): boolean {
  const spread = measures.at("grown", frame), novel = measures.at("novel", frame);
  if (salt <= 1 || spread <= LITTLE_SALT_SPREAD) return false;
  const before = measures.largestBefore("novel", frame, 3);
  if (spread > SALT_SPREAD && more > SALT_MORE && novel > SALT_NOVEL + SALT_NOVEL_MORE * before) return true;
  return salt > LITTLE_SALT_GROWTH && more > LITTLE_SALT_MORE &&
    measures.at("luma1", frame) < LITTLE_SALT_CHANGE_MAX &&
    novel > Math.max(LITTLE_SALT_NOVEL, LITTLE_SALT_NOVEL_MORE * before);
}

/** `across` and `down`: how much the spikes grew. */
function areLines(measures: ArtifactMeasures, frame: number, across: number, down: number): boolean {
  const spread = measures.at("grown", frame);
  if (spread > LINES_SPREAD) {
    const line = measures.at("newLine", frame) - 2 * measures.largestBefore("newLine", frame, 3);
    if (line > LINE_MIN || down > LINES_CLEAR * across) return true;
  }
  return down > FEW_LINES_GROWTH && spread > FEW_LINES_SPREAD &&
    measures.at("edgesAcrossNew", frame) > FEW_LINES_EDGES &&
    measures.largestBefore("edgesAcrossNew", frame, 3) <= FEW_LINES_BEFORE;
}

function areManyLines(measures: ArtifactMeasures, frame: number): boolean {
  if (measures.at("edgesAcrossNew", frame) < MANY_LINES_EDGES) return false;
  const across = spikeGrowth(
    measures,
    "spikesAcross",
    frame,
    measures.largestBefore("spikesAcross", frame, 3),
  );
  const down = spikeGrowth(measures, "spikesDown", frame, measures.largestBefore("spikesDown", frame, 3));
  return down > MANY_LINES_OVER_ACROSS * Math.max(1, across);
}

/** By what factor spikes grew beside those `before`. */
function spikeGrowth(
  measures: ArtifactMeasures,
  measure: "spikesAcross" | "spikesDown",
  frame: number,
  before: number,
): number {
  return measures.at(measure, frame) / Math.max(SPIKES_FLOOR, before);
}

function goesOnward(measures: ArtifactMeasures, frame: number): boolean {
  return frame + 1 < measures.count &&
    measures.at("luma2", frame + 1) > LINES_ONWARD * measures.at("luma1", frame);
}

/** How much a change of light alone makes spikes grow: as contrast and brightness do. */
function lightGrowth(measures: ArtifactMeasures, frame: number): number {
  return Math.max(1, growth(measures, "contrast", frame, 2), growth(measures, "lumaMean", frame, 8));
}

function growth(
  measures: ArtifactMeasures,
  measure: "contrast" | "lumaMean",
  frame: number,
  floor: number,
): number {
  const before = Math.min(measures.at(measure, frame - 1), measures.at(measure, frame - 2));
  return measures.at(measure, frame) / Math.max(floor, before);
}
