/** Payloads of the events of live sessions. See docs/reference/events.md#live-events. */

import * as z from "zod";
import { CLIP_CAUSES } from "../live/recording/causes.ts";
import { CLIP_SOUND_STATES } from "../live/recording/record_plan.ts";
import {
  coordinates,
  coordinateSchema,
  count,
  durationMs,
  imageFields,
  normalizedRegion,
  open,
  positive,
  sha256,
  text,
  unit,
} from "./payload_shapes.ts";
import { named, namedEnum } from "../schemas/named_shapes.ts";

/** The frame of an event. */
const frameFields = {
  frame_index: count.describe("Counts the session's access units from 0"),
  pts_ms: count.describe("Media time, milliseconds on the RTP clock"),
  coordinate_schema: coordinateSchema,
  coordinates,
};

/**
 * What a session describes. `description` of a state_transition is itself JSON text: from_state, to_state,
 * trigger, confidence.
 */
export const observation = named(
  "Observation",
  open({
    session_id: text,
    ...frameFields,
    confidence: unit,
    description: z.string(),
  }),
);

/** A stored keyframe. This service writes the session and the confidence; a reader must not require them. */
export const keyframeStored = open({
  session_id: text.optional(),
  ...frameFields,
  confidence: unit.optional(),
  event_type: text,
  description: z.string(),
  ...imageFields,
});

const imageEvidence = named("StoredPicture", open(imageFields));

/** The decoder of a live session was replaced; frames between the two are lost. */
export const decoderRestarted = open({
  session_id: text,
  reason: z.enum(["stalled", "exited"]),
  pts_ms: count.describe("Media time of the last frame before"),
  restarts: positive.describe("In this session so far"),
  pipeline_generation: positive,
});

/** ICE and DTLS of a WHIP session are established. */
export const publisherConnected = open({
  session_id: text,
  connect_ms: durationMs.describe("Wall time from the offer to the connection, milliseconds"),
  pipeline_generation: positive,
});

/** A pulled source delivered no more media; the session goes on and reconnects to it. */
export const sourceGap = open({
  session_id: text,
  reason: text,
  pts_ms: count.nullable().describe("Media time of the last frame before, null when there was none"),
});

/** A pulled source delivers frames again. */
export const sourceResumed = open({
  session_id: text,
  gap_ms: durationMs.describe("Wall time without the source, milliseconds"),
  attempts: positive.describe("Number of connection attempts"),
});

const ARMED_REASONS = ["schedule", "call", "call_ended", "file"] as const;

/**
 * Whether what zone and trigger of a camera find is an alarm from here on. See docs/cameras.md#armed-times.
 */
export const sourceArmed = named(
  "ArmingChange",
  open({
    session_id: text,
    source_uri: text,
    reason: z.enum(ARMED_REASONS).describe(
      "`call_ended`: the time for which a call held is over; `file`: the file of sources was changed",
    ),
    principal_key: text.nullable().describe("Who called; null for every other reason"),
    until_ms: count.nullable().describe("When it changes next, as far as is known, epoch milliseconds"),
  }),
);

/** The field of events of an always-on camera. */
const armed = { armed: z.boolean().optional().describe("Of an always-on camera: whether it was armed") };

/** The encoded stream around a cause became an MP4. */
export const clipStored = open({
  session_id: text,
  sha256: sha256.describe("Of the MP4, which GET /v1/runs/:id/media/:sha256 serves"),
  bytes: positive,
  start_pts_ms: count.describe("Media time of the first frame"),
  end_pts_ms: count.describe("Media time at which the last frame ends"),
  cause: namedEnum("ClipCause", CLIP_CAUSES).describe("What began the clip; later causes prolong it"),
  cause_seq: positive.nullable().describe(
    "The event of the cause; null where none was written, or in a run before a roll-over",
  ),
  cause_pts_ms: count,
  codec: text.describe("By RFC 6381, such as avc1.42e01f, opus"),
  sound: namedEnum("ClipSound", CLIP_SOUND_STATES).describe(
    "not_supported: the source has sound that MP4 cannot carry",
  ),
  still: imageEvidence.describe("The picture of the cause"),
});
/** Why an event got no description. See docs/live/events.md#enrichment. */
export const ENRICHMENT_REASONS = [
  "deadline",
  "overloaded",
  "model_failed",
  "token_cap",
  "no_model",
  "session_ended",
  "service_restarted",
] as const;

/** The fields that announce a second event. */
const announcement = {
  enrichment_deadline_ms: positive.optional().describe(
    "One `event_enriched` with this `seq` as its `cause_seq` follows within so long",
  ),
};

const explained = {
  session_id: text,
  cause_seq: positive.describe("`seq` of the event that is explained, of the same run"),
  cause_kind: text.describe("Its kind"),
  frame_index: count.describe("Of the explained event"),
  pts_ms: count.describe("Of the explained event: media time, milliseconds on the RTP clock"),
  confidence: unit.describe("Of the explained event"),
  event_type: text.nullable().describe("Of a trigger or a marker"),
  zone: text.nullable().describe("`policy_id` of the zone"),
};

/** The second event of an alert: exactly one for each event that announces it. */
export const eventEnriched = z.union([
  open({ ...explained, description: z.string() }),
  open({ ...explained, reason: z.enum(ENRICHMENT_REASONS).describe("Why there is no description") }),
]);

/** Motion persisted inside the zone. It is not identified who or what moved, so `subject` is null. */
export const restrictedZoneActivityEntered = open({
  session_id: text,
  ...frameFields,
  confidence: unit,
  description: z.string().optional(),
  assertion: open({
    policy_id: text,
    policy_version: positive,
    status: z.literal("active"),
    coordinate_space: z.literal("normalized_image"),
    zone: normalizedRegion,
    trigger: open({
      kind: z.literal("perceptual_hash_motion"),
      score: unit,
      threshold: unit,
      consecutive_frames: positive,
    }),
    subject: z.null(),
  }),
  provenance: open({
    device_id: text,
    model_id: z.literal("service.motion-phash.v1"),
    pipeline_generation: positive,
  }),
  evidence: imageEvidence,
  ...announcement,
  ...armed,
});

/** A trigger fired. An input that the frame did not have is null. */
export const triggerFired = open({
  session_id: text,
  ...frameFields,
  confidence: unit,
  description: z.string().optional(),
  event_type: text,
  trigger: open({
    program_id: text,
    program_version: positive,
    isa_version: positive,
    inputs: open({
      motion_score: z.number().nullable(),
      novelty_score: z.number().nullable(),
      confidence: z.number().nullable(),
    }),
    actions: open({
      event: z.literal(true),
      webhook: z.boolean(),
      local_output: z.boolean(),
      capture: z.literal("keyframe"),
    }),
  }),
  provenance: open({ pipeline_generation: positive }),
  evidence: imageEvidence,
  ...announcement,
  ...armed,
});
