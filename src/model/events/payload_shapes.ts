/** The zod pieces that several event payloads share: numbers, identities, coordinates, markers, blob references. */

import { z } from "zod";
import { COORDINATE_SCHEMA } from "../frames/coordinates.ts";
import { MODES } from "../runs/mode.ts";

/**
 * An object that tolerates fields it does not know when read, because payloads are add-only (interface 9), and
 * whose type still lists its fields exactly, so that a misspelt field does not compile when written.
 */
export function open<Shape extends z.ZodRawShape>(shape: Shape): z.ZodObject<Shape, z.core.$strip> {
  return z.looseObject(shape) as unknown as z.ZodObject<Shape, z.core.$strip>;
}

/** One past the largest unsigned 64-bit integer, which is also what JSON.parse makes of the largest. */
export const U64_END = 2 ** 64;

/**
 * An unsigned 64-bit integer (contract 3.1). A bigint when written; what was read with JSON.parse is a number that
 * lost its low digits, so 2^64 stands for 2^64-1. `maximum` of the JSON Schema is written exactly by `schemaText`.
 */
export const u64 = z.custom<bigint>(
  (value) =>
    typeof value === "bigint"
      ? value >= 0n && value < 1n << 64n
      : Number.isInteger(value) && value as number >= 0 && value as number <= U64_END,
  "must be an integer between 0 and 18446744073709551615",
).meta({ type: "integer", minimum: 0, maximum: U64_END });

/** How many, which one, or a media time in milliseconds: an integer from 0. */
export const count = z.int().nonnegative();
/** An integer from 1: a seq, a revision, an extent in pixels. */
export const positive = z.int().min(1);
/** A score or a fraction in [0,1]. */
export const unit = z.number().min(0).max(1);
/** Wall time spent on something, milliseconds, fractions allowed. */
export const durationMs = z.number().nonnegative();
/** Frames a second. */
export const fps = z.number().positive();
/** A text that says something. */
export const text = z.string().min(1);
/** 64 lower-case hex digits: the content hash of a blob. */
export const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
/** A JSON object whose keys are not ours to know: a caller's JSON Schema, for example. */
export const jsonObject = z.record(z.string(), z.unknown());
/** Any JSON value, present. */
export const jsonValue = z.union([
  jsonObject,
  z.array(z.unknown()),
  z.string(),
  z.number(),
  z.boolean(),
  z.null(),
]);

export const mode = z.enum(MODES);
/** The canonical names, whichever alias the caller used. Contract 2.4. */
export const samplingPolicy = z.enum(["source_fps_adaptive", "fixed"]);
/** Who answered a semantic question. Contract 6.7. */
export const provider = z.enum(["vllm", "sglang", "gemini", "mlx", "local_audio"]);

/** A rectangle as fractions of the image, origin top left. Interface 2.4. */
export const normalizedRegion = z.strictObject({
  x: unit,
  y: unit,
  width: z.number().gt(0).max(1),
  height: z.number().gt(0).max(1),
});

const extent = z.strictObject({ width: positive, height: positive });

/** Which version of the coordinates' meaning this is. Interface 9. */
export const coordinateSchema = z.literal(COORDINATE_SCHEMA);

/** Interface 2.4 `service.image.v1`. Closed: a new field here would be a new version, not an addition. */
export const coordinates = z.strictObject({
  source_extent: extent.describe("Decoded extent before crop or resize, pixels"),
  requested_region: normalizedRegion.describe("The caller's crop as given, fractions of the source"),
  resolved_region: z.strictObject({ x: count, y: count, width: positive, height: positive })
    .describe("The even-aligned rectangle that was cropped, source pixels"),
  analysis_extent: extent.describe("Extent after the crop that the deterministic filter inspected, pixels"),
});

/** Exactly the eleven fields of interface 2.3. */
export const markerFields = {
  marker_id: text,
  run_id: text,
  stream_id: text,
  event_type: text,
  status: z.enum(["exact", "provisional", "finalized"]),
  start_frame: count,
  end_frame: count,
  start_pts_ms: count.describe("Media time of the first frame, milliseconds"),
  end_pts_ms: count.describe("Media time of the last frame, milliseconds"),
  confidence: unit,
  supersedes_marker_id: text.nullable(),
};

/** The token counts that semantic events carry side by side with their other fields. Contract 6.7. */
export const tokenFields = {
  prompt_tokens: count,
  completion_tokens: count,
  thinking_tokens: count,
  total_tokens: count,
};

/** A stored JPEG, spread into `evidence` or into the payload itself. Contract 11.5. */
export const imageFields = {
  image_ref: text.describe("Path of the blob under the data directory"),
  image_media_type: z.literal("image/jpeg"),
  image_bytes: positive,
  image_sha256: sha256,
};

const mediaFields = {
  media_ref: text.describe("Path of the blob under the data directory"),
  media_type: z.enum(["video/mp4", "audio/wav"]),
  media_bytes: positive,
  media_sha256: sha256,
  created: z.boolean().describe("False when the same content was stored before"),
};

/** A stored clip. Contract 6.7. */
export const mediaEvidence = open(mediaFields);

/** A stored spoken answer. Contract 6.7. */
export const feedbackAudio = open({
  ...mediaFields,
  model: text,
  sample_rate_hz: positive,
  processing_ms: durationMs,
});
