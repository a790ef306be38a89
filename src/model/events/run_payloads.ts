/** Payloads of the events that a run's own life writes: created, ingested, ended, deleted, and what hangs on it. */

import { z } from "zod";
import { LIMITS } from "../limits.ts";
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
  text,
  u64,
  unit,
} from "./payload_shapes.ts";

/** Contract 1.3. */
const runCreatedByRequest = open({
  request_id: text,
  mode,
  model: text.nullable(),
  principal_key: text,
  tenant_id: z.string().nullable(),
});

/** Contract 1.3. */
const runCreatedByWhip = open({
  principal_key: text,
  session_id: text,
  source: z.literal("whip"),
  trigger_program: open({ program_id: text, version: positive, isa_version: positive }).nullable(),
});

export const runCreated = z.union([runCreatedByRequest, runCreatedByWhip]);

/** Contract 2.5: `ingest` is the request body as given, what it left out as null. */
const ingestReceivedByIngest = open({
  request_id: text,
  ingest: open({
    source_uri: text,
    sampling_policy: z.string().nullable(),
    fixed_fps: z.number().nullable(),
    sample_fps: z.number().nullable(),
    max_frames: positive.nullable(),
    stream_id: z.string().nullable(),
  }),
  decoded_frames: positive,
  source_uri: text,
  sampling_policy: samplingPolicy,
  sample_fps: fps,
});

/** Contract 6.7. The last four are null when the media is read as frames. */
const ingestReceivedByReason = open({
  request_id: text,
  source_uri: text,
  index_name: z.string().nullable(),
  coordinate_schema: coordinateSchema,
  coordinates,
  media_mode: z.enum(["frames", "video", "audio_video"]),
  media_window_ms: durationMs.nullable(),
  video_streams: count.nullable(),
  audio_streams: count.nullable(),
  audio_channels: count.nullable(),
});

export const ingestReceived = z.union([ingestReceivedByIngest, ingestReceivedByReason]);

/** Contract 2.5, D7: the seven keys, and how surely the frame is the first of a new shot. */
export const frameSignals = open({
  frame_index: count.describe("Counts sampled frames from 0"),
  pts_ms: count.describe("Media time, milliseconds from the first frame"),
  perceptual_hash: u64,
  luma_mean: unit,
  flicker_score: unit,
  ghosting_score: unit,
  noise_variance_score: unit,
  cut_score: unit.optional(),
});

export const framesDecoded = open({
  request_id: text,
  source_uri: text,
  stream_id: text,
  sampling_policy: samplingPolicy,
  source_fps: fps.nullable().describe("Null when the source does not say"),
  sample_fps: fps,
  decoded_frames: positive,
  width: positive,
  height: positive,
  pixel_format: text,
  coordinate_schema: coordinateSchema,
  coordinates,
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

/** Where a live session gets its media: a publisher brings it, or the service pulls it. */
export const LIVE_SOURCES = ["whip", "live"] as const;
export type LiveSource = typeof LIVE_SOURCES[number];

/** Contract 11.6. */
export const sessionEnded = open({ source: z.enum(LIVE_SOURCES), session_id: text, reason: text });

/** A run that was there before began to watch a live source. */
export const liveSourceOpened = open({
  request_id: text,
  session_id: text,
  source: z.literal("live"),
  source_uri: text.describe("As the caller gave it"),
  pipeline_generation: positive,
  trigger_program: open({ program_id: text, version: positive, isa_version: positive }).nullable(),
});

/** Contract 6.7: what reason leaves behind. */
const analysisCompleted = open({
  request_id: text,
  stream_id: text,
  frames: count,
  markers: count,
  index_name: z.string().nullable(),
});

export const runCompleted = z.union([analysisCompleted, sessionEnded]);

/** Payload of an event that says only which request asked for it. */
export const requested = open({ request_id: text });

/** The second form compensates a live session that failed after its run was created (interface 6.2). */
export const runDeleted = z.union([requested, sessionEnded]);

/** Interface 2.6. `session_id` is empty today, `feedback` when the caller left it out (contract 8.1). */
export const operatorFeedbackSubmitted = open({
  session_id: z.string(),
  rating: z.int().min(LIMITS.feedback.rating.minimum).max(LIMITS.feedback.rating.maximum),
  category: text,
  feedback: z.string(),
});

export const webhookRegistered = open({
  webhook_id: text,
  url: text,
  event_kinds: z.array(text).describe("Empty for every kind that is not bookkeeping"),
});

export const webhookDeleted = open({ webhook_id: text });
