/** A question to a model as flows ask it, for tests of the backends that answer. */

import type { InferenceRequest } from "../../../src/model/infer/inference.ts";

export function question(fields: Partial<InferenceRequest> = {}): InferenceRequest {
  return {
    model: "Qwen/Qwen3-VL-4B-Instruct",
    prompt: "What is there?",
    images: [],
    maxTokens: 64,
    temperature: 0,
    allowFallback: true,
    ...fields,
  };
}
