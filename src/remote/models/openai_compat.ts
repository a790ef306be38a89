/** Backends with the chat completions protocol of OpenAI: vLLM, SGLang, MLX and others. */

import * as z from "zod";
import type { World } from "../../base/world.ts";
import type { OpenaiCompatSettings } from "../../model/infer/backend_file.ts";
import { InferenceFailed, type InferenceRequest, type TokenCounts } from "../../model/infer/inference.ts";
import { type ModelList, modelListOf } from "../../model/infer/model_list.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Backend, BackendAnswer, BackendCallOptions, BackendContext } from "./backend.ts";
import { Base64, jsonBody } from "./json_body.ts";
import { ModelEndpoint } from "./model_endpoint.ts";
import { type ModelsAnswer, ServedModels } from "./served_models.ts";

/** See docs/models.md#openai-compatible. */
export class OpenaiCompat implements Backend {
  readonly name: string;
  readonly kind: OpenaiCompatSettings["kind"];
  readonly hasBinaryMedia = false;
  readonly models: ServedModels;
  readonly #settings: OpenaiCompatSettings;
  readonly #world: World;
  readonly #endpoint: ModelEndpoint;
  readonly #completions: URL;
  readonly #headers: Readonly<Record<string, string>>;

  constructor(settings: OpenaiCompatSettings, context: BackendContext) {
    this.name = settings.name;
    this.kind = settings.kind;
    this.#settings = settings;
    this.#world = context.world;
    this.#endpoint = new ModelEndpoint(this, context);
    this.#completions = this.#url("/v1/chat/completions");
    this.#headers = settings.apiKey === null ? {} : { authorization: `Bearer ${settings.apiKey}` };
    this.models = new ServedModels((signal) => this.#askForModels(signal), context.world);
  }

  reservedTokens({ maxTokens }: InferenceRequest): number {
    return maxTokens;
  }

  async ask(request: InferenceRequest, { timeoutMs, signal }: BackendCallOptions): Promise<BackendAnswer> {
    const endMs = this.#world.monotonicMs() + timeoutMs;
    const body = jsonBody(
      bodyOf(request, this.#settings.upstreamModel ?? this.models.spelling(request.model)),
    );
    const answer = ANSWER.safeParse(
      await this.#endpoint.answer({
        method: "POST",
        url: this.#completions,
        headers: { ...this.#headers, "content-type": "application/json" },
        body,
        timeoutMs: endMs - this.#world.monotonicMs(),
        signal,
      }),
    );
    if (!answer.success) throw this.#endpoint.unreadable("its answer is not a chat completion");
    const { choices: [choice], usage } = answer.data;
    return {
      outputText: textOf(choice),
      finishReason: choice.finish_reason ?? null,
      tokens: tokensOf(usage),
    };
  }

  close(): Promise<void> {
    return this.models.close();
  }

  async #askForModels(signal: AbortSignal): Promise<ModelsAnswer> {
    try {
      const { bytes } = await this.#endpoint.exchange({
        method: "GET",
        url: this.#url("/v1/models"),
        headers: this.#headers,
        timeoutMs: LIMITS.backend.probeMs,
        signal,
      });
      return { fault: null, list: this.#listIn(bytes) };
    } catch (error) {
      if (!(error instanceof InferenceFailed)) throw error;
      const hasNoList = error.status !== null && NO_LIST.includes(error.status);
      return { fault: hasNoList ? null : error.message, list: null };
    }
  }

  #listIn(bytes: Uint8Array): ModelList | null {
    try {
      return modelListOf(this.#endpoint.parsed(bytes));
    } catch {
      return null; // it answers, but with no list
    }
  }

  #url(path: string): URL {
    return new URL(`${this.#settings.baseUrl}${path}`);
  }
}

/** What servers without `GET /v1/models` answer to it. */
const NO_LIST: readonly number[] = [404, 405, 501];

function bodyOf(request: InferenceRequest, upstreamModel: string): Record<string, unknown> {
  const { prompt, images, video, maxTokens, temperature, outputSchema } = request;
  const media = [
    ...images.map((jpeg) => dataUrl("image_url", jpeg, "image/jpeg")),
    ...(video ? [dataUrl("video_url", video.bytes, "video/mp4")] : []),
  ];
  const content = media.length === 0 ? prompt : [{ type: "text", text: prompt }, ...media];
  return {
    model: upstreamModel,
    messages: [{ role: "user", content }],
    max_tokens: maxTokens,
    temperature,
    response_format: outputSchema && { type: "json_schema", json_schema: outputSchema },
    // These models think by default, which would use up the output tokens.
    chat_template_kwargs: upstreamModel.includes("Qwen3.5") || request.model.includes("Qwen3.5")
      ? { enable_thinking: false }
      : undefined,
  };
}

function dataUrl(type: "image_url" | "video_url", bytes: Uint8Array, mediaType: string) {
  return { type, [type]: { url: new Base64(bytes, `data:${mediaType};base64,`) } };
}

/** A count that is missing or invalid is 0. */
const TOKEN_COUNT = z.int().nonnegative().catch(0);
/** `arguments` is JSON text, or an object where a server has read it. */
const TOOL_CALL = z.object({ arguments: z.unknown() });
const CHOICE = z.object({
  message: z.object({
    content: z.union([
      z.string(),
      z.array(z.union([z.string(), z.object({ type: z.string().nullish(), text: z.string().nullish() })])),
    ]).nullish(),
    reasoning_content: z.string().nullish().catch(null),
    reasoning: z.string().nullish().catch(null),
    refusal: z.string().nullish().catch(null),
    tool_calls: z.array(z.object({ function: TOOL_CALL })).nullish().catch(null),
    function_call: TOOL_CALL.nullish().catch(null),
  }).nullish(),
  text: z.string().nullish(),
  finish_reason: z.string().nullish(),
}).refine(({ message, text }) => (message ?? text ?? null) !== null);
const OPENAI_USAGE = z.object({
  prompt_tokens: TOKEN_COUNT,
  completion_tokens: TOKEN_COUNT,
  total_tokens: TOKEN_COUNT,
  completion_tokens_details: z.object({ reasoning_tokens: TOKEN_COUNT }).nullish().catch(null),
}).nullish().catch(null);
const ANSWER = z.object({ choices: z.tuple([CHOICE]).rest(z.unknown()), usage: OPENAI_USAGE });

/**
 * The text of an answer, or why the model gives none. A server with a parser of thinking may put a whole answer into `reasoning_content`, or, of a newer one,
 * `reasoning`, and one that was given a schema into the one call of a tool.
 */
function textOf({ message, text, finish_reason: finishReason }: z.infer<typeof CHOICE>): string {
  if (!message) return text ?? "";
  const said = contentText(message.content) ?? text ?? "";
  if (said.trim() !== "") return said;
  const calls = [...(message.tool_calls ?? []).map((call) => call.function), message.function_call]
    .filter((call) => call !== null && call !== undefined);
  if (calls.length === 1) return jsonText(calls[0]!.arguments);
  const thought = FINISHED.test(finishReason ?? "") && (message.reasoning_content || message.reasoning);
  return thought || message.refusal || said;
}

/** An answer that was cut off, or does not say that it was not, has only thinking there. Beside the words of OpenAI those of other servers. */
const FINISHED = /^(?:stop|stop_sequence|eos|eos_token|end_turn|tool_calls?|tool_use|function_call)$/i;

/** The parts of a list that are no thinking. */
function contentText(content: NonNullable<z.infer<typeof CHOICE>["message"]>["content"]): string | null {
  if (!Array.isArray(content)) return content ?? null;
  return content.map((part) =>
    typeof part === "string" ? part : /think|reason/i.test(part.type ?? "") ? "" : part.text ?? ""
  ).join("");
}

function jsonText(value: unknown): string {
  return typeof value === "string" ? value : JSON.stringify(value ?? "");
}

function tokensOf(usage: z.infer<typeof OPENAI_USAGE>): TokenCounts {
  const prompt = usage?.prompt_tokens ?? 0;
  const completion = usage?.completion_tokens ?? 0;
  return {
    prompt_tokens: prompt,
    completion_tokens: completion,
    thinking_tokens: usage?.completion_tokens_details?.reasoning_tokens ?? 0,
    total_tokens: usage?.total_tokens || prompt + completion,
  };
}
