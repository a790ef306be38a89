/** How request bodies are named, and their fields with what schemas say of them; the flows check the rules.
 */

import * as z from "zod";
import { LIMITS, type Range } from "../../contract/limits.ts";
import { MODES } from "../mode.ts";
import { named } from "./named_shapes.ts";

/** The shape of a request body by its name in the API description; it has these fields alone. */
export function body<Shape extends z.ZodRawShape>(name: string, fields: Shape) {
  return named(name, z.strictObject(fields));
}

/** An optional number between two ends that belong to the range. */
export function numberWithin(range: Range, unlessGiven: string | number, meaning = "") {
  return z.number().meta({ ...range }).nullish().describe(withDefault(meaning, unlessGiven));
}

/** An optional whole number between two ends that belong to the range. */
export function countWithin(range: Range, unlessGiven: string | number, meaning = "") {
  return z.int().nonnegative().meta({ ...range }).nullish().describe(withDefault(meaning, unlessGiven));
}

/**
 * A text whose length in bytes belongs to the range. The published bounds are characters, of which each has
 * at least one byte; the rule itself is checked by the flow.
 */
export function textWithin(bytes: Range, meaning: string) {
  return z.string().meta({ minLength: bytes.minimum, maxLength: bytes.maximum }).describe(meaning);
}

function withDefault(meaning: string, unlessGiven: string | number): string {
  return `${meaning}${meaning && "; "}${unlessGiven} unless given`;
}

/** A part of a live picture, as fractions; unknown keys are accepted and dropped. */
export const liveCrop = named(
  "LiveCrop",
  z.object({ x: z.number(), y: z.number(), width: z.number(), height: z.number() }),
);

/** A text that each event or row of a call repeats. */
export const callName = textWithin(
  { minimum: 1, maximum: LIMITS.name.bytesMax },
  `Not blank, at most ${LIMITS.name.bytesMax} bytes, without control characters`,
).nullish();

export const sourceUri = textWithin(
  { minimum: 1, maximum: LIMITS.ingest.sourceUriBytesMax },
  `A file of an ingest root or an upload, or the URL of a remote source; at most ${LIMITS.ingest.sourceUriBytesMax} bytes`,
);

/** The video stream to take of a source with several; see docs/api/ingest.md#ingest. */
export const videoStreamIndex = z.int().nonnegative().nullish().describe(
  "The index of a video stream, among all streams of the source; the default or the largest one unless given",
);

export const runMode = z.string().nullish().describe(`${MODES.join(", ")}, in any case`);

export const modelId = z.string().describe(
  "An id of the model catalog, an alias, or an id of a model server, in any case",
);

export const samplingPolicyName = z.string().nullish().describe(
  "`source_fps_adaptive` (or `adaptive`), which keeps every frame, or `fixed`",
);
