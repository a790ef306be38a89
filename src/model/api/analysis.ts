/** What ingest and analyze take and answer: shapes; the flows check the rules. See docs/api/ingest.md. */

import * as z from "zod";
import { LIMITS } from "../../contract/limits.ts";
import { boundedList } from "../schemas/bounded_list.ts";
import { markerEmitted } from "../events/analysis_payloads.ts";
import {
  count,
  fps,
  markerFields,
  positive,
  samplingPolicy,
  sourceEndFields,
  text,
} from "../events/payload_shapes.ts";
import { ARTIFACT_KINDS, DETECTORS } from "../frames/detected_range.ts";
import { frameMetadata } from "../published/frame_metadata.ts";
import { namedEnum } from "../schemas/named_shapes.ts";
import { answer, requestIdField, runIdField } from "./answer_fields.ts";
import {
  body,
  callName,
  countWithin,
  modelId,
  runMode,
  samplingPolicyName,
  sourceUri,
  videoStreamIndex,
} from "../schemas/described_fields.ts";

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

/** Names of detectors in a request. The rules say which there are, in one message for the whole list. */
export const DETECTOR_NAMES = boundedList(z.string().meta({ enum: [...DETECTORS] }));

const SCORE = z.number().meta({ minimum: 0, maximum: 1 });

/** A frame that the caller supplies. See docs/api/analyze.md#analyze. */
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

export const INGESTED = answer("IngestResponse", () => ({
  request_id: requestIdField,
  run_id: runIdField,
  status: z.literal("processing"),
  decoded_frames: positive.describe("Frames that were kept and have signals"),
  truncated: z.boolean().describe("Whether `max_frames` ended the decode, and not the source"),
  ...sourceEndFields,
  source_uri: text,
  sampling_policy: samplingPolicy,
  source_fps: fps.nullable().describe("Null when the source does not say"),
  sample_fps: fps,
}));

/** A marker as an analysis answers with it; the events of markers may have more fields. */
export const MARKER = answer("Marker", () => markerFields);

export const ANALYZED = answer("AnalyzeResponse", () => ({
  request_id: requestIdField,
  run_id: runIdField,
  generated: count.describe("How many rows `metadata` has"),
  ...sourceEndFields,
  metadata: z.array(frameMetadata),
  markers: z.array(MARKER()),
}));

/** A marker as it was stored: of reason with its index, of a live session with its session. */
export const STORED_MARKER = answer("StoredMarker", () => markerEmitted);
