/** What a timeline shows: the events of a run that have a place in its media. */

import type { JsonObject, TimelineEvent } from "../../client/mod.ts";
import {
  laneOfEvent,
  laneOfMarker,
  lookOfEvent,
  lookOfMarker,
  type MarkLook,
  QUIET_LANES,
} from "../text/event_types.ts";
import { transitionText } from "../text/transition.ts";

/** One event on the timeline. Times are media time in milliseconds. */
export interface Mark {
  readonly seq: number;
  readonly kind: string;
  /** Of a marker. */
  readonly eventType: string | null;
  /** Of a marker that a model made; null where it was measured. */
  readonly origin: string | null;
  /** A key of `MARK_LOOKS`. */
  readonly lane: string;
  readonly startMs: number;
  /** Not below `startMs`. */
  readonly endMs: number;
  readonly frame: number | null;
  /** 0 to 1. */
  readonly confidence: number | null;
  /** Of a marker. */
  readonly status: MarkStatus | null;
  /** Of its stored picture. */
  readonly sha256: string | null;
  /** What it says, in few words. */
  readonly label: string;
}

export type MarkStatus = "exact" | "provisional" | "finalized";

export interface MarkFilter {
  /** Null for all; `usual` for all but `QUIET_LANES`. */
  readonly lanes: ReadonlySet<string> | "usual" | null;
  /** Looked for in the label and the event type, whatever the case; empty for all. */
  readonly text: string;
  /** Marks that have a confidence have at least this one. */
  readonly minConfidence: number;
}

export const ALL_MARKS: MarkFilter = {
  lanes: null,
  text: "",
  minConfidence: 0,
};

/** What a timeline shows unless the reader chooses. */
export const USUAL_MARKS: MarkFilter = { ...ALL_MARKS, lanes: "usual" };

/** Whether a filter lets the marks of a lane pass. */
export function showsLane({ lanes }: MarkFilter, lane: string): boolean {
  if (lanes === null) return true;
  return lanes === "usual" ? !QUIET_LANES.has(lane) : lanes.has(lane);
}

const LABEL_CHARACTERS = 160;

/** Null for an event without a place in the media. */
export function markOf({ seq, kind, payload }: TimelineEvent): Mark | null {
  const eventType = kind === "marker_emitted" ? textIn(payload, "event_type") ?? "marker" : null;
  const origin = eventType === null ? null : textIn(payload, "origin");
  const lane = eventType === null ? laneOfEvent(kind) : laneOfMarker(eventType, origin);
  const startMs = numberIn(payload, "start_pts_ms") ??
    numberIn(payload, "pts_start_ms") ??
    numberIn(payload, "pts_ms");
  if (lane === null || startMs === null) return null;
  const endMs = numberIn(payload, "end_pts_ms") ??
    numberIn(payload, "pts_end_ms") ?? startMs;
  return {
    seq,
    kind,
    eventType,
    origin,
    lane,
    startMs,
    endMs: Math.max(startMs, endMs),
    frame: numberIn(payload, "start_frame") ?? numberIn(payload, "frame_index"),
    confidence: numberIn(payload, "confidence"),
    status: textIn(payload, "status") as MarkStatus | null,
    sha256: textIn(payload, "image_sha256") ??
      textIn(objectIn(payload, "evidence"), "image_sha256"),
    label: labelOf(kind, eventType, payload),
  };
}

export function lookOfMark({ eventType, origin, kind }: Mark): MarkLook {
  return eventType === null ? lookOfEvent(kind) : lookOfMarker(eventType, origin);
}

function labelOf(
  kind: string,
  eventType: string | null,
  payload: JsonObject,
): string {
  const text = textIn(payload, "description") ?? textIn(payload, "summary") ??
    textIn(objectIn(payload, "assertion"), "policy_id") ??
    textIn(objectIn(payload, "trigger"), "program_id") ??
    textIn(payload, "reason");
  const isPlain = text === null || text === "";
  const said = isPlain
    ? eventType ?? textIn(payload, "event_type") ?? kind
    : kind === "state_transition"
    ? transitionText(text)
    : text;
  return said.slice(0, LABEL_CHARACTERS);
}

function numberIn(values: JsonObject, name: string): number | null {
  const value = values[name];
  return typeof value === "number" ? value : null;
}

function textIn(values: JsonObject, name: string): string | null {
  const value = values[name];
  return typeof value === "string" ? value : null;
}

function objectIn(values: JsonObject, name: string): JsonObject {
  const value = values[name];
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value as JsonObject : {};
}
