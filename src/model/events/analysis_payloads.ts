/** Payloads of the events that analyze, reason and live audio write: markers, chunks, moments, totals. */

import * as z from "zod";
import {
  coordinates,
  coordinateSchema,
  count,
  durationMs,
  feedbackAudio,
  fps,
  jsonValue,
  markerFields,
  mediaEvidence,
  mode,
  open,
  positive,
  provider,
  samplingPolicy,
  sourceEndFields,
  text,
  tokenFields,
  unit,
} from "./payload_shapes.ts";
import { named, namedEnum } from "../schemas/named_shapes.ts";
import { AUDIO_PROFILES, SPEECH_ENGINES } from "../sidecars/local_audio.ts";
import { MEDIA_RESOLUTIONS } from "./media_mode.ts";

/**
 * A marker of an analysis: with an index name where reason had one, with a session where a live session wrote
 * it.
 */
export const markerEmitted = open({
  ...markerFields,
  index_name: text.optional(),
  session_id: text.optional(),
  enrichment_deadline_ms: positive.optional().describe("Of a live scene cut that is explained later"),
});

const truncated = z.boolean().optional().describe(
  "Whether `max_frames` ended the decode, and not the source",
);

/** The end of an analysis. The coordinates are present when the signals came from decoded video. */
const analysisGeneratedByAnalyze = open({
  request_id: text,
  stream_id: text,
  frames: count,
  window_size: positive,
  segment_ms: positive,
  sampling_policy: samplingPolicy,
  sample_fps: fps,
  mode,
  model: text,
  markers: count.describe("How many markers the pass derived"),
  coordinate_schema: coordinateSchema.optional(),
  coordinates: coordinates.optional(),
  truncated,
  ...sourceEndFields,
});

/** Fields that are present where the model gave no valid answer about a chunk. */
export const failedChunksFields = {
  chunks_failed: positive.optional().describe("Chunks without a valid answer; present where there are any"),
  first_chunk_error: text.optional().describe("The `semantic_error` of the first of these chunks"),
};

const analysisGeneratedByReason = open({
  request_id: text,
  stream_id: text,
  frames: count,
  markers: count.describe("How many markers the pass derived"),
  sampling_policy: samplingPolicy,
  source_fps: fps.nullable(),
  sample_fps: fps,
  coordinate_schema: coordinateSchema,
  coordinates,
  truncated,
  lag_p95_ms: durationMs,
  lag_p99_ms: durationMs,
  mode,
  model: text,
  index_name: z.string().nullable(),
  ...tokenFields,
  inference_latency_ms: durationMs,
  chunks_analyzed: count,
  ...failedChunksFields,
  ...sourceEndFields,
});

export const analysisGenerated = z.union([analysisGeneratedByAnalyze, analysisGeneratedByReason]);

/** The answer of the audio sidecar, unchanged. See docs/protocols.md#audio-analysis. */
export const localAudio = named(
  "LocalAudio",
  open({
    profile: namedEnum("AudioProfile", AUDIO_PROFILES),
    speech_engine: namedEnum("SpeechEngine", SPEECH_ENGINES),
    models: z.array(text),
    observations: z.array(open({
      start_offset_ms: count,
      end_offset_ms: count,
      kind: z.enum(["voice_activity", "audio_event", "speech"]),
      label: text,
      confidence: unit,
      model: text,
      transcript: z.string().nullish(),
      language: z.string().nullish(),
      emotion: z.string().nullish(),
    })),
    audio_duration_ms: durationMs,
    audio_bytes: count,
    queue_wait_ms: durationMs,
    stages: open({
      decode_ms: durationMs,
      vad_ms: durationMs,
      classifier_ms: durationMs,
      asr_ms: durationMs,
    }),
    capacity: open({ active: count, queued: count, limit: count }),
    processing_ms: durationMs,
  }),
);

const modalities = z.array(named("Modality", z.enum(["audio", "video"]))).min(1);
const momentKind = named(
  "MomentKind",
  z.enum([
    "speech",
    "sound_effect",
    "music",
    "ambient",
    "interaction",
    "mechanical",
    "other",
  ]),
);

/** One of `moments[]`; offsets are milliseconds from the start of the clip of the chunk. */
export const chunkMoment = named(
  "ChunkMoment",
  open({
    start_offset_ms: count,
    end_offset_ms: count,
    modalities,
    kind: momentKind,
    description: text,
    intent: z.string().nullish(),
    audio_visual_relation: z.string().nullish(),
    confidence: unit,
  }),
);

/**
 * What a model said of a chunk. For a failed chunk the fields of the overlay are null and `semantic_error`
 * names the reason.
 */
const chunkInferredFields = {
  request_id: text,
  stream_id: text,
  chunk_index: count,
  provider: provider.nullable(),
  provider_fallback_used: z.boolean(),
  semantic_fallback_used: z.boolean(),
  semantic_error: text.nullable(),
  semantic_error_text: text.optional().describe(
    "Of a model that its server does not know: a sentence for people with the models that there are",
  ),
  finish_reason: z.string().nullable(),
  response_chars: count.nullable(),
  event_type: z.string().nullable(),
  object_label: z.string().nullable(),
  summary: z.string().nullable(),
  description: z.string().nullable(),
  confidence: unit.nullable(),
  raw_output: jsonValue,
  ...tokenFields,
  inference_latency_ms: durationMs,
  moments: z.array(chunkMoment),
  local_audio: localAudio.nullable(),
  local_audio_error: z.string().nullable(),
  index_name: text.optional(),
};

const chunkInferredFromFrames = open({
  ...chunkInferredFields,
  media_mode: z.literal("frames").optional(),
  pts_start_ms: count.optional().describe("Media time of the first frame, milliseconds"),
  pts_end_ms: count.optional().describe("Media time of the last frame, milliseconds"),
});

const chunkInferredFromClip = open({
  ...chunkInferredFields,
  media_mode: z.enum(["video", "audio_video"]),
  media_resolution: namedEnum("MediaResolution", MEDIA_RESOLUTIONS).nullable(),
  pts_start_ms: count,
  pts_end_ms: count,
  timestamp_resolution_ms: positive,
  clip_bytes: count,
  extraction_ms: durationMs,
  audio_streams: count.nullable(),
  audio_channels: count.nullable(),
  audio_mixed: z.boolean().nullable(),
  evidence: mediaEvidence.nullish(),
  feedback_audio: feedbackAudio.nullish(),
});

/**
 * What a model said of a chunk of live sound. Times are relative to the first RTP timestamp of the track. See
 * docs/live/events.md#live-audio.
 */
const chunkInferredFromLiveAudio = open({
  request_id: text,
  stream_id: text,
  session_id: text,
  chunk_index: count,
  track_id: count,
  provider: z.literal("local_audio"),
  media_mode: z.literal("live_audio"),
  pts_start_ms: count,
  pts_end_ms: count,
  timestamp_resolution_ms: positive,
  rtp_access_units: positive,
  decode_ms: durationMs,
  round_trip_ms: durationMs,
  local_audio: localAudio,
});

export const semanticChunkInferred = z.union([
  chunkInferredFromFrames,
  chunkInferredFromClip,
  chunkInferredFromLiveAudio,
]);

/** A moment in a chunk. Offsets are milliseconds from the clip's start, pts from the start of the source. */
const momentFields = {
  moment_id: text,
  request_id: text,
  stream_id: text,
  chunk_index: count,
  start_offset_ms: count,
  end_offset_ms: count,
  start_pts_ms: count,
  end_pts_ms: count,
  timestamp_resolution_ms: positive,
  modalities,
  kind: momentKind,
  description: text,
  intent: z.string().nullable(),
  audio_visual_relation: z.string().nullable(),
  confidence: unit,
  provider,
  evidence: mediaEvidence.nullable(),
  feedback_audio: feedbackAudio.nullish(),
};

const recordedMoment = open({ ...momentFields, index_name: z.string().nullable() });

/** A moment of a live audio track has its session and no index name. */
const liveAudioMoment = open({ ...momentFields, session_id: text, track_id: count });

export const multimodalMoment = z.union([recordedMoment, liveAudioMoment]);

/**
 * The costs of a chunk. `lag_ms` is how much longer the processing took than the media of the chunk last,
 * never below 0.
 */
export const semanticChunkGenerated = open({
  request_id: text,
  stream_id: text,
  chunk_index: count,
  chunk_frames: positive,
  process_ms: durationMs,
  source_span_ms: durationMs,
  lag_ms: durationMs,
  index_name: z.string().nullable(),
  ...tokenFields,
  inference_latency_ms: durationMs,
});

export const semanticFallbackActivated = open({ request_id: text, stream_id: text, reason: text });
