/** The answers of direct inference in one shape, whether they come alone or in a batch. */

import type { InferBatchResponse, InferRequest, InferResponse, Tokens } from "./types.ts";

export interface InferResult {
  /** What the model said; null where it failed. */
  result: string | null;
  ok: boolean;
  /** Of an entry of a batch that failed. A single call that fails throws. */
  error: { code: string; message: string } | null;
  finish_reason: "stop" | "length" | "content_filter" | null;
  inference_latency_ms: number;
  /** From the call of the method to its answer, attempts and pauses included. */
  total_latency_ms: number;
  /** The request id of the service. */
  id: string;
  model_name: string;
  provider: string;
  /** Which backend answered: `<provider>/<model>`. */
  model_backend: string;
  prompt: string;
  fallback_used: boolean;
  run_id: string | null;
  tokens: Tokens;
}

const NO_TOKENS: Tokens = { prompt_tokens: 0, completion_tokens: 0, thinking_tokens: 0, total_tokens: 0 };

export function inferResult(
  request: InferRequest,
  answer: { id: string; latencyMs: number; result?: InferResponse | null; error?: InferResult["error"] },
): InferResult {
  const { result, error = null } = answer;
  const provider = result?.provider ?? "";
  const model = result?.model ?? request.model ?? "";
  return {
    result: result?.output_text ?? null,
    ok: error === null,
    error,
    finish_reason: (result?.finish_reason ?? null) as InferResult["finish_reason"],
    inference_latency_ms: result?.inference_latency_ms ?? 0,
    total_latency_ms: answer.latencyMs,
    id: answer.id,
    model_name: model,
    provider,
    model_backend: provider && `${provider}/${model}`,
    prompt: request.prompt,
    fallback_used: result?.fallback_used ?? false,
    run_id: result?.run_id ?? request.run_id ?? null,
    tokens: result?.tokens ?? NO_TOKENS,
  };
}

/** In the order of the requests. */
export function batchResults(
  requests: readonly InferRequest[],
  answer: InferBatchResponse,
  latencyMs: number,
): InferResult[] {
  return [...answer.results].sort((a, b) => a.index - b.index).map(({ index, result, error }) =>
    inferResult(requests[index]!, { id: result?.request_id ?? answer.request_id, latencyMs, result, error })
  );
}
