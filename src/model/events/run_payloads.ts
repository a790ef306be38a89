/** Payloads of the events in the life of a run: created, ingested, ended, deleted, its feedback and its
 * webhooks.
 */

import { REMOVAL_REASONS } from "../runs/removal.ts";
import * as z from "zod";
import { DECODE_BACKENDS } from "../../base/program_paths.ts";
import { ARTIFACT_KINDS, DETECTORS } from "../frames/detected_range.ts";
import { FIELD_ORDERS } from "../frames/field_order.ts";
import { MEDIA_KINDS } from "../files/media_kind.ts";
import { LIMITS } from "../../contract/limits.ts";
import {
  coordinates,
  coordinateSchema,
  count,
  durationMs,
  fps,
  mode,
  open,
  positive,
  samplingPolicy,
  sourceEndFields,
  text,
  u64,
  unit,
} from "./payload_shapes.ts";
import { named, namedEnum } from "../schemas/named_shapes.ts";
import { MEDIA_MODES } from "./media_mode.ts";

const runCreatedByRequest = open({
  request_id: text,
  mode,
  model: text.nullable(),
  principal_key: text,
  tenant_id: z.string().nullable(),
});

const triggerProgramId = named(
  "TriggerProgramId",
  open({ program_id: text, version: positive, isa_version: positive }),
);

const runCreatedByWhip = open({
  principal_key: text,
  session_id: text,
  source: z.literal("whip"),
  trigger_program: triggerProgramId.nullable(),
});

/** A run of a camera that is always watched, which no request made. */
const runCreatedBySource = open({
  principal_key: text,
  session_id: text,
  source: z.literal("live"),
  predecessor_run_id: text.nullable().describe("The run that this one goes on for, where it rolled over"),
});

/** What the key of a webhook's cooldown may be made of. */
export const COOLDOWN_KEYS = ["kind", "label", "zone", "source"] as const;

/** Why media go before the events that name them. */
export const MEDIA_REMOVAL_REASONS = ["age", "bytes"] as const;
export type MediaRemovalReason = typeof MEDIA_REMOVAL_REASONS[number];

/** The state of the run as it followed from the removed events. */
const removedRun = open({
  principal_key: text,
  mode: z.string(),
  model: z.string(),
  source_uri: z.string(),
  source_name: z.string().optional(),
  source: z.enum(["whip", "live", ""]),
  session_id: z.string(),
  state: z.enum(["pending", "processing", "completed", "failed", "cancelled"]),
  created_ms: count.describe("Epoch milliseconds"),
  last_activity_ms: count.describe("Epoch milliseconds"),
  deleted: z.boolean(),
});

export const eventsRemoved = open({
  reason: namedEnum("RemovalReason", REMOVAL_REASONS),
  events: positive.describe("How many events were removed"),
  bytes: positive.describe("The size of their records in the log"),
  through_seq: positive.describe("The last one of them"),
  run: removedRun,
});

export const mediaRemoved = open({
  media: namedEnum("MediaKind", MEDIA_KINDS),
  reason: namedEnum("MediaRemovalReason", MEDIA_REMOVAL_REASONS),
  through_seq: positive.describe("What events of the run up to this one name"),
  blobs: positive.describe("How many were named"),
  bytes: count.describe("Their size; one that another run still names stays for that one"),
});

export const runCreated = z.union([runCreatedByRequest, runCreatedByWhip, runCreatedBySource]);

const videoStartMs = count.optional().describe(
  "When players show the first frame, milliseconds from the start of the film, whose sound may begin earlier; absent for 0",
);

const uploadLabel = text.optional().describe("The name that an upload had; absent for other sources");

/** The receipt of an ingest; `ingest` is the request body as given, with null for absent fields. */
const ingestReceivedByIngest = open({
  request_id: text,
  ingest: open({
    source_uri: text,
    sampling_policy: z.string().nullable(),
    fixed_fps: z.number().nullable(),
    sample_fps: z.number().nullable(),
    max_frames: positive.nullable(),
    stream_id: z.string().nullable(),
    video_stream: count.optional().describe("The video stream that the caller chose"),
  }),
  decoded_frames: positive,
  source_uri: text,
  source_name: uploadLabel,
  video_start_ms: videoStartMs,
  sampling_policy: samplingPolicy,
  sample_fps: fps,
});

/** The receipt of a reason request. The last four fields are null when the media are read as frames. */
const ingestReceivedByReason = open({
  request_id: text,
  source_uri: text,
  source_name: uploadLabel,
  video_start_ms: videoStartMs,
  index_name: z.string().nullable(),
  coordinate_schema: coordinateSchema,
  coordinates,
  media_mode: namedEnum("MediaMode", MEDIA_MODES),
  media_window_ms: durationMs.nullable(),
  video_streams: count.nullable(),
  video_stream: count.optional().describe("The video stream that the caller chose"),
  audio_streams: count.nullable(),
  audio_channels: count.nullable(),
});

export const ingestReceived = z.union([ingestReceivedByIngest, ingestReceivedByReason]);

/** The signals of one sampled frame. See docs/frames.md#signals. */
export const frameSignals = named(
  "FrameSignals",
  open({
    frame_index: count.describe("Counts sampled frames from 0"),
    pts_ms: count.describe("Media time, milliseconds from the first frame"),
    perceptual_hash: u64,
    luma_mean: unit,
    flicker_score: unit,
    ghosting_score: unit,
    noise_variance_score: unit,
    cut_score: unit.optional(),
    cut_pts_ms: count.optional().describe("Media time of the cut, where `cut_score` is 0.5 or more"),
    artifact_score: unit.optional(),
    artifact_kind: namedEnum("ArtifactKind", ARTIFACT_KINDS).optional().describe(
      "What is wrong with the frame, if anything is",
    ),
  }),
);

/** A range that a detector found. See docs/frames.md#ranges. */
export const rowRange = named(
  "DetectedRange",
  open({
    type: namedEnum("Detector", DETECTORS),
    start_frame: count.describe("Row of the first frame inside"),
    end_frame: count.describe("Row of the last frame inside"),
    start_pts_ms: count.describe("Media time of the first frame, milliseconds"),
    end_pts_ms: count.describe("Media time of the last frame, milliseconds"),
    confidence: unit,
  }),
);

export const framesDecoded = open({
  request_id: text,
  source_uri: text,
  stream_id: text,
  sampling_policy: samplingPolicy,
  source_fps: fps.nullable().describe("Null when the source does not say"),
  sample_fps: fps,
  decoded_frames: positive,
  truncated: z.boolean().optional().describe("Whether `max_frames` ended the decode, and not the source"),
  ...sourceEndFields,
  width: positive,
  height: positive,
  pixel_format: text,
  field_order: namedEnum("FieldOrder", FIELD_ORDERS).optional().describe(
    "Of a source that declares fields: which one is stored first, and which one shown; each frame was made one picture of both",
  ),
  video_stream: count.optional().describe("The index of the video stream that was taken, among all streams"),
  video_streams: count.optional().describe("How many video streams the source has, without cover images"),
  decode_backend: namedEnum("DecodeBackend", DECODE_BACKENDS).optional().describe(
    "What decoded: docs/deployment.md#hardware-decoding",
  ),
  coordinate_schema: coordinateSchema,
  coordinates,
  ranges: z.array(rowRange).optional(),
  ranges_truncated: z.boolean().optional().describe(
    "Whether there were more ranges; the later ones are left out",
  ),
  cuts_ms: z.array(count).optional().describe(
    "Media times of all cuts, milliseconds; present where two of them lie between two rows",
  ),
  signals: z.array(frameSignals),
});

export const inferenceCompleted = open({
  request_id: text,
  provider: text,
  model: text,
  fallback_used: z.boolean(),
  prompt_bytes: count,
  output_bytes: count,
});

/** Where the media of a live session come from: a publisher sends them, or the service pulls them. */
export const LIVE_SOURCES = ["whip", "live"] as const;
export type LiveSource = typeof LIVE_SOURCES[number];

/** The end of a live session. See docs/live.md#session-end. */
export const sessionEnded = named(
  "SessionEnded",
  open({ source: namedEnum("LiveSourceKind", LIVE_SOURCES), session_id: text, reason: text }),
);

/** The end of a run that another one follows. See docs/cameras.md#always-on-cameras. */
const rolledOver = open({
  source: z.literal("live"),
  session_id: text,
  reason: z.literal("rolled_over"),
  successor_run_id: text.describe("The run in which the session goes on"),
});

/** An existing run began to watch a live source. */
export const liveSourceOpened = open({
  request_id: text,
  session_id: text,
  source: z.literal("live"),
  source_uri: text.describe("As the caller gave it"),
  pipeline_generation: positive,
  trigger_program: triggerProgramId.nullable(),
  armed: z.boolean().optional().describe("Of an always-on camera: whether it is armed as the run begins"),
});

/** The end of a reason request. */
const analysisCompleted = open({
  request_id: text,
  stream_id: text,
  frames: count,
  markers: count,
  index_name: z.string().nullable(),
});

export const runCompleted = z.union([analysisCompleted, rolledOver, sessionEnded]);

/** Payload of an event that names only its request. */
export const requested = named("RequestOnly", open({ request_id: text }));

/** A deleted run. The second form removes the run of a live session that failed after the run was created. */
export const runDeleted = z.union([requested, sessionEnded]);

/**
 * Feedback of an operator. `session_id` is always empty in this version; `feedback` is empty when the caller
 * gave none.
 */
export const operatorFeedbackSubmitted = open({
  session_id: z.string(),
  rating: z.int().min(LIMITS.feedback.rating.minimum).max(LIMITS.feedback.rating.maximum),
  category: text,
  feedback: z.string(),
});

/** The filter of a webhook. See docs/events/webhooks.md#filters. */
export const webhookFilter = named(
  "WebhookFilter",
  open({
    labels: z.array(text).optional(),
    zones: z.array(text).optional(),
    sources: z.array(text).optional(),
    min_confidence: unit.optional(),
    armed: z.enum(["disarmed", "any"]).optional().describe(
      "Of events that say whether their camera was armed; absent for those that say so",
    ),
  }),
);

/** The cooldown of a webhook. See docs/events/webhooks.md#cooldown. */
export const webhookCooldown = named(
  "WebhookCooldown",
  open({
    interval_ms: positive,
    per: z.array(namedEnum("CooldownKey", COOLDOWN_KEYS)),
  }),
);

export const webhookSource = named("WebhookSource", open({ name: text, webhook: text })).describe(
  "Which webhook of the file of sources it is",
);

export const webhookRegistered = open({
  webhook_id: text,
  url: text,
  event_kinds: z.array(text).describe("Empty for every kind that is not bookkeeping"),
  filter: webhookFilter.optional(),
  cooldown: webhookCooldown.optional(),
  source: webhookSource.optional(),
});

export const webhookDeleted = open({ webhook_id: text });
