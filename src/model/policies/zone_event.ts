/** The payload of the event for motion that persisted inside a restricted zone. */

import type { PayloadOf } from "../events/event_table.ts";
import type { RestrictedZone } from "./zone.ts";
import {
  frameFields,
  type LiveFrame,
  type StoredImage,
  storedImageFields,
  unitScore,
} from "../frames/live_frame.ts";

/** Motion of perceptual hashes, computed on the pixels of the zone only. */
const MODEL_ID = "service.motion-phash.v1";

export interface ZoneEntry {
  readonly sessionId: string;
  readonly generation: number;
  readonly frame: LiveFrame;
  readonly zone: RestrictedZone;
  /** Motion of the frame with which the activity began, [0,1]. */
  readonly score: number;
  /** Consecutive frames that met the threshold, this one included. */
  readonly consecutiveFrames: number;
  readonly image: StoredImage;
}

/** The payload of an entry. It is not identified who or what moved, so the subject is null. */
export function zoneEnteredPayload(entry: ZoneEntry): PayloadOf<"restricted_zone_activity_entered"> {
  const { zone } = entry;
  const { x, y, width, height } = zone.region;
  const score = unitScore(entry.score);
  return {
    session_id: entry.sessionId,
    ...frameFields(entry.frame),
    confidence: score,
    assertion: {
      policy_id: zone.policy_id,
      policy_version: zone.policy_version,
      status: "active",
      coordinate_space: "normalized_image",
      zone: { x, y, width, height },
      trigger: {
        kind: "perceptual_hash_motion",
        score,
        threshold: zone.enter_motion_score,
        consecutive_frames: entry.consecutiveFrames,
      },
      subject: null,
    },
    provenance: {
      device_id: zone.device_id,
      model_id: MODEL_ID,
      pipeline_generation: entry.generation,
    },
    evidence: storedImageFields(entry.image),
  };
}
