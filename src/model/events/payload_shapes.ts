/** The zod shapes that several event payloads share: numbers, texts, coordinates, markers, blob references.
 */

import * as z from "zod";
import { COORDINATE_SCHEMA } from "../frames/coordinates.ts";
import { MARKER_ORIGINS } from "../frames/marker.ts";
import { MODES } from "../mode.ts";
import { named, namedEnum } from "../schemas/named_shapes.ts";

/**
 * An object that accepts unknown fields when it is read, because later versions may add fields to payloads.
 * Its type has the known fields only, so a misspelt field does not compile when an event is written.
 */
export function open<Shape extends z.ZodRawShape>(shape: Shape): z.ZodObject<Shape, z.core.$strip> {
  const loose: z.ZodObject<Shape, z.core.$ZodObjectConfig> = z.looseObject(shape);
  return loose as z.ZodObject<Shape, z.core.$strip>;
}

/** One more than the largest unsigned 64-bit integer; JSON.parse also returns it for the largest one. */
export const U64_END = 2 ** 64;

/**
 * An unsigned 64-bit integer. A bigint when it is written. Read with JSON.parse it is a number without its
 * low digits, so 2^64 is accepted for 2^64-1. `schemaText` writes the `maximum` of the JSON Schema exactly.
 */
export const u64 = z.custom<bigint>(
  (value) =>
    typeof value === "bigint"
      ? value >= 0n && value < 1n << 64n
      : Number.isInteger(value) && value as number >= 0 && value as number <= U64_END,
  "must be an integer between 0 and 18446744073709551615",
).meta({ type: "integer", minimum: 0, maximum: U64_END });

/** A number of things, an index, or a media time in milliseconds: an integer from 0. */
export const count = z.int().nonnegative();
/** An integer from 1: a sequence number, a revision, a size in pixels. */
export const positive = z.int().min(1);
/** A score or a fraction in [0,1]. */
export const unit = z.number().min(0).max(1);
/** A duration in wall time, milliseconds with fractions. */
export const durationMs = z.number().nonnegative();
/** Frames a second. */
export const fps = z.number().positive();
/** A text that is not empty. */
export const text = z.string().min(1);
/** 64 lower-case hex digits: the content hash of a blob. */
export const sha256 = z.string().regex(/^[0-9a-f]{64}$/);
/** A JSON object with any keys, such as a caller's JSON Schema. */
export const jsonObject = named("JsonObject", z.record(z.string(), z.unknown()));
/** Any JSON value, but not undefined. */
export const jsonValue = z.union([
  jsonObject,
  z.array(z.unknown()),
  z.string(),
  z.number(),
  z.boolean(),
  z.null(),
]);

export const mode = namedEnum("RunMode", MODES);
/** The sampling policies by their canonical names, whichever alias the caller used. */
export const samplingPolicy = named("SamplingPolicy", z.enum(["source_fps_adaptive", "fixed"]));
/** The kind of backend that answered a semantic question. */
export const provider = named("ChunkProvider", z.enum(["vllm", "sglang", "gemini", "mlx", "local_audio"]));

/** A rectangle as fractions of the picture, origin at the top left. */
export const normalizedRegion = named(
  "NormalizedRegion",
  z.strictObject({
    x: unit,
    y: unit,
    width: z.number().gt(0).max(1),
    height: z.number().gt(0).max(1),
  }),
);

const extent = named("Extent", z.strictObject({ width: positive, height: positive }));

/** The version of the meaning of `coordinates`. */
export const coordinateSchema = z.literal(COORDINATE_SCHEMA);

/**
 * Coordinates `service.image.v1`. Closed: a new field would make it a new version. See
 * docs/frames.md#coordinates.
 */
export const coordinates = named(
  "ImageCoordinates",
  z.strictObject({
    source_extent: extent.describe("Decoded extent before crop or resize, pixels"),
    requested_region: normalizedRegion.describe("The caller's crop as given, fractions of the source"),
    resolved_region: named(
      "PixelRegion",
      z.strictObject({ x: count, y: count, width: positive, height: positive }),
    )
      .describe("The even-aligned rectangle that was cropped, source pixels"),
    analysis_extent: extent.describe("Extent after the crop that the deterministic filter inspected, pixels"),
  }),
);

/** The fields of a marker. See docs/frames.md#markers. */
export const markerFields = {
  marker_id: text,
  run_id: text,
  stream_id: text,
  event_type: text,
  status: named("MarkerStatus", z.enum(["exact", "provisional", "finalized"])),
  start_frame: count,
  end_frame: count,
  start_pts_ms: count.describe("Media time of the first frame, milliseconds; of a cut its own"),
  end_pts_ms: count.describe("Media time of the last frame, milliseconds; of a cut its own"),
  confidence: unit,
  supersedes_marker_id: text.nullable(),
  origin: namedEnum("MarkerOrigin", MARKER_ORIGINS).optional().describe(
    "Who says so; absent from what was measured",
  ),
};

/** The token counts of semantic events, on the level of their other fields. */
export const tokenFields = {
  prompt_tokens: count,
  completion_tokens: count,
  thinking_tokens: count,
  total_tokens: count,
};

/** A stored JPEG, spread into `evidence` or into the payload itself. */
export const imageFields = {
  image_ref: text.describe("Path of the blob under the data directory"),
  image_media_type: z.literal("image/jpeg"),
  image_bytes: positive,
  image_sha256: sha256,
};

const mediaFields = {
  media_ref: text.describe("Path of the blob under the data directory"),
  media_type: named("StoredMediaType", z.enum(["video/mp4", "audio/wav"])),
  media_bytes: positive,
  media_sha256: sha256,
  created: z.boolean().describe("False when the same content was stored before"),
};

/** A stored clip. */
export const mediaEvidence = named("MediaEvidence", open(mediaFields));

/** A stored spoken answer. */
export const feedbackAudio = named(
  "FeedbackAudio",
  open({
    ...mediaFields,
    model: text,
    sample_rate_hz: positive,
    processing_ms: durationMs,
  }),
);

/** Fields of a source that ended early. See docs/api/ingest.md#early-ends. */
export const sourceEndFields = {
  ended_early: named(
    "EarlyEnd",
    open({
      ended_at_ms: count.describe("When the last decoded frame ends, milliseconds from the first one"),
      expected_end_ms: count.describe("When the source says that its video ends"),
      reason: text.describe("What is known of the cause"),
    }),
  ).optional().describe("The source ended before the end that it announces; absent where it did not"),
  source_warning: text.optional().describe(
    "What failed or is missing in the middle of a source that did not end early; absent for nothing",
  ),
};
