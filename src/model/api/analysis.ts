/** Request bodies of ingest and analyze: their shapes. The rules about values are checked by the flows. */

import { z } from "zod";
import { boundedList } from "../bounded_list.ts";
import { ARTIFACT_KINDS } from "../frames/detected_range.ts";
import { LIMITS } from "../limits.ts";

const MAX_U64 = 18446744073709551615n;

export const INGEST_BODY = z.strictObject({
  source_uri: z.string(),
  sampling_policy: z.string().nullish(),
  fixed_fps: z.number().nullish(),
  sample_fps: z.number().nullish(),
  max_frames: z.int().nonnegative().nullish(),
  stream_id: z.string().nullish(),
});

export type IngestBody = z.infer<typeof INGEST_BODY>;

/** An unsigned 64-bit integer; the parser makes a bigint of one beyond 2^53. */
const UNSIGNED_64 = z.union([
  z.int().nonnegative(),
  z.bigint().nonnegative().refine((value) => value <= MAX_U64, "must be at most 18446744073709551615"),
], { error: "must be an integer from 0 to 18446744073709551615" });

/** The rules say which names there are, in one message for the whole list. */
export const DETECTOR_NAMES = boundedList(z.string());

/** See docs/api.md#analyze. */
const CALLER_FRAME = z.strictObject({
  frame_index: z.int().nonnegative(),
  pts_ms: z.int().nonnegative(),
  perceptual_hash: UNSIGNED_64,
  luma_mean: z.number(),
  flicker_score: z.number(),
  ghosting_score: z.number(),
  noise_variance_score: z.number(),
  cut_score: z.number().optional(),
  cut_pts_ms: z.int().nonnegative().optional(),
  artifact_score: z.number().optional(),
  artifact_kind: z.enum(ARTIFACT_KINDS).optional(),
});

export const ANALYZE_BODY = z.strictObject({
  model: z.string(),
  mode: z.string().nullish(),
  stream_id: z.string().nullish(),
  sampling_policy: z.string().nullish(),
  fixed_fps: z.number().nullish(),
  trace_id: z.string().nullish(),
  frames: boundedList(CALLER_FRAME, LIMITS.analyze.framesMax).nullish(),
  window_size: z.int().nonnegative().nullish(),
  segment_ms: z.int().nonnegative().nullish(),
  detectors: DETECTOR_NAMES.nullish(),
});

export type AnalyzeBody = z.infer<typeof ANALYZE_BODY>;
export type CallerFrame = z.infer<typeof CALLER_FRAME>;
