/** What is known of a labelled video: the fields of a `*.truth.json`. Indexes count decoded frames from 0. */

/** A range of frames, `start` to `end - 1`. */
export interface FrameRange {
  readonly start: number;
  readonly end: number;
}

export interface NamedRange extends FrameRange {
  readonly kind?: string;
  /** The largest mean difference of luma of a frame to the undamaged one, for damage in a file. */
  readonly max_mad?: number;
}

/** A stretch that plays `copies` times, the first one included. */
export interface LoopRange extends FrameRange {
  readonly period: number;
  readonly copies?: number;
}

export interface TruthShot {
  readonly start: number;
  /** Source of the shot: the file name of a clip, or `drawn:<what>`. */
  readonly src: string;
  /** Where the shot begins in the clip, seconds. */
  readonly src_t: number;
  /** Origin of the clip: clips of one origin show the same things, and folds never part them. */
  readonly origin?: string;
}

/** The part of a `*.truth.json` that concerns cuts. */
export interface CutTruth {
  readonly name: string;
  /** Path of the video, relative to the truth file. */
  readonly video: string;
  /** First frames of new shots. */
  readonly cuts: readonly number[];
  readonly gradual?: readonly NamedRange[];
  readonly black?: readonly FrameRange[];
  readonly freezes?: readonly NamedRange[];
  readonly loops?: readonly LoopRange[];
  /** Time jumps within a shot of the same camera, and changes too small to be asked for. */
  readonly jumpcuts?: readonly number[];
  /** Frames before which other frames are missing. */
  readonly jumps?: readonly number[];
}

export interface Truth extends CutTruth {
  readonly kind?: string;
  readonly codec?: string;
  readonly group?: number;
  readonly width?: number;
  readonly height?: number;
  readonly frames?: number;
  readonly fps?: number;
  readonly flashes?: readonly NamedRange[];
  /** Faults that were drawn into the pictures. */
  readonly artifacts?: readonly NamedRange[];
  /** Frames whose decode differs because the file was damaged. */
  readonly corruption?: readonly NamedRange[];
  /** Damage too faint to be asked for. */
  readonly faint?: readonly FrameRange[];
  /** Where nothing moves, though nobody froze it. */
  readonly static?: readonly FrameRange[];
  readonly shakes?: readonly NamedRange[];
  /** First frames after a light was switched on or off and stayed so. */
  readonly lightsteps?: readonly number[];
  readonly shots?: readonly TruthShot[];
}
