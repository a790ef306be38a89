/** Answers of direct inference, of the model catalog and of triggers: their shapes. See docs/models.md#infer. */

import * as z from "zod";
import { count, durationMs, open, positive, text, unit } from "../../events/payload_shapes.ts";
import { PROVIDER_KINDS } from "../../infer/inference.ts";
import { triggerProgram } from "../../triggers/program.ts";
import { answer, requestIdField, runIdField, tokens } from "./answer_fields.ts";
import { namedEnum } from "../../schemas/named_shapes.ts";

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

export const COMPILED_TRIGGER = answer("CompileTriggerResponse", () => ({
  request_id: requestIdField,
  program: triggerProgram,
  instruction_count: positive,
  state_slots: count,
}));

export const VALID_TRIGGER = answer("ValidateTriggerResponse", () => ({
  request_id: requestIdField,
  valid: z.literal(true),
  isa_version: positive,
  program_id: text,
  program_version: positive,
  instruction_count: positive,
  state_slots: count,
}));

const TRIGGER_ACTION = answer("TriggerAction", () => ({ op: z.enum(["emit", "capture", "notify"]) }));

export const EVALUATED_TRIGGER = answer("EvaluateTriggerResponse", () => ({
  request_id: requestIdField,
  program_id: text,
  program_version: positive,
  results: z.array(open({
    pts_ms: count,
    fired: z.boolean(),
    missing_signal: z.boolean().describe("Whether a signal of the program was not in the sample"),
    actions: z.array(TRIGGER_ACTION()),
  })),
}));

export const EVALUATED_ON_RUN = answer("EvaluateTriggerOnRunResponse", () => ({
  request_id: requestIdField,
  run_id: runIdField,
  program_id: text,
  program_version: positive,
  source_seq: positive.nullable().describe(
    "The `frames_decoded` event; null for a run that has decoded nothing",
  ),
  frames: count.describe("Frames that were stepped"),
  missing_signal_frames: count.describe("Frames that have not all signals of the program"),
  fired_total: count,
  fired: z.array(open({
    frame_index: count,
    pts_ms: count,
    motion_score: unit,
    novelty_score: unit,
    confidence: unit,
  })).describe("The first firings, in the order of time"),
  actions: z.array(TRIGGER_ACTION()).describe("What each firing does"),
}));
