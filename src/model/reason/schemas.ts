/** The JSON Schemas of the requested answers, and the two passes that use them. See
 * docs/reason.md#model-answers.
 */

import type { InferenceRequest } from "../infer/inference.ts";
import { FRAME_EVENT_TYPES } from "../frames/frame_row.ts";
import { TIER_LABEL } from "./answer.ts";
import { MOMENT_KINDS } from "./moments.ts";
import { isTiered, type ReasonPlan } from "./request.ts";

type AnswerSchema = NonNullable<InferenceRequest["outputSchema"]>;

const UNIT = { type: "number", minimum: 0, maximum: 1 } as const;
const TEXT = { type: "string" } as const;

/** The answer about a chunk of frames or a silent clip. */
export const FRAME_ANSWER: AnswerSchema = {
  name: "chunk_observation",
  schema: {
    type: "object",
    properties: {
      event_type: { type: "string", enum: [...FRAME_EVENT_TYPES] },
      object_label: TEXT,
      summary: TEXT,
      description: TEXT,
      confidence: UNIT,
    },
    required: ["event_type", "object_label", "summary", "description", "confidence"],
  },
};

/** The answer about a clip with sound. */
export const MOMENTS_ANSWER: AnswerSchema = {
  name: "clip_moments",
  schema: {
    type: "object",
    properties: {
      moments: {
        type: "array",
        items: {
          type: "object",
          properties: {
            start_offset_ms: { type: "integer" },
            end_offset_ms: { type: "integer" },
            modalities: { type: "array", items: { type: "string", enum: ["audio", "video"] } },
            kind: { type: "string", enum: [...MOMENT_KINDS] },
            description: TEXT,
            intent: TEXT,
            audio_visual_relation: TEXT,
            confidence: UNIT,
          },
          required: [
            "start_offset_ms",
            "end_offset_ms",
            "modalities",
            "kind",
            "description",
            "confidence",
          ],
        },
      },
    },
    required: ["moments"],
  },
};

/** The answer of the second pass when the first one has the schema of the caller. */
export const TIER_LABEL_ANSWER: AnswerSchema = { name: "tier_label", schema: TIER_LABEL.schema };

/** Output tokens of an answer about frames. */
const FRAME_TOKENS = 320;
const LONG_TOKENS = 1024;
const SECOND_PASS_TOKENS = 256;

/** The differences between the requests of the two passes. */
export interface ModelPass {
  readonly model: string;
  readonly maxTokens: number;
  readonly outputSchema: AnswerSchema;
}

export function firstPass(plan: ReasonPlan): ModelPass {
  const isLong = plan.media.mode === "audio_video" || plan.outputSchema !== null;
  return {
    model: plan.firstPassModel,
    maxTokens: isLong ? LONG_TOKENS : FRAME_TOKENS,
    outputSchema: answerSchema(plan),
  };
}

/** The second pass; null when there is no second model. */
export function secondPass(plan: ReasonPlan): ModelPass | null {
  if (!isTiered(plan)) return null;
  return {
    model: plan.secondPassModel,
    maxTokens: SECOND_PASS_TOKENS,
    outputSchema: plan.outputSchema ? TIER_LABEL_ANSWER : answerSchema(plan),
  };
}

function answerSchema(plan: ReasonPlan): AnswerSchema {
  if (plan.outputSchema) return { name: "caller_schema", schema: plan.outputSchema.schema };
  return plan.media.mode === "audio_video" ? MOMENTS_ANSWER : FRAME_ANSWER;
}
