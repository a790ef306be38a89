/** Checks the body of a direct inference and fills in its defaults. */

import { utf8Length } from "../../base/bytes.ts";
import type { InferBody } from "../../model/api/infer.ts";
import { type FieldRules, quoted } from "../../model/field_rules.ts";
import { isRunId } from "../../model/identifiers.ts";
import type { IdentifyModel } from "../../model/infer/catalog.ts";
import { type InferenceRequest, PROVIDER_KINDS, type ProviderKind } from "../../model/infer/inference.ts";
import { LIMITS } from "../../contract/limits.ts";
import { checkedSchema } from "../../model/schema_field.ts";

export interface CheckedRequest {
  readonly runId: string | null;
  readonly request: InferenceRequest;
  readonly timeoutMs: number;
  readonly primaryProvider: ProviderKind;
}

/** Adds what is wrong to `rules`; the result must not be used then. See docs/models.md#infer. */
export function checkedRequest(
  body: InferBody,
  rules: FieldRules,
  identify: IdentifyModel,
): CheckedRequest {
  const prompt = body.prompt.trim();
  const promptBytes = utf8Length(prompt);
  const maxTokens = body.max_tokens ?? LIMITS.infer.maxTokensDefault;
  const temperature = body.temperature ?? LIMITS.infer.temperatureDefault;
  const timeoutMs = body.timeout_ms ?? LIMITS.infer.timeoutMsDefault;
  const primaryProvider = PROVIDER_KINDS.find((kind) =>
    kind === (body.primary_provider ?? "vllm").toLowerCase()
  );
  if (body.run_id != null && !isRunId(body.run_id)) {
    rules.fault("run_id", "must be run- followed by 32 or 16 hexadecimal digits");
  }
  const model = rules.model(body.model, identify);
  const { minimum, maximum } = LIMITS.infer.promptBytes;
  if (promptBytes < minimum || promptBytes > maximum) {
    rules.fault("prompt", `must have ${minimum} to ${maximum} bytes when trimmed: got ${promptBytes}`);
  }
  rules.range("max_tokens", maxTokens, LIMITS.infer.maxTokens);
  rules.range("temperature", temperature, LIMITS.infer.temperature);
  rules.range("timeout_ms", timeoutMs, LIMITS.infer.timeoutMs);
  if (!primaryProvider) {
    const got = quoted(body.primary_provider!);
    rules.fault("primary_provider", `must be ${PROVIDER_KINDS.join(", ")}: got ${got}`);
  }
  const schema = body.output_schema != null
    ? checkedSchema("output_schema", body.output_schema, rules)
    : undefined;
  return {
    runId: body.run_id ?? null,
    request: {
      model,
      prompt,
      images: [],
      maxTokens,
      temperature,
      ...(schema && { outputSchema: { name: "output", schema } }),
      allowFallback: body.allow_fallback ?? true,
    },
    timeoutMs,
    primaryProvider: primaryProvider ?? "vllm",
  };
}
