/** What reason takes and answers: shapes; the rules are in model/reason/request.ts. */

import * as z from "zod";
import { LIMITS } from "../../contract/limits.ts";
import { failedChunksFields } from "../events/analysis_payloads.ts";
import { count, durationMs, fps, open, sourceEndFields, tokenFields } from "../events/payload_shapes.ts";
import { MEDIA_MODES, MEDIA_RESOLUTIONS } from "../events/media_mode.ts";
import { frameMetadata } from "../published/frame_metadata.ts";
import { named, namedEnum } from "../schemas/named_shapes.ts";
import { AUDIO_PROFILES, SPEECH_ENGINES } from "../sidecars/local_audio.ts";
import { DETECTOR_NAMES, MARKER } from "./analysis.ts";
import { answer, requestIdField, runIdField } from "./answer_fields.ts";
import {
  body,
  callName,
  countWithin,
  modelId,
  numberWithin,
  runMode,
  samplingPolicyName,
  sourceUri,
  textWithin,
  videoStreamIndex,
} from "../schemas/described_fields.ts";

/** An integer from 0. The parser makes a bigint of one beyond 2^53. */
const UNSIGNED = z.union([z.int().nonnegative(), z.bigint().nonnegative()], {
  error: "must be an integer from 0",
});

/** Any integer, as the value is clamped to its range. */
const INTEGER = z.union([z.int(), z.bigint()], { error: "must be an integer" });

const CROP = z.strictObject({ x: z.number(), y: z.number(), width: z.number(), height: z.number() });

const MEDIA = named(
  "MediaRequest",
  z.strictObject({
    mode: namedEnum("MediaMode", MEDIA_MODES),
    window_ms: z.int().nonnegative().meta({ ...LIMITS.mediaWindow.lengthMs }).nullish(),
    resolution: namedEnum("MediaResolution", MEDIA_RESOLUTIONS).nullish(),
    persist_evidence: z.boolean().nullish(),
  }),
);

const LOCAL_AUDIO = named(
  "SoundRequest",
  z.strictObject({
    profile: namedEnum("AudioProfile", AUDIO_PROFILES).nullish(),
    speech_engine: namedEnum("SpeechEngine", SPEECH_ENGINES).nullish(),
    min_confidence: numberWithin(LIMITS.localAudio.confidence, LIMITS.localAudio.confidenceDefault),
    max_events: countWithin(LIMITS.localAudio.events, LIMITS.localAudio.eventsDefault),
    voice_feedback: z.boolean().nullish(),
  }),
);

export const REASON_BODY = body("ReasonRequest", {
  source_uri: sourceUri,
  model: modelId,
  mode: runMode,
  stream_id: callName,
  video_stream: videoStreamIndex,
  sampling_policy: samplingPolicyName,
  fixed_fps: numberWithin(
    LIMITS.sampling.fps,
    LIMITS.sampling.fixedFpsReason,
    "Frames a second under `fixed`",
  ),
  max_frames: countWithin(LIMITS.reason.maxFrames, LIMITS.reason.maxFramesDefault, "Frames that are kept"),
  chunk_size: countWithin(LIMITS.reason.chunkSize, LIMITS.reason.chunkSizeDefault, "Frames of a chunk"),
  window_size: countWithin(
    LIMITS.reason.windowSize,
    LIMITS.reason.windowSizeDefault,
    "Frames that novelty looks back",
  ),
  segment_ms: z.int().nonnegative().meta({ minimum: LIMITS.reason.segmentMsMin }).nullish(),
  marker_correction_window_frames: UNSIGNED.nullish(),
  semantic_inference: z.boolean().nullish(),
  semantic_frames_per_chunk: countWithin(
    LIMITS.reason.framesPerChunk,
    LIMITS.reason.framesPerChunkDefault,
    "Pictures that the model gets of a chunk",
  ),
  semantic_frame_max_edge: countWithin(
    LIMITS.reason.frameEdgePixels,
    "as they are",
    "Longest edge of pictures, pixels",
  ),
  crop: CROP.nullish(),
  semantic_timeout_ms: countWithin(
    LIMITS.reason.semanticTimeoutMs,
    `${LIMITS.reason.semanticTimeoutMsDefault} unless given`,
  ),
  semantic_prompt: textWithin(
    { minimum: 1, maximum: LIMITS.reason.promptBytesMax },
    `1 to ${LIMITS.reason.promptBytesMax} bytes when trimmed; a built-in one unless given`,
  ).nullish(),
  // Any JSON: `compileOutputSchema` checks it, with a bound on its depth that zod does not have.
  output_schema: z.unknown().optional(),
  first_pass_model: callName,
  second_pass_model: callName,
  second_pass_threshold: z.number().nullish().describe(
    "Limited to 0 to 1; a chunk below it is asked a second time",
  ),
  trace_id: callName,
  index_name: callName,
  temporal_chain: z.boolean().nullish(),
  visual_diff: z.boolean().nullish(),
  video_clip_mode: z.boolean().nullish(),
  video_clip_duration_s: z.number().meta({ exclusiveMinimum: 0, maximum: LIMITS.reason.clipSeconds })
    .nullish(),
  media: MEDIA.nullish(),
  local_audio: LOCAL_AUDIO.nullish(),
  detectors: DETECTOR_NAMES.nullish(),
  include_frame_metadata: z.boolean().nullish(),
  vlm_concurrency: INTEGER.nullish(),
});

export type ReasonBody = z.infer<typeof REASON_BODY>;

export const REASONED = answer("ReasonResponse", () => ({
  request_id: requestIdField,
  run_id: runIdField,
  generated: count.describe("How many rows were computed, whether or not `metadata` has them"),
  markers_emitted: count,
  decoded_frames: count,
  truncated: z.boolean().describe("Whether `max_frames` ended the decode, and not the source"),
  ...sourceEndFields,
  sample_fps: fps,
  lag_p95_ms: durationMs,
  lag_p99_ms: durationMs,
  tokens: open({ ...tokenFields, inference_latency_ms: durationMs, chunks_analyzed: count }),
  ...failedChunksFields,
  frame_metadata_included: z.boolean(),
  metadata: z.array(frameMetadata),
  markers: z.array(MARKER()),
}));
