/** Payloads of the observations of a live session: descriptions, transitions, loops, stored keyframes. */

import type { PayloadOf } from "../events/event_table.ts";
import type { GateReason } from "../frames/signals.ts";
import {
  frameFields,
  type LiveFrame,
  type StoredImage,
  storedImageFields,
  unitScore,
} from "../frames/live_frame.ts";

export interface Observation {
  readonly sessionId: string;
  readonly frame: LiveFrame;
  /** How certain the observation is, [0,1]. */
  readonly confidence: number;
  readonly description: string;
}

/** The confidence of events of clips, whatever the model answers. */
export const CLIP_CONFIDENCE = 0.9;
export const LOOP_CONFIDENCE = 0.9;
export const LOOP_DESCRIPTION = "the last frames repeat";

/**
 * The payload of `vlm`, `vlm_tiered`, `clip_vlm`, `clip_vlm_tiered`, `state_transition` and `loop_detected`.
 */
export function observationPayload(
  { sessionId, frame, confidence, description }: Observation,
): PayloadOf<"vlm"> {
  return {
    session_id: sessionId,
    ...frameFields(frame),
    confidence: unitScore(confidence),
    description,
  };
}

/** Why a frame is a keyframe: `event_type` of `keyframe_stored`. */
export type KeyframeEventType =
  | "scene_cut"
  | "periodic_keepalive"
  | "restricted_zone_activity"
  | `clip_${string}`
  | `trigger.${string}`;

/** Why a frame that the gate kept is a keyframe; the first frame counts as a keepalive. */
export function keyframeEventType(reason: GateReason): "scene_cut" | "periodic_keepalive" {
  return reason === "scene_cut" ? "scene_cut" : "periodic_keepalive";
}

/** The payload of an observation with the image added. */
export function keyframeStoredPayload(
  observation: Observation,
  eventType: KeyframeEventType,
  image: StoredImage,
): PayloadOf<"keyframe_stored"> {
  return { ...observationPayload(observation), event_type: eventType, ...storedImageFields(image) };
}
