/** What a live session asks the models: the first model about every picture, the second where the first is
 * unsure.
 */

import type { LatencyClass } from "../../../sharing/admission.ts";
import type { Metrics } from "../../../contract/metrics.ts";
import type { World } from "../../../base/world.ts";
import { InferenceFailed, type InferenceRequest } from "../../../model/infer/inference.ts";
import type { LiveModels } from "../../../model/live/live_models.ts";
import { TokenRate } from "../../../model/live/token_rate.ts";
import { needsSecondPass } from "../../../model/reason/answer.ts";
import { TIER_LABEL_ANSWER } from "../../../model/reason/schemas.ts";
import type { Inference } from "../../infer/inference.ts";
import type { LiveJournal } from "../journal/journal.ts";
import type { LiveModelChoice } from "./live_model_choice.ts";

/** How urgent a question of one kind is, and how long its answer may be. See docs/models.md#admission. */
interface QuestionLimits {
  readonly latencyClass: LatencyClass;
  readonly estimateMs: number;
  readonly firstTokens: number;
}

const QUESTION_LIMITS = {
  keyframe: { latencyClass: "urgent_live", estimateMs: 500, firstTokens: 128 },
  clip: { latencyClass: "live", estimateMs: 1_000, firstTokens: 256 },
} as const satisfies Record<string, QuestionLimits>;

/** Output tokens of an answer in the caller's schema, which may be longer than a description. */
const SCHEMA_TOKENS = 1_024;

export interface LiveQuestion {
  readonly kind: keyof typeof QUESTION_LIMITS;
  readonly prompt: string;
  readonly outputSchema: Readonly<Record<string, unknown>> | null;
  /** Whole JPEG files, in the order in which the model sees them. */
  readonly images: readonly Uint8Array[];
}

export interface LiveReply {
  readonly text: string;
  /** Whether the answer is the second model's. */
  readonly isTiered: boolean;
}

export interface LiveQuestionsOptions {
  readonly inference: Inference;
  readonly models: Pick<LiveModels, "secondPassThreshold" | "secondPassMaxTokens">;
  readonly choice: LiveModelChoice;
  readonly metrics: Metrics;
  readonly world: World;
  readonly journal: Pick<LiveJournal, "runId">;
  readonly principalKey: string;
  /** Output tokens per second; 0 for no cap. */
  readonly tokensPerSecond: number;
  /** How long each pass may take. Both together have twice as long, the waits for admission included. */
  readonly timeoutMs: number;
}

export class LiveQuestions {
  readonly #options: LiveQuestionsOptions;
  readonly #rate: TokenRate;

  constructor(options: LiveQuestionsOptions) {
    this.#options = options;
    this.#rate = new TokenRate(options.tokensPerSecond);
  }

  /** Whether the session's cap of output tokens leaves room for another question now. */
  get hasTokens(): boolean {
    return this.#rate.admits(this.#options.world.monotonicMs());
  }

  /**
   * Why no backend answers for the model of live sessions; null where one does. Errors: the reason of the
   * signal.
   */
  async notServed(signal: AbortSignal): Promise<string | null> {
    return (await this.#options.choice.settled(signal)).notServed;
  }

  /**
   * Throws InferenceFailed for a model that fails or answers with an empty text; else the reason of the
   * signal.
   */
  async ask(question: LiveQuestion, signal: AbortSignal): Promise<LiveReply> {
    const { world, metrics, models, choice } = this.#options;
    const startedMs = world.monotonicMs();
    try {
      const { firstTokens } = QUESTION_LIMITS[question.kind];
      const first = await this.#pass(question, {
        model: choice.now.first,
        maxTokens: question.outputSchema ? SCHEMA_TOKENS : firstTokens,
        schema: question.outputSchema && { name: "caller_schema", schema: question.outputSchema },
        startedMs,
      }, signal);
      const second = needsSecondPass(first, models.secondPassThreshold)
        ? await this.#secondPass(question, startedMs, signal)
        : null;
      return second === null ? { text: first, isTiered: false } : { text: second, isTiered: true };
    } finally {
      metrics.observe("service_pipeline_vlm_latency_ms", world.monotonicMs() - startedMs);
    }
  }

  /** Null where there is no second model or it fails: then the first answer counts. */
  async #secondPass(
    question: LiveQuestion,
    startedMs: number,
    signal: AbortSignal,
  ): Promise<string | null> {
    const { choice, models: { secondPassMaxTokens } } = this.#options;
    const { second: secondPassModel } = choice.now;
    if (secondPassModel === null) return null;
    try {
      return await this.#pass(question, {
        model: secondPassModel,
        maxTokens: secondPassMaxTokens,
        schema: question.outputSchema && TIER_LABEL_ANSWER,
        startedMs,
      }, signal);
    } catch (error) {
      if (error instanceof InferenceFailed) return null;
      throw error;
    }
  }

  async #pass({ kind, prompt, images }: LiveQuestion, pass: {
    model: string;
    maxTokens: number;
    schema: InferenceRequest["outputSchema"] | null;
    startedMs: number;
  }, signal: AbortSignal): Promise<string> {
    const { inference, metrics, world, timeoutMs, principalKey, journal } = this.#options;
    const { latencyClass, estimateMs } = QUESTION_LIMITS[kind];
    metrics.add("service_pipeline_vlm_inferences_total");
    const { outputText } = await inference.ask({
      model: pass.model,
      prompt,
      images,
      maxTokens: pass.maxTokens,
      temperature: 0,
      allowFallback: true,
      ...(pass.schema && { outputSchema: pass.schema }),
    }, {
      principalKey,
      streamKey: journal.runId,
      latencyClass,
      timeoutMs,
      deadlineMs: 2 * timeoutMs - (world.monotonicMs() - pass.startedMs),
      serviceEstimateMs: estimateMs,
      signal,
    });
    this.#rate.spend(world.monotonicMs(), outputText);
    const text = outputText.trim();
    if (text === "") throw new InferenceFailed("invalid_response", "The model answered with an empty text");
    return text;
  }
}
