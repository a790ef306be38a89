/** Asks the first model about one chunk, and the second model where the first is unsure. See
 * docs/reason.md#second-model.
 */

import { type InferenceAnswer, InferenceFailed, type InferenceVideo } from "../../model/infer/inference.ts";
import type { TokenCounts } from "../../model/infer/inference.ts";
import { needsSecondPass } from "../../model/reason/answer.ts";
import { sumTokens } from "../../model/reason/chunks.ts";
import type { ReasonPlan } from "../../model/reason/request.ts";
import { firstPass, type ModelPass, secondPass } from "../../model/reason/schemas.ts";
import type { Inference } from "../infer/inference.ts";

export interface ChunkQuestion {
  readonly prompt: string;
  /** Whole JPEG files, in the order in which the model sees them. */
  readonly images: readonly Uint8Array[];
  readonly video?: InferenceVideo;
}

/** The answer that counts, of either pass. */
export interface ChunkReply {
  readonly answer: InferenceAnswer;
  readonly isSecondPass: boolean;
  /** The tokens of both passes together. */
  readonly tokens: TokenCounts;
  readonly inferenceLatencyMs: number;
}

export interface ChunkQuestionsOptions {
  readonly inference: Inference;
  readonly plan: ReasonPlan;
  readonly principalKey: string;
  readonly runId: string;
}

/** Longer than for other calls, as only the caller of a long request waits. See docs/models.md#admission. */
const ESTIMATE_MS_MAX = 1000;
const DEADLINE_PER_TIMEOUT = 2;

export class ChunkQuestions {
  readonly #options: ChunkQuestionsOptions;

  constructor(options: ChunkQuestionsOptions) {
    this.#options = options;
  }

  /**
   * Throws InferenceFailed where the first pass fails, or the reason of the signal. Where the second pass
   * fails, or `isReadable` rejects its answer, the first answer counts.
   */
  async ask(
    question: ChunkQuestion,
    isReadable: (secondText: string) => Promise<boolean>,
    signal: AbortSignal,
  ): Promise<ChunkReply> {
    const { plan } = this.#options;
    const first = await this.#pass(firstPass(plan), question, signal);
    const alone = {
      answer: first,
      isSecondPass: false,
      tokens: first.tokens,
      inferenceLatencyMs: first.inferenceLatencyMs,
    };
    const pass = secondPass(plan);
    if (pass === null || !needsSecondPass(first.outputText, plan.threshold)) return alone;
    const second = await this.#secondAnswer(pass, question, signal);
    if (second === null) return alone;
    const spent = {
      tokens: sumTokens([first.tokens, second.tokens]),
      inferenceLatencyMs: first.inferenceLatencyMs + second.inferenceLatencyMs,
    };
    return await isReadable(second.outputText)
      ? { answer: second, isSecondPass: true, ...spent }
      : { ...alone, ...spent };
  }

  async #secondAnswer(
    pass: ModelPass,
    question: ChunkQuestion,
    signal: AbortSignal,
  ): Promise<InferenceAnswer | null> {
    try {
      return await this.#pass(pass, question, signal);
    } catch (error) {
      if (error instanceof InferenceFailed) return null;
      throw error;
    }
  }

  #pass(pass: ModelPass, question: ChunkQuestion, signal: AbortSignal): Promise<InferenceAnswer> {
    const { inference, plan: { timeoutMs }, principalKey, runId } = this.#options;
    return inference.ask({ ...question, ...pass, temperature: 0, allowFallback: true }, {
      principalKey,
      streamKey: runId,
      latencyClass: "offline",
      timeoutMs,
      deadlineMs: DEADLINE_PER_TIMEOUT * timeoutMs,
      serviceEstimateMs: Math.min(timeoutMs, ESTIMATE_MS_MAX),
      signal,
    });
  }
}
