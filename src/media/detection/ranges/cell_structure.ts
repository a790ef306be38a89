/** How much two frames differ by their cells, and how alike their structure is: the steps from each luma cell
 * to the next one.
 */

import { CELL_SAMPLES, CELLS, type FrameHistory } from "./frame_history.ts";

/**
 * Root of the mean squared steps between neighbouring cells of a frame, in levels; 0 for a picture of one
 * brightness.
 */
export function roughnessOf(history: FrameHistory, frame: number): number {
  return history.kernel.roughness(frame);
}

/** How much the structure of two frames is alike, in [-1,1]; steps of a level count little. */
export function likenessOf(history: FrameHistory, one: number, other: number): number {
  return history.kernel.likeness(one, other, 0, 0);
}

/**
 * `likenessOf` with one frame shifted to where it fits best, up to `across` cells sideways and `along` up or
 * down; may be a little more than 1.
 */
export function likenessWithin(
  history: FrameHistory,
  one: number,
  other: number,
  across: number,
  along: number,
): number {
  return history.kernel.likeness(one, other, across, along);
}

/** Mean absolute difference of the cells of two frames, luma and chroma, in levels. */
export function distanceOf(history: FrameHistory, one: number, other: number): number {
  return history.apart(one, other) / (CELLS * CELL_SAMPLES);
}

/** How many cells of two frames, luma and chroma, differ by more than `levels`. */
export function changedCells(history: FrameHistory, one: number, other: number, levels: number): number {
  return history.kernel.changed(one, other, levels * CELL_SAMPLES);
}
