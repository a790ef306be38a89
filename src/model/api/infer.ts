/** Request bodies of direct inference: their shapes. The rules about values are checked by the flow. */

import * as z from "zod";
import { boundedList } from "../bounded_list.ts";
import { body, modelId, numberWithin, textWithin } from "./described_fields.ts";
import { LIMITS } from "../limits.ts";
import { jsonObject } from "../events/payload_shapes.ts";

export const INFER_BODY = body("InferRequest", {
  model: modelId,
  prompt: textWithin(
    LIMITS.infer.promptBytes,
    `${LIMITS.infer.promptBytes.minimum} to ${LIMITS.infer.promptBytes.maximum} bytes when trimmed`,
  ),
  run_id: z.string().nullish(),
  max_tokens: z.int().meta({ ...LIMITS.infer.maxTokens }).nullish(),
  temperature: numberWithin(LIMITS.infer.temperature, LIMITS.infer.temperatureDefault),
  timeout_ms: z.int().meta({ ...LIMITS.infer.timeoutMs }).nullish(),
  allow_fallback: z.boolean().nullish(),
  primary_provider: z.string().nullish(),
  output_schema: jsonObject.nullish(),
});

export const INFER_BATCH_BODY = body("InferBatchRequest", {
  requests: boundedList(INFER_BODY, LIMITS.infer.batchRequests.maximum, LIMITS.infer.batchRequests.minimum),
  max_parallel: z.int().meta({ ...LIMITS.infer.batchParallel }).nullish(),
});

export type InferBody = z.infer<typeof INFER_BODY>;
export type InferBatchBody = z.infer<typeof INFER_BATCH_BODY>;
