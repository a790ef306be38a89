/** The published shape of one `metadata[]` row of analyze and reason. See docs/frames.md#rows. */

import * as z from "zod";
import { coordinates, coordinateSchema, count, fps, mode, text, unit } from "../events/payload_shapes.ts";

/** A row. Closed at every level: it must not have other fields. */
export const frameMetadata = z.strictObject({
  run_id: z.string(),
  stream_id: text,
  frame_index: count.describe("Counts sampled frames from 0"),
  pts_ms: count.describe("Media time, milliseconds"),
  coordinate_schema: coordinateSchema.optional(),
  coordinates: coordinates.optional().describe("Absent for frames whose signals the caller supplied"),
  mode,
  model: text,
  sampling_policy: z.string(),
  sample_fps: fps,
  window: z.strictObject({
    start_ms: count,
    end_ms: count,
    segment_id: text,
    source: z.string(),
  }),
  annotations: z.strictObject({
    summary: z.string().max(5000),
    objects: z.array(z.strictObject({
      label: z.string(),
      score: unit,
      bbox: z.array(z.number()).length(4).optional(),
    })),
    events: z.array(z.strictObject({
      type: z.string(),
      score: unit,
      description: z.string().optional(),
    })),
  }),
  confidence: unit,
  fallback: z.strictObject({
    used: z.boolean(),
    reason: z.string().optional(),
    from_model: z.string().optional(),
    to_model: z.string().optional(),
  }).optional(),
  trace: z.strictObject({
    request_id: z.string(),
    trace_id: z.string(),
    span_id: z.string().optional(),
  }),
  ordering_key: z.string(),
  finish_reason: z.string().nullable(),
});

export type FrameMetadata = z.input<typeof frameMetadata>;
