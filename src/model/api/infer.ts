/** Request bodies of direct inference: their shapes. The rules about values are checked by the flow. */

import { z } from "zod";
import { boundedList } from "../bounded_list.ts";
import { LIMITS } from "../limits.ts";

export const INFER_BODY = z.strictObject({
  model: z.string(),
  prompt: z.string(),
  run_id: z.string().nullish(),
  max_tokens: z.int().nullish(),
  temperature: z.number().nullish(),
  timeout_ms: z.int().nullish(),
  allow_fallback: z.boolean().nullish(),
  primary_provider: z.string().nullish(),
  output_schema: z.record(z.string(), z.unknown()).nullish(),
});

export const INFER_BATCH_BODY = z.strictObject({
  requests: boundedList(INFER_BODY, LIMITS.infer.batchRequests.maximum),
  max_parallel: z.int().nullish(),
});

export type InferBody = z.infer<typeof INFER_BODY>;
export type InferBatchBody = z.infer<typeof INFER_BATCH_BODY>;
