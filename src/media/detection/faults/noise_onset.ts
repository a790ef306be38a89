/** Where bursts of noise begin: salt and pepper, torn lines and white ones, by the fine texture of a frame
 * beside those before it.
 */

import { type ArtifactMeasures, MEASURES } from "./artifact_measures.ts";

export interface NoiseOnset {
  /** What begins; null for nothing. */
  sign: "salt" | "lines" | null;
  /** The measure that grew: what it was before, and by how much it grew. */
  before: number;
  rise: number;
  /** How clear the burst is: 1 where the rule just holds. */
  strength: number;
}

/** Least spikes before, in levels, from which growth is counted. */
const SPIKES_FLOOR = 0.6;
/**
 * Salt and pepper makes spikes grow by this factor, and that by more than a change of light explains, in the
 * share SALT_SPREAD of the blocks, and by SALT_MORE levels.
 */
const SALT_GROWTH = 1.6;
const SALT_SPREAD = 0.6;
const SALT_MORE = 1.8;
/**
 * Least thousandths of the picture that salt and pepper makes new, with SALT_NOVEL_MORE times what was new
 * before added. A key frame that brings grain back makes fine texture everywhere and nothing new.
 */
const SALT_NOVEL = 6;
const SALT_NOVEL_MORE = 1.5;
/**
 * Part of the contrast that is left at most where not enough is new: black and white samples that were
 * averaged take contrast away.
 */
const SALT_CONTRAST = 0.96;
/**
 * Lines make spikes down columns grow by this factor, and by LINES_OVER_ACROSS times the growth along rows; a
 * strong line appears, of LINE_MIN levels.
 */
const LINES_GROWTH = 1.3;
const LINES_OVER_ACROSS = 1.25;
const LINES_SPREAD = 0.36;
const LINE_MIN = 5;
/**
 * Where spikes grow this many times as much down columns as along rows, thin lines are clear without a strong
 * line.
 */
const LINES_CLEAR = 2;
/**
 * Largest growth of spikes along rows with which a strong line counts: with more, the picture is another one.
 */
const LINES_ACROSS_MAX = 2;
/**
 * Less salt and pepper is clear by these smaller bounds where more of the picture is new: LITTLE_SALT_NOVEL
 * thousandths, and LITTLE_SALT_NOVEL_MORE times what was new before. Luma must change by less than
 * LITTLE_SALT_CHANGE_MAX levels.
 */
const LITTLE_SALT_GROWTH = 1.1;
const LITTLE_SALT_SPREAD = 0.2;
const LITTLE_SALT_MORE = 1.1;
const LITTLE_SALT_NOVEL = 20;
const LITTLE_SALT_NOVEL_MORE = 5;
const LITTLE_SALT_CHANGE_MAX = 12;
/**
 * A few lines are clear where spikes down columns grow by this factor, in the share FEW_LINES_SPREAD of the
 * blocks, and FEW_LINES_EDGES new edges along rows appear where there were no more than FEW_LINES_BEFORE.
 */
const FEW_LINES_GROWTH = 1.8;
const FEW_LINES_SPREAD = 0.12;
const FEW_LINES_EDGES = 25;
const FEW_LINES_BEFORE = 4;
/**
 * The next frame may be at most this many times as far from the frame before the lines as the frame with
 * lines is: blinds that open go on.
 */
const LINES_ONWARD = 1.7;
const NOISE_LOSS_MAX = 0.5;
/**
 * Spikes down columns were steady where the least of the three frames before is this part of the largest.
 * Then a smaller step is clear, if the spikes along rows stay as they were, straight edges along rows are
 * new, and the picture is the same.
 */
const STEADY = 0.88;
const STEADY_GROWTH = 1.3;
const STEADY_OVER_ACROSS = 1.35;
const STEADY_ACROSS_MIN = 0.7;
const STEADY_ACROSS_MAX = 1.2;
const STEADY_EDGES = 10;
const STEADY_EDGES_MORE = 1.4;
const STEADY_LOSS_MAX = 0.35;
/**
 * Spikes, in levels, that are added to both sides of a ratio: where there are hardly any, their growth says
 * nothing.
 */
const SPIKES_MORE = 0.2;
/**
 * Many lines take the structure away too: spikes grow this many times as much down columns as along rows, and
 * MANY_LINES_EDGES edges are new.
 */
const MANY_LINES_OVER_ACROSS = 3;
const MANY_LINES_EDGES = 60;
/**
 * Least correlation of the three frames before, for salt and pepper that is not clear: a shaken camera blurs
 * some frames and others not, though spikes then grow less than SALT_CLEAR asks for.
 */
const CALM_MIN = 0.8;
/**
 * Least correlation of the three frames before, for lines: those of a scene come and go as the camera shakes.
 */
const CALM_LINES_MIN = 0.88;
const SALT_CLEAR = 3;
/**
 * Change of the mean over the mean change beyond which all of the picture becomes darker, as where a flash
 * ends.
 */
const DARKER_MAX = 0.9;
/** Lines change from frame to frame: the next step is at least this part of theirs. */
const CHANGING_MIN = 0.4;

const onset: NoiseOnset = { sign: null, before: NaN, rise: NaN, strength: NaN };

/**
 * By what factors the spikes along rows and down columns grew, beside the largest of the three frames before.
 */
const grown = { across: NaN, down: NaN };
/** How clearly lines appear in a picture that was steady: 1 where the rule just holds. */
const steady = { strength: NaN };

/** The burst that begins with this frame. The object is the same in every call. */
export function noiseAt(measures: ArtifactMeasures, frame: number): NoiseOnset {
  onset.sign = null;
  const { values } = measures, now = measures.placeOf(frame);
  if (values[now + MEASURES.grown]! <= FEW_LINES_SPREAD && !mayBeLines(measures, frame)) return onset;
  const loss = 1 - values[now + MEASURES.correlation]!;
  const calm = values[measures.leastBefore(MEASURES.correlation, frame, 3)]!;
  const isDarker = values[now + MEASURES.lift]! < -DARKER_MAX * values[now + MEASURES.luma1]!;
  if (isDarker || (loss >= NOISE_LOSS_MAX && !areManyLines(measures, frame))) return onset;
  if (findSalt(measures, frame, calm > CALM_MIN)) return onset;
  if (calm <= CALM_LINES_MIN || measures.isShaken(frame)) return onset;
  const lines = Math.min(grown.down / LINES_GROWTH, grown.down / (LINES_OVER_ACROSS * grown.across));
  if (lines > 1 && areLines(measures, frame) && !goesOnward(measures, frame)) {
    onset.strength = lines;
    return foundLines(measures, frame);
  }
  if (areSteadyLines(measures, frame) && changesAgain(measures, frame) && !goesOnward(measures, frame)) {
    onset.strength = steady.strength;
    return foundLines(measures, frame);
  }
  return onset;
}

/**
 * Whether lines appear that took so much of the structure away that it looks like a cut, and change with the
 * next frame.
 */
export function areChangingLines(measures: ArtifactMeasures, frame: number): boolean {
  return areManyLines(measures, frame) && frame + 1 < measures.count && hadNoEdges(measures, frame) &&
    changesAgain(measures, frame);
}

/** Whether the frame may be the first with lines, by what came until then. */
export function mayBeLines(measures: ArtifactMeasures, frame: number): boolean {
  return measures.values[measures.placeOf(frame) + MEASURES.edgesAcrossNew]! > STEADY_EDGES &&
    areSteadyLines(measures, frame);
}

/**
 * Whether the picture changes again behind a frame: lines change with the next frame, or go, and what is
 * drawn over a picture stays.
 */
function changesAgain(measures: ArtifactMeasures, frame: number): boolean {
  const { values } = measures;
  return values[measures.placeOf(frame + 1) + MEASURES.luma1]! >
    CHANGING_MIN * values[measures.placeOf(frame) + MEASURES.luma1]!;
}

function foundLines(measures: ArtifactMeasures, frame: number): NoiseOnset {
  const { values } = measures;
  const before = values[measures.largestBefore(MEASURES.spikesDown, frame, 3)]!;
  onset.sign = "lines";
  onset.before = before;
  onset.rise = values[measures.placeOf(frame) + MEASURES.spikesDown]! - before;
  return onset;
}

/**
 * Looks for salt and pepper, which must be clearer where the picture was not calm; tells `onset` of it. Fills
 * `grown`.
 */
function findSalt(measures: ArtifactMeasures, frame: number, isCalm: boolean): boolean {
  findGrowth(measures, frame);
  const { values } = measures, now = measures.placeOf(frame);
  const last = measures.placeOf(frame - 1), second = measures.placeOf(frame - 2);
  // How much a change of light alone makes spikes grow: as contrast and brightness do.
  const contrastBefore = Math.min(values[last + MEASURES.contrast]!, values[second + MEASURES.contrast]!);
  const lumaBefore = Math.min(values[last + MEASURES.lumaMean]!, values[second + MEASURES.lumaMean]!);
  const contrast = values[now + MEASURES.contrast]!;
  const light = Math.max(
    1,
    contrast / Math.max(2, contrastBefore),
    values[now + MEASURES.lumaMean]! / Math.max(8, lumaBefore),
  );
  const salt = Math.min(grown.across, grown.down) / (SALT_GROWTH * light);
  if (!isCalm && salt <= SALT_CLEAR) return false;
  const spread = values[now + MEASURES.grown]!, novel = values[now + MEASURES.novel]!;
  if (salt <= 1 || spread <= LITTLE_SALT_SPREAD) return false;
  const acrossBefore = values[measures.largestBefore(MEASURES.spikesAcross, frame, 3)]!;
  const more = values[now + MEASURES.spikesAcross]! - acrossBefore;
  const before = values[measures.largestBefore(MEASURES.novel, frame, 3)]!;
  const isNew = novel > SALT_NOVEL + SALT_NOVEL_MORE * before ||
    contrast < SALT_CONTRAST * values[last + MEASURES.contrast]!;
  const isMuch = spread > SALT_SPREAD && more > SALT_MORE && isNew;
  const isLittle = salt > LITTLE_SALT_GROWTH && more > LITTLE_SALT_MORE &&
    values[now + MEASURES.luma1]! < LITTLE_SALT_CHANGE_MAX &&
    novel > Math.max(LITTLE_SALT_NOVEL, LITTLE_SALT_NOVEL_MORE * before);
  if (!isMuch && !isLittle) return false;
  onset.sign = "salt";
  onset.before = acrossBefore;
  onset.rise = more;
  onset.strength = salt;
  return true;
}

/** Whether the spikes that `grown` tells of are lines. */
function areLines(measures: ArtifactMeasures, frame: number): boolean {
  const { values } = measures, now = measures.placeOf(frame);
  const spread = values[now + MEASURES.grown]!;
  if (spread > LINES_SPREAD) {
    const line = values[now + MEASURES.newLine]! -
      2 * values[measures.largestBefore(MEASURES.newLine, frame, 3)]!;
    if ((line > LINE_MIN && grown.across <= LINES_ACROSS_MAX) || grown.down > LINES_CLEAR * grown.across) {
      return true;
    }
  }
  return grown.down > FEW_LINES_GROWTH && spread > FEW_LINES_SPREAD &&
    values[now + MEASURES.edgesAcrossNew]! > FEW_LINES_EDGES && hadNoEdges(measures, frame);
}

/** Whether no more than a few edges along rows were new in the frames before. */
function hadNoEdges(measures: ArtifactMeasures, frame: number): boolean {
  return measures.values[measures.largestBefore(MEASURES.edgesAcrossNew, frame, 3)]! <= FEW_LINES_BEFORE;
}

/** Whether lines appear in a picture that was steady; then `steady` says how clearly. */
function areSteadyLines(measures: ArtifactMeasures, frame: number): boolean {
  const { values } = measures, now = measures.placeOf(frame);
  const before = values[measures.largestBefore(MEASURES.spikesDown, frame, 3)]!;
  if (values[now + MEASURES.spikesDown]! <= before) return false;
  if (values[measures.leastBefore(MEASURES.spikesDown, frame, 3)]! < STEADY * before) return false;
  const down = (values[now + MEASURES.spikesDown]! + SPIKES_MORE) / (before + SPIKES_MORE);
  const across = (values[now + MEASURES.spikesAcross]! + SPIKES_MORE) /
    (values[measures.largestBefore(MEASURES.spikesAcross, frame, 3)]! + SPIKES_MORE);
  if (across < STEADY_ACROSS_MIN || across > STEADY_ACROSS_MAX) return false;
  const edges = values[now + MEASURES.edgesAcrossNew]!;
  const edgesBefore = values[measures.largestBefore(MEASURES.edgesAcrossNew, frame, 3)]!;
  if (edges < STEADY_EDGES || edges < STEADY_EDGES_MORE * edgesBefore) return false;
  if (1 - values[now + MEASURES.correlation]! > STEADY_LOSS_MAX) return false;
  steady.strength = Math.min(down / STEADY_GROWTH, down / (STEADY_OVER_ACROSS * across));
  return steady.strength > 1;
}

function areManyLines(measures: ArtifactMeasures, frame: number): boolean {
  if (measures.values[measures.placeOf(frame) + MEASURES.edgesAcrossNew]! < MANY_LINES_EDGES) return false;
  findGrowth(measures, frame);
  return grown.down > MANY_LINES_OVER_ACROSS * Math.max(1, grown.across);
}

/** Fills `grown` for a frame. */
function findGrowth(measures: ArtifactMeasures, frame: number): void {
  const { values } = measures, now = measures.placeOf(frame);
  const acrossBefore = values[measures.largestBefore(MEASURES.spikesAcross, frame, 3)]!;
  const downBefore = values[measures.largestBefore(MEASURES.spikesDown, frame, 3)]!;
  grown.across = values[now + MEASURES.spikesAcross]! / Math.max(SPIKES_FLOOR, acrossBefore);
  grown.down = values[now + MEASURES.spikesDown]! / Math.max(SPIKES_FLOOR, downBefore);
}

function goesOnward(measures: ArtifactMeasures, frame: number): boolean {
  const { values } = measures;
  return frame + 1 < measures.count &&
    values[measures.placeOf(frame + 1) + MEASURES.luma2]! >
      LINES_ONWARD * values[measures.placeOf(frame) + MEASURES.luma1]!;
}
