/** From frames to markers: consecutive frames of one event type become a segment, each segment a marker. */

import { hex8 } from "../identifiers.ts";
import { LIMITS } from "../../contract/limits.ts";

export type MarkerStatus = "exact" | "provisional" | "finalized";

/** Who says that something is there, where it was not measured. */
export const MARKER_ORIGINS = ["model"] as const;
export type MarkerOrigin = typeof MARKER_ORIGINS[number];

/** A marker, with exactly the fields on the wire. See docs/frames.md#markers. */
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
  /** Who says it; absent from what was measured. */
  readonly origin?: MarkerOrigin;
}

/** The type with its origin: `scene_cut` of what was measured, `model:scene_cut` of what a model says. */
export function typeWithOrigin({ event_type, origin }: Pick<Marker, "event_type" | "origin">): string {
  return origin === undefined ? event_type : `${origin}:${event_type}`;
}

/** A frame as marker derivation needs it. */
export interface TypedFrame {
  readonly frameIndex: number;
  readonly ptsMs: number;
  readonly eventType: string;
  readonly confidence: number;
  /** Whether a cut is here whose exact time is `ptsMs`: two such cuts are never one. */
  readonly isCut?: boolean;
}

interface MarkerSegment {
  eventType: string;
  startFrame: number;
  endFrame: number;
  startPtsMs: number;
  endPtsMs: number;
  confidenceSum: number;
  frames: number;
  /** Whether the last frame of the segment is a cut. */
  endsInCut: boolean;
}

/** The markers of `frames`. See `MarkerBuilder`. */
export function deriveMarkers(frames: Iterable<TypedFrame>, owner: MarkerOwner): Marker[] {
  const builder = new MarkerBuilder(owner);
  for (const frame of frames) builder.add(frame);
  return builder.end();
}

export interface MarkerOwner {
  readonly runId: string;
  readonly streamId: string;
  readonly correctionWindowFrames?: number;
  /** The origin of all its markers; measured unless given. */
  readonly origin?: MarkerOrigin;
  /** The number of its first segment; 0 unless given. */
  readonly firstOrdinal?: number;
}

/**
 * Takes frames one by one, so that the caller can give others a turn in between. Markers are in the order of
 * their segments; a correction follows the provisional marker that it supersedes.
 *
 * With k for keyframe_keep, o for context_observation, and the confidence in tenths, "k6 k6 o9" gives `k 0-1
 * provisional`, `o 2-2 exact`. Two neighbouring segments can have the same type only when there is a gap in
 * the frame numbers between them, or where both are cuts.
 */
export class MarkerBuilder {
  readonly #owner: MarkerOwner;
  readonly #markers: Marker[] = [];
  #ordinal: number;
  /** The segment before the open one: whether it is corrected is known when that one is closed. */
  #closed: MarkerSegment | undefined;
  #open: MarkerSegment | undefined;

  constructor(owner: MarkerOwner) {
    this.#owner = owner;
    this.#ordinal = owner.firstOrdinal ?? 0;
  }

  add(frame: TypedFrame): void {
    const open = this.#open;
    const isCut = frame.isCut === true;
    const goesOn = open && frame.eventType === open.eventType && frame.frameIndex <= open.endFrame + 1;
    if (goesOn && !(isCut && open.endsInCut)) {
      open.endFrame = frame.frameIndex;
      open.endPtsMs = frame.ptsMs;
      open.confidenceSum += frame.confidence;
      open.frames += 1;
      open.endsInCut = isCut;
      return;
    }
    this.#close();
    this.#open = {
      eventType: frame.eventType,
      startFrame: frame.frameIndex,
      endFrame: frame.frameIndex,
      startPtsMs: frame.ptsMs,
      endPtsMs: frame.ptsMs,
      confidenceSum: frame.confidence,
      frames: 1,
      endsInCut: isCut,
    };
  }

  /** All markers; call it once, after the last frame. */
  end(): Marker[] {
    this.#close();
    this.#close();
    return this.#markers;
  }

  /** Closes the open segment, and emits the one before it. */
  #close(): void {
    const [segment, next] = [this.#closed, this.#open];
    if (segment) this.#emit(segment, next);
    this.#closed = next;
    this.#open = undefined;
  }

  #emit(segment: MarkerSegment, next: MarkerSegment | undefined): void {
    const window = this.#owner.correctionWindowFrames ?? LIMITS.marker.correctionWindowFrames;
    const ordinal = this.#ordinal++;
    const marker = markerOf(segment, ordinal, this.#owner);
    this.#markers.push(marker);
    if (marker.status === "provisional" && next && corrects(next, segment, window)) {
      this.#markers.push(correctionOf(marker, next, ordinal));
    }
  }
}

function corrects(next: MarkerSegment, segment: MarkerSegment, window: number): boolean {
  return next.eventType === segment.eventType && next.startFrame - segment.endFrame <= window;
}

function markerOf(
  segment: MarkerSegment,
  ordinal: number,
  owner: MarkerOwner,
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
    ...(owner.origin && { origin: owner.origin }),
  };
}

/** How many numbers of segments and ranges these markers take. */
export function ordinalsOf(markers: readonly Marker[]): number {
  return markers.filter((marker) => marker.supersedes_marker_id === null).length;
}

/** The correction of a provisional marker. It covers both segments, with the mean of their confidences. */
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

/**
 * A score with seven decimals: finer than a 32-bit float near 1, and the same text for the same input on
 * every machine.
 */
export function roundScore(score: number): number {
  return Math.round(score * 1e7) / 1e7;
}
