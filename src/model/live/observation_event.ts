/** Payloads of what a live session observes: descriptions, transitions, loops, stored keyframes. Contract 11.5. */

import type { PayloadOf } from "../events/event_table.ts";
import type { GateReason } from "../frames/signals.ts";
import { frameFields, type LiveFrame, type StoredImage, storedImageFields, unitScore } from "./live_frame.ts";

export interface Observation {
  readonly sessionId: string;
  readonly frame: LiveFrame;
  /** [0,1]. */
  readonly confidence: number;
  readonly description: string;
}

/** Contract 11.4: how sure events of clips are, whatever the model says. */
export const CLIP_CONFIDENCE = 0.9;
/** Contract 3.5. */
export const LOOP_CONFIDENCE = 0.9;
export const LOOP_DESCRIPTION = "the last frames repeat";

/** Of `vlm`, `vlm_tiered`, `clip_vlm`, `clip_vlm_tiered`, `state_transition` and `loop_detected`. */
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

/** What made a frame a keyframe, as `keyframe_stored` says it. */
export type KeyframeEventType =
  | "scene_cut"
  | "periodic_keepalive"
  | "restricted_zone_activity"
  | `clip_${string}`
  | `trigger.${string}`;

/** Of a frame that the gate kept; the first one counts as a keepalive. */
export function keyframeEventType(reason: GateReason): "scene_cut" | "periodic_keepalive" {
  return reason === "scene_cut" ? "scene_cut" : "periodic_keepalive";
}

/** Interface 6.4 has the shared payload with the image added, so it names session and confidence too. */
export function keyframeStoredPayload(
  observation: Observation,
  eventType: KeyframeEventType,
  image: StoredImage,
): PayloadOf<"keyframe_stored"> {
  return { ...observationPayload(observation), event_type: eventType, ...storedImageFields(image) };
}
