/** Request bodies of ingest and analyze: their shapes. The rules about values are checked by the flows. */

import * as z from "zod";
import { boundedList } from "../bounded_list.ts";
import { ARTIFACT_KINDS, DETECTORS } from "../frames/detected_range.ts";
import {
  body,
  callName,
  countWithin,
  modelId,
  runMode,
  samplingPolicyName,
  sourceUri,
  videoStreamIndex,
} from "./described_fields.ts";
import { LIMITS } from "../limits.ts";
import { namedEnum } from "../schemas/named_shapes.ts";

const MAX_U64 = 18446744073709551615n;

export const INGEST_BODY = body("IngestRequest", {
  source_uri: sourceUri,
  sampling_policy: samplingPolicyName,
  fixed_fps: z.number().meta({ ...LIMITS.sampling.fps }).nullish().describe(
    "Frames a second; required under `fixed` unless `sample_fps` is given",
  ),
  sample_fps: z.number().meta({ ...LIMITS.sampling.fps }).nullish().describe("Goes before `fixed_fps`"),
  max_frames: countWithin(LIMITS.ingest.maxFrames, LIMITS.ingest.maxFramesDefault, "Frames that are kept"),
  stream_id: callName,
  video_stream: videoStreamIndex,
});

export type IngestBody = z.infer<typeof INGEST_BODY>;

/** An unsigned 64-bit integer; the parser makes a bigint of one beyond 2^53. */
const UNSIGNED_64 = z.union([
  z.int().nonnegative(),
  z.bigint().nonnegative().refine((value) => value <= MAX_U64, "must be at most 18446744073709551615"),
], { error: "must be an integer from 0 to 18446744073709551615" });

/** The rules say which names there are, in one message for the whole list. */
export const DETECTOR_NAMES = boundedList(z.string().meta({ enum: [...DETECTORS] }));

const SCORE = z.number().meta({ minimum: 0, maximum: 1 });

/** See docs/api.md#analyze. */
const CALLER_FRAME = z.strictObject({
  frame_index: z.int().nonnegative(),
  pts_ms: z.int().nonnegative(),
  perceptual_hash: UNSIGNED_64,
  luma_mean: SCORE,
  flicker_score: SCORE,
  ghosting_score: SCORE,
  noise_variance_score: SCORE,
  cut_score: SCORE.optional(),
  cut_pts_ms: z.int().nonnegative().optional(),
  artifact_score: SCORE.optional(),
  artifact_kind: namedEnum("ArtifactKind", ARTIFACT_KINDS).optional(),
});

export const ANALYZE_BODY = body("AnalyzeRequest", {
  model: modelId,
  mode: runMode,
  stream_id: callName,
  sampling_policy: samplingPolicyName,
  fixed_fps: z.number().meta({ ...LIMITS.sampling.fps }).nullish(),
  trace_id: callName,
  frames: boundedList(CALLER_FRAME, LIMITS.analyze.framesMax).nullish(),
  window_size: countWithin(
    LIMITS.analyze.windowSize,
    LIMITS.analyze.windowSizeDefault,
    "Frames that novelty looks back",
  ),
  segment_ms: countWithin(LIMITS.analyze.segmentMs, LIMITS.analyze.segmentMsDefault),
  detectors: DETECTOR_NAMES.nullish(),
  include_frame_metadata: z.boolean().nullish().describe(
    "Whether the answer has the rows; true unless given",
  ),
  complete: z.boolean().nullish().describe(
    "Whether the run is complete after this analysis; false unless given",
  ),
});

export type AnalyzeBody = z.infer<typeof ANALYZE_BODY>;
export type CallerFrame = z.infer<typeof CALLER_FRAME>;
