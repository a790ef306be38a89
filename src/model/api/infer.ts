/** What inference takes and answers, and the model catalog: shapes. See docs/models.md#infer. */

import * as z from "zod";
import { LIMITS } from "../../contract/limits.ts";
import { boundedList } from "../schemas/bounded_list.ts";
import { count, durationMs, jsonObject, open, text } from "../events/payload_shapes.ts";
import { PROVIDER_KINDS } from "../infer/inference.ts";
import { namedEnum } from "../schemas/named_shapes.ts";
import { answer, requestIdField, runIdField, tokens } from "./answer_fields.ts";
import { body, modelId, numberWithin, textWithin } from "../schemas/described_fields.ts";

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

const providerKind = () => namedEnum("ProviderKind", PROVIDER_KINDS);

export const INFERRED = answer("InferResponse", () => ({
  request_id: requestIdField,
  run_id: runIdField.nullable(),
  provider: providerKind(),
  model: text,
  fallback_used: z.boolean(),
  output_text: z.string(),
  finish_reason: z.string().nullable(),
  inference_latency_ms: durationMs,
  tokens,
}));

export const BATCH_ITEM = answer("InferBatchItem", () => ({
  index: count.describe("Place of the question in the request"),
  ok: z.boolean(),
  result: INFERRED().nullable(),
  error: open({ code: text, message: text }).nullable(),
}));

export const INFERRED_BATCH = answer("InferBatchResponse", () => ({
  request_id: requestIdField,
  processed: count,
  succeeded: count,
  failed: count,
  results: z.array(BATCH_ITEM()),
}));

export const MODEL = answer("Model", () => ({
  id: text,
  tier: z.enum(["medium", "small", "experimental", "cloud"]),
  availability: z.enum(["ready", "saturated", "unavailable"]),
  providers_available: z.array(providerKind()),
  fallback_candidates: z.array(text),
}));

export const MODELS = answer("ModelList", () => ({ request_id: requestIdField, models: z.array(MODEL()) }));
