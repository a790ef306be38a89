/** What the detector of damaged parts is fitted on: all frames of labelled videos, as codes of their
 * measures.
 */

import type { Rows } from "../cuts/rows.ts";

/** A stretch of frames: the first one, and the one after the last. */
export type Span = readonly [start: number, end: number];

export interface FaultVideo {
  readonly name: string;
  readonly kind: string;
  /** Group of the video: those of different groups share no source; null where everything is drawn. */
  readonly group: number | null;
  readonly frames: number;
  /** Where the kernel says that a shot begins. */
  readonly shots: readonly number[];
  readonly damaged: readonly Span[];
  /** Where neither answer is asked for: faults of other kinds, and damage too faint to be seen. */
  readonly doubtful: readonly Span[];
  /**
   * Where damage of changed bytes is that was decoded: all of it, until a frame is made of no other. None
   * where damage is drawn.
   */
  readonly lasting?: readonly Span[];
}

/** Rows of all frames, one for each. */
export interface FaultRows extends Rows {
  /** Sum of the measures of a drawn film: a kernel that measures otherwise gives another one. */
  readonly kernelSum: string;
  readonly videos: readonly FaultVideo[];
}
