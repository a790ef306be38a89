/** Request body of reason: its shape. The rules about values are in model/reason/request.ts. */

import { z } from "zod";
import { DETECTOR_NAMES } from "./analysis.ts";
import { AUDIO_PROFILES, SPEECH_ENGINES } from "../sidecars/local_audio.ts";
import { MEDIA_MODES, MEDIA_RESOLUTIONS } from "../reason/media_mode.ts";

/** The parser makes a bigint of an integer beyond 2^53. */
const UNSIGNED = z.union([z.int().nonnegative(), z.bigint().nonnegative()], {
  error: "must be an integer from 0",
});

/** Any integer, as the value is clamped. */
const INTEGER = z.union([z.int(), z.bigint()], { error: "must be an integer" });

const CROP = z.strictObject({ x: z.number(), y: z.number(), width: z.number(), height: z.number() });

const MEDIA = z.strictObject({
  mode: z.enum(MEDIA_MODES),
  window_ms: z.int().nonnegative().nullish(),
  resolution: z.enum(MEDIA_RESOLUTIONS).nullish(),
  persist_evidence: z.boolean().nullish(),
});

const LOCAL_AUDIO = z.strictObject({
  profile: z.enum(AUDIO_PROFILES).nullish(),
  speech_engine: z.enum(SPEECH_ENGINES).nullish(),
  min_confidence: z.number().nullish(),
  max_events: z.int().nonnegative().nullish(),
  voice_feedback: z.boolean().nullish(),
});

export const REASON_BODY = z.strictObject({
  source_uri: z.string(),
  model: z.string(),
  mode: z.string().nullish(),
  stream_id: z.string().nullish(),
  sampling_policy: z.string().nullish(),
  fixed_fps: z.number().nullish(),
  max_frames: z.int().nonnegative().nullish(),
  chunk_size: z.int().nonnegative().nullish(),
  window_size: z.int().nonnegative().nullish(),
  segment_ms: z.int().nonnegative().nullish(),
  marker_correction_window_frames: UNSIGNED.nullish(),
  semantic_inference: z.boolean().nullish(),
  semantic_frames_per_chunk: z.int().nonnegative().nullish(),
  semantic_frame_max_edge: z.int().nonnegative().nullish(),
  crop: CROP.nullish(),
  semantic_timeout_ms: z.int().nonnegative().nullish(),
  semantic_prompt: z.string().nullish(),
  // Any JSON: `compileOutputSchema` checks it, with a bound on its depth that zod does not have.
  output_schema: z.unknown().optional(),
  first_pass_model: z.string().nullish(),
  second_pass_model: z.string().nullish(),
  second_pass_threshold: z.number().nullish(),
  trace_id: z.string().nullish(),
  index_name: z.string().nullish(),
  temporal_chain: z.boolean().nullish(),
  visual_diff: z.boolean().nullish(),
  video_clip_mode: z.boolean().nullish(),
  video_clip_duration_s: z.number().nullish(),
  media: MEDIA.nullish(),
  local_audio: LOCAL_AUDIO.nullish(),
  detectors: DETECTOR_NAMES.nullish(),
  include_frame_metadata: z.boolean().nullish(),
  vlm_concurrency: INTEGER.nullish(),
});

export type ReasonBody = z.infer<typeof REASON_BODY>;
