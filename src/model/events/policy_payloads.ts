/** Payloads of the records of policies: revisions, deployments, rollbacks, replays. See
 * docs/triggers-policies.md#policies.
 */

import * as z from "zod";
import {
  coordinates,
  coordinateSchema,
  count,
  fps,
  jsonObject,
  normalizedRegion,
  open,
  positive,
  text,
  unit,
} from "./payload_shapes.ts";
import { named } from "../schemas/named_shapes.ts";

export const policyStatus = named(
  "PolicyStatus",
  z.enum(["draft", "shadow", "canary", "active", "retired", "rolled_back"]),
);
const stage = named("PolicyStage", z.enum(["shadow", "canary", "active"]));

/** A zone of a policy. See docs/triggers-policies.md#restricted-zone. */
export const restrictedZone = open({
  policy_id: text,
  policy_version: positive,
  device_id: text,
  region: normalizedRegion,
  enter_motion_score: unit,
  exit_motion_score: unit,
  enter_after_frames: positive,
  exit_after_frames: positive,
});

/** The parameters of a revision, whose number is the sequence number of this event. */
export const policyParameters = named(
  "PolicyParameters",
  open({ restricted_zone: restrictedZone.optional() }),
);

export const policyRevisionCreated = open({
  parent_revision: positive.nullable(),
  prompt: text.nullable(),
  output_schema: jsonObject.nullable(),
  parameters: policyParameters,
});

/** How a live session applied the request; nulls when none was live. */
export const application = named(
  "PolicyApplication",
  open({
    session_id: text.nullable(),
    generation: positive.nullable(),
    prompt_acknowledged: z.boolean(),
    effective_on_current_generation: z.boolean(),
    deferred_fields: z.array(text),
    note: z.string(),
  }),
);

export const policyDeploymentRequested = open({
  revision: positive,
  from_status: policyStatus,
  to_status: stage,
  expected_generation: positive.nullable(),
});

export const policyDeploymentAcknowledged = open({
  revision: positive,
  request_seq: positive,
  status: stage,
  application,
});

export const policyDeploymentRejected = open({
  revision: positive,
  request_seq: positive,
  to_status: stage,
  reason: text,
});

export const policyRollbackRequested = open({
  revision: positive,
  from_revision: positive,
  expected_generation: positive.nullable(),
});

export const policyRollbackAcknowledged = open({
  revision: positive,
  from_revision: positive,
  request_seq: positive,
  status: z.literal("active"),
  application,
});

export const policyRollbackRejected = open({
  revision: positive,
  from_revision: positive,
  request_seq: positive,
  reason: text,
});

/** Stored events, counted against the threshold of the revision. */
const replayedEvents = {
  revision: positive,
  comparison: text,
  from_seq: count,
  to_seq: count.nullable(),
  candidate_events: count,
  accepted_events: count,
  rejected_events: count,
  events_without_score: count,
  threshold: unit.nullable(),
  limitation: z.string(),
};

/** An interval of activity that the zone would have reported; the last one may have no end. */
const zoneInterval = named(
  "ZoneInterval",
  open({
    entered_frame: count,
    entered_pts_ms: count.describe("Media time, milliseconds"),
    left_frame: count.nullable(),
    left_pts_ms: count.nullable(),
    peak_motion_score: unit,
  }),
);

/**
 * A replay over the signals of the media: `accepted_events` counts the intervals, `candidate_events` the
 * stored events.
 */
const replayedSignals = open({
  ...replayedEvents,
  source: z.literal("signals"),
  source_uri: text,
  sample_fps: fps,
  frames: positive,
  first_pts_ms: count.optional().describe("Media time of the first frame, milliseconds"),
  last_pts_ms: count.optional().describe("Media time of the last frame, milliseconds"),
  coordinate_schema: coordinateSchema,
  coordinates,
  intervals_total: count,
  intervals: z.array(zoneInterval),
});

export const policyReplayEvaluated = named(
  "PolicyEvaluation",
  z.union([open({ ...replayedEvents, source: z.literal("local_wal") }), replayedSignals]),
);
