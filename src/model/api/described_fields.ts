/** Fields of request bodies with what the published schemas say of them: the rules themselves are checked by the flows. */

import * as z from "zod";
import { LIMITS, type Range } from "../limits.ts";
import { MODES } from "../runs/mode.ts";

/** An optional number between two ends that belong to the range. */
export function numberWithin(range: Range, unlessGiven: string | number, meaning = "") {
  return z.number().meta({ ...range }).nullish().describe(withDefault(meaning, unlessGiven));
}

/** An optional whole number between two ends that belong to the range. */
export function countWithin(range: Range, unlessGiven: string | number, meaning = "") {
  return z.int().nonnegative().meta({ ...range }).nullish().describe(withDefault(meaning, unlessGiven));
}

function withDefault(meaning: string, unlessGiven: string | number): string {
  return `${meaning}${meaning && "; "}${unlessGiven} unless given`;
}

/** A text that each event or row of a call repeats. */
export const callName = z.string().nullish().describe(
  `Not blank, at most ${LIMITS.name.bytesMax} bytes, without control characters`,
);

export const sourceUri = z.string().describe(
  `A file of an ingest root or an upload, or the URL of a remote source; at most ${LIMITS.ingest.sourceUriBytesMax} bytes`,
);

export const runMode = z.string().nullish().describe(`${MODES.join(", ")}, in any case`);

export const modelId = z.string().describe("An id of the model catalog or an alias, in any case");

export const samplingPolicyName = z.string().nullish().describe(
  "`source_fps_adaptive` (or `adaptive`), which keeps every frame, or `fixed`",
);
