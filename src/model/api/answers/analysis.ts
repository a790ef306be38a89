/** Answers of ingest, analyze and reason: their shapes. See docs/api.md#ingest and docs/reason.md#request. */

import * as z from "zod";
import {
  count,
  durationMs,
  fps,
  markerFields,
  open,
  positive,
  samplingPolicy,
  sourceEndFields,
  text,
  tokenFields,
} from "../../events/payload_shapes.ts";
import { failedChunksFields, markerEmitted } from "../../events/analysis_payloads.ts";
import { frameMetadata } from "../../schemas/frame_metadata.ts";
import { answer, requestIdField, runIdField } from "./answer_fields.ts";

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

/** A marker as it was stored: of reason with its index, of a live session with its session. */
export const STORED_MARKER = answer("StoredMarker", () => markerEmitted);
