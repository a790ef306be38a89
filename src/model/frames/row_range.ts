/** Detected ranges in numbers of rows, and the markers that they become: only sampled frames have a row. */

import { hex8 } from "../identifiers.ts";
import { LIMITS } from "../../contract/limits.ts";
import { type DetectedRange, type Detector, DETECTORS } from "./detected_range.ts";
import type { Labels } from "./label_map.ts";
import { type Marker, type MarkerOwner, ordinalsOf, roundScore } from "./marker.ts";

/** A range in numbers of rows: one of `frames_decoded.ranges[]`. See docs/frames.md#ranges. */
export interface RowRange {
  readonly type: Detector;
  /**
   * The `frame_index` of the first row inside, and below of the last one; where no row lies inside, both name
   * the row before the range.
   */
  readonly start_frame: number;
  readonly end_frame: number;
  /** When the range itself begins: media time, whole milliseconds. */
  readonly start_pts_ms: number;
  readonly end_pts_ms: number;
  readonly confidence: number;
}

export interface RowRanges {
  /** The ranges, sorted by start; at most `LIMITS.detection.rangesMax`. */
  readonly ranges: readonly RowRange[];
  /** Whether there were more ranges: those that begin later are left out. */
  readonly isTruncated: boolean;
}

/**
 * Ranges in numbers of rows. `ptsMs` are the times of the rows, never decreasing and at least one; rounded or
 * not.
 */
export function rowRanges(ranges: readonly DetectedRange[], ptsMs: ArrayLike<number>): RowRanges {
  const rangesMax = LIMITS.detection.rangesMax;
  const inOrder = ranges.toSorted(byStart).slice(0, rangesMax);
  return {
    ranges: inOrder.map((range) => rowRange(range, ptsMs)),
    isTruncated: ranges.length > rangesMax,
  };
}

/**
 * Sorts by start, then end, then type, so that the order does not depend on the order in which the detectors
 * are asked.
 */
function byStart(left: DetectedRange, right: DetectedRange): number {
  return left.startPtsMs - right.startPtsMs || left.endPtsMs - right.endPtsMs ||
    DETECTORS.indexOf(left.type) - DETECTORS.indexOf(right.type);
}

function rowRange(range: DetectedRange, ptsMs: ArrayLike<number>): RowRange {
  const first = rowsBefore(ptsMs, Math.round(range.startPtsMs));
  const last = rowsBefore(ptsMs, Math.round(range.endPtsMs) + 1) - 1;
  return rangeOfRows(range, first <= last ? first : Math.max(0, last), Math.max(0, last));
}

/** The range from the first to the last of these rows, with its numbers rounded as they are written. */
export function rangeOfRows(range: DetectedRange, startFrame: number, endFrame: number): RowRange {
  return {
    type: range.type,
    start_frame: startFrame,
    end_frame: endFrame,
    start_pts_ms: Math.round(range.startPtsMs),
    end_pts_ms: Math.round(range.endPtsMs),
    confidence: roundScore(range.confidence),
  };
}

/** How many rows have a rounded time below `limitMs`. */
function rowsBefore(ptsMs: ArrayLike<number>, limitMs: number): number {
  let [low, high] = [0, ptsMs.length];
  while (low < high) {
    const middle = (low + high) >>> 1;
    if (Math.round(ptsMs[middle]!) < limitMs) low = middle + 1;
    else high = middle;
  }
  return low;
}

export interface RangeMarkerOptions {
  readonly owner: MarkerOwner;
  readonly labels: Labels;
  /** The detectors whose ranges become markers; those of others become none. */
  readonly detectors: ReadonlySet<Detector>;
}

/**
 * The markers of a pass with those of its ranges behind them. The ranges' ids count on after the last
 * segment, so that the ids of segments are the same with every choice of detectors. See
 * docs/frames.md#ranges.
 */
export function withRangeMarkers(
  segments: readonly Marker[],
  ranges: readonly RowRange[],
  { owner, labels, detectors }: RangeMarkerOptions,
): Marker[] {
  const first = ordinalsOf(segments);
  const wanted = ranges.filter(({ type }) => detectors.has(type));
  return [...segments, ...wanted.map((range, index) => rangeMarker(range, first + index, owner, labels))];
}

/** What becomes one marker. */
export type MarkedRange = Omit<RowRange, "type"> & { readonly type: RowRange["type"] | "scene_cut" };

/** The marker of a range: always exact, also where a label map renames the type. */
export function rangeMarker(
  range: MarkedRange,
  ordinal: number,
  { runId, streamId }: MarkerOwner,
  labels: Labels,
): Marker {
  return {
    marker_id: `mk-${hex8(ordinal)}`,
    run_id: runId,
    stream_id: streamId,
    event_type: labels.event(range.type).label,
    status: "exact",
    start_frame: range.start_frame,
    end_frame: range.end_frame,
    start_pts_ms: range.start_pts_ms,
    end_pts_ms: range.end_pts_ms,
    confidence: range.confidence,
    supersedes_marker_id: null,
  };
}
