/** Asks the embedding sidecar whether a keyframe needs a new description, and counts the results over all
 * sessions.
 */

import type { Metrics } from "../../../contract/metrics.ts";
import { isAnotherState } from "../../../model/live/description.ts";
import { Novelty, type NoveltySettings, type Quantized, quantized } from "../../../model/live/novelty.ts";
import { type EmbeddingSidecar, EmbeddingUnavailable } from "../../../remote/sidecars/embedding_sidecar.ts";

/** What to do with a keyframe. `commit` makes it the anchor that later keyframes are compared with. */
export interface NoveltyStep {
  readonly verdict: "ask" | "reuse" | "shadow";
  commit(): void;
}

const ASK_ANYWAY: NoveltyStep = { verdict: "ask", commit: () => {} };

/** One per process, as its ratios cover all sessions. See docs/live/events.md#novelty. */
export class SemanticNovelty {
  readonly #sidecar: EmbeddingSidecar;
  readonly #settings: NoveltySettings;
  readonly #metrics: Metrics;
  #evaluated = 0;
  #reused = 0;
  #compared = 0;
  #changed = 0;

  constructor(options: { sidecar: EmbeddingSidecar; settings: NoveltySettings; metrics: Metrics }) {
    this.#sidecar = options.sidecar;
    this.#settings = options.settings;
    this.#metrics = options.metrics;
    this.#metrics.observeValue(
      "service_pipeline_novelty_reuse_ratio",
      () => ratio(this.#reused, this.#evaluated),
    );
    this.#metrics.observeValue(
      "service_pipeline_novelty_shadow_change_ratio",
      () => ratio(this.#changed, this.#compared),
    );
  }

  /** The novelty state of one new session of the principal. */
  session(principalKey: string): SessionNovelty {
    const novelty = new Novelty(this.#settings);
    return {
      step: (jpeg, ptsMs, signal) => this.#step(novelty, { principalKey, jpeg, ptsMs }, signal),
      compared: (before, after) => this.#compare(before, after),
    };
  }

  async #step(
    novelty: Novelty,
    { principalKey, jpeg, ptsMs }: { principalKey: string; jpeg: Uint8Array; ptsMs: number },
    signal: AbortSignal,
  ): Promise<NoveltyStep> {
    const embedding = await this.#embedding(principalKey, jpeg, signal);
    if (embedding === null) return ASK_ANYWAY;
    const verdict = novelty.decide(embedding, ptsMs);
    const commit = () => novelty.commit(embedding, ptsMs);
    this.#evaluated++;
    this.#metrics.add("service_pipeline_novelty_evaluated_total");
    if (verdict === "forced") this.#metrics.add("service_pipeline_novelty_forced_refresh_total");
    if (verdict === "run" || verdict === "forced") return { verdict: "ask", commit };
    this.#reused++;
    this.#metrics.add("service_pipeline_novelty_reused_total");
    if (verdict === "shadow") this.#metrics.add("service_pipeline_novelty_shadow_sampled_total");
    return { verdict, commit };
  }

  /** Null where the sidecar is unavailable, which it counts itself. */
  async #embedding(
    principalKey: string,
    jpeg: Uint8Array,
    signal: AbortSignal,
  ): Promise<Quantized | null> {
    try {
      return quantized(await this.#sidecar.embed(jpeg, signal, principalKey));
    } catch (error) {
      if (error instanceof EmbeddingUnavailable) return null;
      throw error;
    }
  }

  #compare(before: string, after: string): void {
    this.#compared++;
    this.#metrics.add("service_pipeline_novelty_shadow_completed_total");
    if (!isAnotherState(before, after)) return;
    this.#changed++;
    this.#metrics.add("service_pipeline_novelty_shadow_changed_total");
  }
}

export interface SessionNovelty {
  /** Rejects with the reason of the signal only. */
  step(jpeg: Uint8Array, ptsMs: number, signal: AbortSignal): Promise<NoveltyStep>;
  /** After a shadow call: the description that would have been reused, and the model's new one. */
  compared(before: string, after: string): void;
}

function ratio(part: number, whole: number): number {
  return whole === 0 ? 0 : part / whole;
}
