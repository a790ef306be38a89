/** Where bursts of noise begin: salt and pepper, torn lines and white ones, by the fine texture of a frame beside those before it. */

import { type ArtifactMeasures, type Measure, MEASURES } from "./artifact_measures.ts";

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
const SALT_MORE = 1.8;
/**
 * Thousandths of the picture that salt and pepper makes new, beside so many times what was new before: a key frame that brings grain
 * back makes fine texture everywhere and nothing new.
 */
const SALT_NOVEL = 6;
const SALT_NOVEL_MORE = 1.5;
/** Or black and white samples that were averaged take contrast away: the part that is left. */
const SALT_CONTRAST = 0.96;
/** Spikes down columns grow by this factor, and more than those along rows; a strong line appears. */
const LINES_GROWTH = 1.3;
const LINES_OVER_ACROSS = 1.25;
const LINES_SPREAD = 0.36;
const LINE_MIN = 5;
/** Where spikes grow so much more down columns than along rows, thin lines are clear without a step. */
const LINES_CLEAR = 2;
/** Where spikes along rows grow by more than this too, the picture is another one. */
const LINES_ACROSS_MAX = 2;
/** Little salt and pepper is clear where so much is new, beside so many times what was new before, and the picture changes little. */
const LITTLE_SALT_GROWTH = 1.1;
const LITTLE_SALT_SPREAD = 0.2;
const LITTLE_SALT_MORE = 1.1;
const LITTLE_SALT_NOVEL = 20;
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
/**
 * Where spikes down columns were steady (the least of three frames is this part of the largest), a smaller step is clear, if those along
 * rows stay as they were, straight edges along rows are new, and the picture is the same.
 */
const STEADY = 0.88;
const STEADY_GROWTH = 1.3;
const STEADY_OVER_ACROSS = 1.35;
const STEADY_ACROSS_MIN = 0.7;
const STEADY_ACROSS_MAX = 1.2;
const STEADY_EDGES = 10;
const STEADY_EDGES_MORE = 1.4;
const STEADY_LOSS_MAX = 0.35;
/** Spikes that are added to both sides of a growth: where there are none, it says nothing. */
const SPIKES_MORE = 0.2;
/** Many lines take the structure away too: spikes down columns grow so many times as much as along rows, with so many new edges. */
const MANY_LINES_OVER_ACROSS = 3;
const MANY_LINES_EDGES = 60;
/** Least correlation of the three frames before: a shaken camera blurs some frames and others not, though not so many times as much. */
const CALM_MIN = 0.8;
/** Lines of the scene come and go with its shaking: for lines so much. */
const CALM_LINES_MIN = 0.88;
const SALT_CLEAR = 3;
/** All of the picture becomes darker where a flash ends. */
const DARKER_MAX = 0.9;
/** Lines that change from frame to frame: the next step is this part of theirs. */
const CHANGING_MIN = 0.4;

const onset: NoiseOnset = { sign: null, before: 0, rise: 0, strength: 0 };

/** The burst that begins with this frame. The object is the same in every call. */
export function noiseAt(measures: ArtifactMeasures, frame: number): NoiseOnset {
  onset.sign = null;
  if (measures.at(MEASURES.grown, frame) <= FEW_LINES_SPREAD && !mayBeLines(measures, frame)) return onset;
  const loss = 1 - measures.at(MEASURES.correlation, frame);
  const calm = measures.leastBefore(MEASURES.correlation, frame, 3);
  const lift = measures.lift(frame);
  const isDarker = lift < -DARKER_MAX * measures.at(MEASURES.luma1, frame);
  if (isDarker || (loss >= NOISE_LOSS_MAX && !areManyLines(measures, frame))) return onset;
  const acrossBefore = measures.largestBefore(MEASURES.spikesAcross, frame, 3);
  const downBefore = measures.largestBefore(MEASURES.spikesDown, frame, 3);
  const across = spikeGrowth(measures, MEASURES.spikesAcross, frame, acrossBefore);
  const down = spikeGrowth(measures, MEASURES.spikesDown, frame, downBefore);
  const salt = Math.min(across, down) / (SALT_GROWTH * lightGrowth(measures, frame));
  const more = measures.at(MEASURES.spikesAcross, frame) - acrossBefore;
  if ((calm > CALM_MIN || salt > SALT_CLEAR) && isSalt(measures, frame, salt, more)) {
    return found("salt", acrossBefore, more, salt);
  }
  if (calm <= CALM_LINES_MIN || measures.isShaken(frame)) return onset;
  const lines = Math.min(down / LINES_GROWTH, down / (LINES_OVER_ACROSS * across));
  if (lines > 1 && areLines(measures, frame, across, down) && !goesOnward(measures, frame)) {
    return found("lines", downBefore, measures.at(MEASURES.spikesDown, frame) - downBefore, lines);
  }
  const steady = steadyLines(measures, frame);
  if (steady > 1 && changesAgain(measures, frame) && !goesOnward(measures, frame)) {
    return found("lines", downBefore, measures.at(MEASURES.spikesDown, frame) - downBefore, steady);
  }
  return onset;
}

/** Whether lines appear that took so much of the structure away that it looks like a cut, and change with the next frame. */
export function areChangingLines(measures: ArtifactMeasures, frame: number): boolean {
  return areManyLines(measures, frame) && frame + 1 < measures.count &&
    measures.largestBefore(MEASURES.edgesAcrossNew, frame, 3) <= FEW_LINES_BEFORE &&
    changesAgain(measures, frame);
}

/** Whether the frame may be the first with lines, by what came until then. */
export function mayBeLines(measures: ArtifactMeasures, frame: number): boolean {
  return measures.at(MEASURES.edgesAcrossNew, frame) > STEADY_EDGES && steadyLines(measures, frame) > 1;
}

/** What is drawn over a picture stays as it is; lines change with the next frame, or go. */
function changesAgain(measures: ArtifactMeasures, frame: number): boolean {
  return measures.at(MEASURES.luma1, frame + 1) > CHANGING_MIN * measures.at(MEASURES.luma1, frame);
}

function found(sign: "salt" | "lines", before: number, rise: number, strength: number): NoiseOnset {
  onset.sign = sign;
  onset.before = before;
  onset.rise = rise;
  onset.strength = strength;
  return onset;
}

function isSalt(measures: ArtifactMeasures, frame: number, salt: number, more: number): boolean {
  const spread = measures.at(MEASURES.grown, frame), novel = measures.at(MEASURES.novel, frame);
  if (salt <= 1 || spread <= LITTLE_SALT_SPREAD) return false;
  const before = measures.largestBefore(MEASURES.novel, frame, 3);
  const isNew = novel > SALT_NOVEL + SALT_NOVEL_MORE * before ||
    measures.at(MEASURES.contrast, frame) < SALT_CONTRAST * measures.at(MEASURES.contrast, frame - 1);
  if (spread > SALT_SPREAD && more > SALT_MORE && isNew) return true;
  return salt > LITTLE_SALT_GROWTH && more > LITTLE_SALT_MORE &&
    measures.at(MEASURES.luma1, frame) < LITTLE_SALT_CHANGE_MAX &&
    novel > Math.max(LITTLE_SALT_NOVEL, LITTLE_SALT_NOVEL_MORE * before);
}

/** `across` and `down`: how much the spikes grew. */
function areLines(measures: ArtifactMeasures, frame: number, across: number, down: number): boolean {
  const spread = measures.at(MEASURES.grown, frame);
  if (spread > LINES_SPREAD) {
    const line = measures.at(MEASURES.newLine, frame) -
      2 * measures.largestBefore(MEASURES.newLine, frame, 3);
    if ((line > LINE_MIN && across <= LINES_ACROSS_MAX) || down > LINES_CLEAR * across) return true;
  }
  return down > FEW_LINES_GROWTH && spread > FEW_LINES_SPREAD &&
    measures.at(MEASURES.edgesAcrossNew, frame) > FEW_LINES_EDGES &&
    measures.largestBefore(MEASURES.edgesAcrossNew, frame, 3) <= FEW_LINES_BEFORE;
}

/** How clearly lines appear in a picture that was steady: 1 where the rule just holds. */
function steadyLines(measures: ArtifactMeasures, frame: number): number {
  const before = measures.largestBefore(MEASURES.spikesDown, frame, 3);
  if (measures.at(MEASURES.spikesDown, frame) <= before) return 0;
  if (measures.leastBefore(MEASURES.spikesDown, frame, 3) < STEADY * before) return 0;
  const down = (measures.at(MEASURES.spikesDown, frame) + SPIKES_MORE) / (before + SPIKES_MORE);
  const across = (measures.at(MEASURES.spikesAcross, frame) + SPIKES_MORE) /
    (measures.largestBefore(MEASURES.spikesAcross, frame, 3) + SPIKES_MORE);
  if (across < STEADY_ACROSS_MIN || across > STEADY_ACROSS_MAX) return 0;
  const edges = measures.at(MEASURES.edgesAcrossNew, frame);
  const edgesBefore = measures.largestBefore(MEASURES.edgesAcrossNew, frame, 3);
  if (edges < STEADY_EDGES || edges < STEADY_EDGES_MORE * edgesBefore) return 0;
  if (1 - measures.at(MEASURES.correlation, frame) > STEADY_LOSS_MAX) return 0;
  return Math.min(down / STEADY_GROWTH, down / (STEADY_OVER_ACROSS * across));
}

function areManyLines(measures: ArtifactMeasures, frame: number): boolean {
  if (measures.at(MEASURES.edgesAcrossNew, frame) < MANY_LINES_EDGES) return false;
  const across = spikeGrowth(
    measures,
    MEASURES.spikesAcross,
    frame,
    measures.largestBefore(MEASURES.spikesAcross, frame, 3),
  );
  const down = spikeGrowth(
    measures,
    MEASURES.spikesDown,
    frame,
    measures.largestBefore(MEASURES.spikesDown, frame, 3),
  );
  return down > MANY_LINES_OVER_ACROSS * Math.max(1, across);
}

/** By what factor spikes grew beside those `before`. */
function spikeGrowth(
  measures: ArtifactMeasures,
  measure: Measure,
  frame: number,
  before: number,
): number {
  return measures.at(measure, frame) / Math.max(SPIKES_FLOOR, before);
}

function goesOnward(measures: ArtifactMeasures, frame: number): boolean {
  return frame + 1 < measures.count &&
    measures.at(MEASURES.luma2, frame + 1) > LINES_ONWARD * measures.at(MEASURES.luma1, frame);
}

/** How much a change of light alone makes spikes grow: as contrast and brightness do. */
function lightGrowth(measures: ArtifactMeasures, frame: number): number {
  return Math.max(
    1,
    growth(measures, MEASURES.contrast, frame, 2),
    growth(measures, MEASURES.lumaMean, frame, 8),
  );
}

function growth(
  measures: ArtifactMeasures,
  measure: Measure,
  frame: number,
  floor: number,
): number {
  const before = Math.min(measures.at(measure, frame - 1), measures.at(measure, frame - 2));
  return measures.at(measure, frame) / Math.max(floor, before);
}
