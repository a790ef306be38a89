/** From frames to markers: consecutive frames of one event type become a segment, each segment a marker. */

import { hex8 } from "../identifiers.ts";
import { LIMITS } from "../limits.ts";

export type MarkerStatus = "exact" | "provisional" | "finalized";

/** The fields on the wire, exactly these. See docs/frames.md#markers. */
export interface Marker {
  readonly marker_id: string;
  readonly run_id: string;
  readonly stream_id: string;
  readonly event_type: string;
  readonly status: MarkerStatus;
  readonly start_frame: number;
  readonly end_frame: number;
  readonly start_pts_ms: number;
  readonly end_pts_ms: number;
  readonly confidence: number;
  readonly supersedes_marker_id: string | null;
}

/** A frame as marker derivation needs it. */
export interface TypedFrame {
  readonly frameIndex: number;
  readonly ptsMs: number;
  readonly eventType: string;
  readonly confidence: number;
}

interface MarkerSegment {
  eventType: string;
  startFrame: number;
  endFrame: number;
  startPtsMs: number;
  endPtsMs: number;
  confidenceSum: number;
  frames: number;
}

/**
 * Markers in the order of their segments; a correction follows the provisional marker that it supersedes.
 *
 * With k for keyframe_keep, o for context_observation, and the confidence in tenths, "k6 k6 o9" gives
 * `k 0-1 provisional`, `o 2-2 exact`. Two neighbouring segments can have the same type only when there is a gap in the
 * frame numbers between them, so corrections occur only there.
 */
export function deriveMarkers(
  frames: Iterable<TypedFrame>,
  owner: { runId: string; streamId: string; correctionWindowFrames?: number },
): Marker[] {
  const segments = segmentsOf(frames);
  const window = owner.correctionWindowFrames ?? LIMITS.marker.correctionWindowFrames;
  const markers: Marker[] = [];
  segments.forEach((segment, ordinal) => {
    const marker = markerOf(segment, ordinal, owner);
    markers.push(marker);
    const next = segments[ordinal + 1];
    if (marker.status === "provisional" && next && corrects(next, segment, window)) {
      markers.push(correctionOf(marker, next, ordinal));
    }
  });
  return markers;
}

function segmentsOf(frames: Iterable<TypedFrame>): MarkerSegment[] {
  const segments: MarkerSegment[] = [];
  let open: MarkerSegment | undefined;
  for (const frame of frames) {
    if (open && frame.eventType === open.eventType && frame.frameIndex <= open.endFrame + 1) {
      open.endFrame = frame.frameIndex;
      open.endPtsMs = frame.ptsMs;
      open.confidenceSum += frame.confidence;
      open.frames += 1;
      continue;
    }
    open = {
      eventType: frame.eventType,
      startFrame: frame.frameIndex,
      endFrame: frame.frameIndex,
      startPtsMs: frame.ptsMs,
      endPtsMs: frame.ptsMs,
      confidenceSum: frame.confidence,
      frames: 1,
    };
    segments.push(open);
  }
  return segments;
}

function corrects(next: MarkerSegment, segment: MarkerSegment, window: number): boolean {
  return next.eventType === segment.eventType && next.startFrame - segment.endFrame <= window;
}

function markerOf(
  segment: MarkerSegment,
  ordinal: number,
  owner: { runId: string; streamId: string },
): Marker {
  const confidence = clampUnit(segment.confidenceSum / segment.frames);
  const isExact = segment.eventType === "scene_cut" || confidence >= LIMITS.marker.exactConfidence;
  return {
    marker_id: `mk-${hex8(ordinal)}`,
    run_id: owner.runId,
    stream_id: owner.streamId,
    event_type: segment.eventType,
    status: isExact ? "exact" : "provisional",
    start_frame: segment.startFrame,
    end_frame: segment.endFrame,
    start_pts_ms: segment.startPtsMs,
    end_pts_ms: segment.endPtsMs,
    confidence: roundScore(confidence),
    supersedes_marker_id: null,
  };
}

/** Covers both segments, with the mean of their confidences. */
function correctionOf(provisional: Marker, next: MarkerSegment, ordinal: number): Marker {
  const nextConfidence = clampUnit(next.confidenceSum / next.frames);
  return {
    ...provisional,
    marker_id: `mkf-${hex8(ordinal)}`,
    status: "finalized",
    end_frame: next.endFrame,
    end_pts_ms: next.endPtsMs,
    confidence: roundScore((provisional.confidence + nextConfidence) / 2),
    supersedes_marker_id: provisional.marker_id,
  };
}

function clampUnit(value: number): number {
  return Math.min(1, Math.max(0, value));
}

/** Seven decimals: finer than a 32-bit float near 1, and the same text for the same input on every machine. */
export function roundScore(score: number): number {
  return Math.round(score * 1e7) / 1e7;
}
