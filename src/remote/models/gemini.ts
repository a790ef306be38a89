/** Backends with Google's Gemini protocol: pictures go inside the request, clips are uploaded and later
 * deleted.
 */

import * as z from "zod";
import { NEVER_ABORTED } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { GEMINI_BASE_URL, type GeminiSettings } from "../../model/infer/backend_file.ts";
import { geminiSchema } from "../../model/infer/gemini_schema.ts";
import {
  InferenceFailed,
  type InferenceRequest,
  type InferenceVideo,
  type TokenCounts,
} from "../../model/infer/inference.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { Backend, BackendAnswer, BackendCallOptions, BackendContext } from "./backend.ts";
import { Base64, jsonBody } from "./json_body.ts";
import { type Exchange, ModelEndpoint } from "./model_endpoint.ts";
import { type ModelsAnswer, ServedModels } from "./served_models.ts";

/** A backend with the protocol of Gemini. See docs/models.md#gemini. */
export class Gemini implements Backend {
  readonly name: string;
  readonly kind = "gemini";
  readonly hasBinaryMedia = true;
  readonly models: ServedModels;
  readonly #settings: GeminiSettings;
  readonly #world: World;
  readonly #endpoint: ModelEndpoint;
  /** Deletions under way. Answers do not wait for them. */
  readonly #deletions = new Set<Promise<void>>();
  /** Whether the model has used all its tokens for thinking once: from then on every request has more. */
  #needsThinkingTokens = false;

  constructor(settings: GeminiSettings, context: BackendContext) {
    this.name = settings.name;
    this.#settings = settings;
    this.#world = context.world;
    this.#endpoint = new ModelEndpoint(this, context);
    this.models = new ServedModels((signal) => this.#askForModel(signal), context.world);
  }

  reservedTokens({ maxTokens }: InferenceRequest): number {
    return maxTokens + LIMITS.backend.geminiThinkingTokens;
  }

  async ask(request: InferenceRequest, options: BackendCallOptions): Promise<BackendAnswer> {
    const budget: TimeBudget = {
      endMs: this.#world.monotonicMs() + options.timeoutMs,
      signal: options.signal,
    };
    const { video } = request;
    if (!video) return await this.#answer(request, null, budget);
    const file = await this.#upload(video, budget);
    try {
      const ready = await this.#untilActive(file, budget);
      return await this.#answer(request, ready, budget);
    } finally {
      this.#deleteSoon(file);
    }
  }

  async close(): Promise<void> {
    await Promise.all([...this.#deletions, this.models.close()]);
  }

  /** Asks whether the server has the backend's own model; the backend is asked for no other. */
  async #askForModel(signal: AbortSignal): Promise<ModelsAnswer> {
    const { model } = this.#settings;
    try {
      await this.#endpoint.exchange({
        method: "GET",
        url: this.#url(`/v1beta/models/${encodeURIComponent(model)}`),
        timeoutMs: LIMITS.backend.geminiProbeMs,
        signal,
      });
      return { fault: null, list: { ids: [model], isComplete: false } };
    } catch (error) {
      if (!(error instanceof InferenceFailed)) throw error;
      return { fault: error.message, list: null };
    }
  }

  /** Asks the model for an answer. If thinking used up its tokens, it is asked again with more, once. */
  async #answer(
    request: InferenceRequest,
    file: ActiveFile | null,
    budget: TimeBudget,
  ): Promise<BackendAnswer> {
    const ask = (extraTokens: number) =>
      this.#generate(request, file, request.maxTokens + extraTokens, budget);
    const extraTokens = LIMITS.backend.geminiThinkingTokens;
    if (this.#needsThinkingTokens) return await ask(extraTokens);
    const first = await ask(0);
    const isStarved = first.outputText === "" && first.finishReason === "length";
    if (!isStarved || first.tokens.thinking_tokens === 0) return first;
    this.#needsThinkingTokens = true;
    const second = await ask(extraTokens);
    return { ...second, tokens: sum(first.tokens, second.tokens) };
  }

  async #generate(
    request: InferenceRequest,
    file: ActiveFile | null,
    maxTokens: number,
    budget: TimeBudget,
  ): Promise<BackendAnswer> {
    const model = encodeURIComponent(this.#settings.model);
    const answer = GENERATED.safeParse(
      await this.#endpoint.answer({
        ...this.#remaining(budget),
        method: "POST",
        url: this.#url(`/v1beta/models/${model}:generateContent`),
        headers: JSON_TYPE,
        body: jsonBody(bodyOf(request, this.#settings.model, file, maxTokens)),
      }),
    );
    if (!answer.success) throw this.#endpoint.unreadable("its answer is not a generated content");
    const { candidates: [candidate] = [], promptFeedback, usageMetadata } = answer.data;
    if (!candidate && !promptFeedback?.blockReason) {
      throw this.#endpoint.unreadable("its answer has no candidate");
    }
    const parts = (candidate?.content?.parts ?? []).filter((part) => !part.thought);
    const calls = parts.flatMap(({ functionCall }) =>
      functionCall ? [JSON.stringify(functionCall.args ?? {})] : []
    );
    const text = parts.map((part) => part.text ?? "").join("");
    return {
      outputText: text.trim() === "" && calls.length === 1 ? calls[0]! : text,
      finishReason: candidate ? finishReasonOf(candidate.finishReason) : "content_filter",
      tokens: tokensOf(usageMetadata),
    };
  }

  /** Uploads a clip with two requests: the first announces the upload, the second sends the whole clip. */
  async #upload({ bytes }: InferenceVideo, budget: TimeBudget): Promise<UploadedFile> {
    const { answer: { headers } } = await this.#endpoint.exchange({
      ...this.#remaining(budget),
      method: "POST",
      url: this.#url("/upload/v1beta/files"),
      headers: {
        ...JSON_TYPE,
        "x-goog-upload-protocol": "resumable",
        "x-goog-upload-command": "start",
        "x-goog-upload-header-content-length": String(bytes.length),
        "x-goog-upload-header-content-type": CLIP_TYPE,
      },
      body: jsonBody({ file: { display_name: "clip" } }),
    });
    const answer = UPLOADED.safeParse(
      await this.#endpoint.json({
        ...this.#remaining(budget),
        method: "PUT",
        url: this.#uploadUrl(headers.get("x-goog-upload-url")),
        headers: {
          "content-type": CLIP_TYPE,
          "x-goog-upload-offset": "0",
          "x-goog-upload-command": "upload, finalize",
        },
        body: bytes,
      }),
    );
    if (!answer.success) throw this.#endpoint.unreadable("its answer to an upload names no file");
    return answer.data.file;
  }

  /**
   * Checks the upload URL that the server names. It must be on the server itself, or on Google's when the
   * server is a proxy of it.
   */
  #uploadUrl(given: string | null): URL {
    const url = given === null ? null : URL.parse(given);
    const origins = [this.#settings.baseUrl, GEMINI_BASE_URL].map((base) => new URL(base).origin);
    if (url && origins.includes(url.origin)) return url;
    throw this.#endpoint.unreadable("its answer to an upload has no URL of its own");
  }

  /**
   * Polls until the model can use the file: after 100 ms, then at growing intervals of at most half a second.
   */
  async #untilActive(uploaded: UploadedFile, budget: TimeBudget): Promise<ActiveFile> {
    let file = uploaded;
    let pauseMs = POLL_MS_FIRST;
    while (file.state !== "ACTIVE") {
      if (file.state !== "PROCESSING") throw this.#endpoint.unreadable("it cannot read the clip");
      await this.#world.sleep(Math.max(0, Math.min(pauseMs, this.#leftMs(budget))), budget.signal);
      pauseMs = Math.min(pauseMs * 2, LIMITS.backend.geminiFilePollMs);
      const answer = FILE.safeParse(
        await this.#endpoint.json({
          ...this.#remaining(budget),
          method: "GET",
          url: this.#url(`/v1beta/${file.name}`),
        }),
      );
      if (!answer.success) throw this.#endpoint.unreadable("its answer names no file");
      file = { ...answer.data, name: uploaded.name };
    }
    if (!file.uri) throw this.#endpoint.unreadable("its file has no address");
    return { uri: file.uri };
  }

  /** Deletes the clip in the background, also when the call failed or its caller has disconnected. */
  #deleteSoon({ name }: UploadedFile): void {
    const deletion = this.#endpoint.exchange({
      method: "DELETE",
      url: this.#url(`/v1beta/${name}`),
      timeoutMs: LIMITS.backend.geminiFileDeleteMs,
      signal: NEVER_ABORTED,
    }).then(
      () => {},
      (error) => this.#world.log.child("gemini").warn(`a clip was not deleted: ${error.message}`),
    ).finally(() => this.#deletions.delete(deletion));
    this.#deletions.add(deletion);
  }

  #remaining(budget: TimeBudget): Pick<Exchange, "timeoutMs" | "signal"> {
    return { timeoutMs: this.#leftMs(budget), signal: budget.signal };
  }

  #leftMs({ endMs }: TimeBudget): number {
    return endMs - this.#world.monotonicMs();
  }

  #url(path: string): URL {
    const url = new URL(`${this.#settings.baseUrl}${path}`);
    url.searchParams.set("key", this.#settings.apiKey);
    return url;
  }
}

/** The limits of one call with all its requests. */
interface TimeBudget {
  readonly endMs: number;
  readonly signal: AbortSignal;
}

interface ActiveFile {
  readonly uri: string;
}

const CLIP_TYPE = "video/mp4";
const JSON_TYPE = { "content-type": "application/json" };
const POLL_MS_FIRST = 100;

function bodyOf(
  request: InferenceRequest,
  model: string,
  file: ActiveFile | null,
  maxOutputTokens: number,
): Record<string, unknown> {
  const { prompt, images, video, temperature, outputSchema } = request;
  const parts = [
    ...images.map((jpeg) => ({ inlineData: { mimeType: "image/jpeg", data: new Base64(jpeg) } })),
    ...(file ? [{ fileData: { mimeType: CLIP_TYPE, fileUri: file.uri } }] : []),
    { text: prompt },
  ];
  return {
    contents: [{ role: "user", parts }],
    generationConfig: {
      maxOutputTokens,
      temperature: model.startsWith("gemini-3.") ? undefined : temperature,
      mediaResolution: video?.resolution && `MEDIA_RESOLUTION_${video.resolution.toUpperCase()}`,
      ...(outputSchema && {
        responseMimeType: "application/json",
        responseSchema: geminiSchema(outputSchema.schema) ?? undefined,
      }),
    },
  };
}

const FILE = z.object({
  name: z.string().regex(/^files\/[\w.-]{1,128}$/),
  uri: z.string().nullish(),
  // A server that gives no state has finished the file.
  state: z.string().default("ACTIVE").transform((state) =>
    state === "STATE_UNSPECIFIED" ? "PROCESSING" : state
  ),
});
type UploadedFile = z.infer<typeof FILE>;
const UPLOADED = z.object({ file: FILE });

/** A count of tokens; one that is missing or invalid is 0. */
const TOKEN_COUNT = z.int().nonnegative().catch(0);
const GEMINI_USAGE = z.object({
  promptTokenCount: TOKEN_COUNT,
  candidatesTokenCount: TOKEN_COUNT,
  thoughtsTokenCount: TOKEN_COUNT,
  totalTokenCount: TOKEN_COUNT,
}).nullish().catch(null);
const PART = z.object({
  text: z.string().nullish(),
  thought: z.boolean().nullish(),
  functionCall: z.object({ args: z.unknown() }).nullish().catch(null),
});
const GENERATED = z.object({
  candidates: z.array(z.object({
    content: z.object({ parts: z.array(PART).nullish() }).nullish(),
    finishReason: z.string().nullish(),
  })).nullish().transform((candidates) => candidates ?? undefined),
  promptFeedback: z.object({ blockReason: z.string().nullish() }).nullish(),
  usageMetadata: GEMINI_USAGE,
});

function finishReasonOf(reason: string | null | undefined): string | null {
  switch (reason) {
    case null:
    case undefined:
      return null;
    case "MAX_TOKENS":
      return "length";
    case "SAFETY":
      return "content_filter";
    default:
      return reason.toLowerCase();
  }
}

function tokensOf(usage: z.infer<typeof GEMINI_USAGE>): TokenCounts {
  const counts = {
    prompt_tokens: usage?.promptTokenCount ?? 0,
    completion_tokens: usage?.candidatesTokenCount ?? 0,
    thinking_tokens: usage?.thoughtsTokenCount ?? 0,
  };
  const counted = counts.prompt_tokens + counts.completion_tokens + counts.thinking_tokens;
  return { ...counts, total_tokens: usage?.totalTokenCount || counted };
}

function sum(one: TokenCounts, other: TokenCounts): TokenCounts {
  return {
    prompt_tokens: one.prompt_tokens + other.prompt_tokens,
    completion_tokens: one.completion_tokens + other.completion_tokens,
    thinking_tokens: one.thinking_tokens + other.thinking_tokens,
    total_tokens: one.total_tokens + other.total_tokens,
  };
}
