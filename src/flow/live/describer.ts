/** Describes a session's keyframes or clips, one after the other, and applies new prompts in between. */

import type { Metrics } from "../../base/metrics.ts";
import { timer } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { FrameFacts } from "../../live/messages.ts";
import { event } from "../../model/events/event_table.ts";
import { InferenceFailed } from "../../model/infer/inference.ts";
import { LIMITS } from "../../model/limits.ts";
import { Descriptions } from "../../model/live/description.ts";
import { clipPrompt, keyframePrompt, NO_PROVIDER_DESCRIPTION } from "../../model/live/prompt.ts";
import {
  CLIP_CONFIDENCE,
  type KeyframeEventType,
  keyframeStoredPayload,
  observationPayload,
} from "../../model/live/observation_event.ts";
import type { NewEvent } from "../../model/runs/run.ts";
import type { SessionNovelty } from "./novelty.ts";
import type { LiveQuestions, LiveReply } from "./questions.ts";
import type { LiveJournal, SessionIdentity } from "./journal.ts";

export interface PromptChange {
  /** Null goes back to the built-in prompt. */
  readonly prompt: string | null;
  readonly outputSchema: Readonly<Record<string, unknown>> | null;
}

/** Why a session did not apply a change of its prompt. */
export class NotAcknowledged extends Error {
  override readonly name = "NotAcknowledged";

  constructor(readonly why: "timeout" | "closed") {
    super(`The session did not acknowledge the change: ${why}`);
  }
}

export interface DescriberOptions {
  readonly identity: SessionIdentity;
  readonly journal: LiveJournal;
  /** Null where no model is configured: every picture then gets the same fixed description. */
  readonly questions: LiveQuestions | null;
  readonly novelty: SessionNovelty | null;
  /** The prompt that the session starts with; null for the built-in one. */
  readonly prompt: string | null;
  readonly metrics: Metrics;
  readonly world: World;
}

/** A picture to describe, and the reason. */
export interface DescribedPicture {
  readonly frame: FrameFacts;
  readonly jpeg: Uint8Array;
  readonly eventType: KeyframeEventType;
  /** The reason as the prompt names it. */
  readonly trigger: string;
}

export interface LiveClip {
  readonly frame: FrameFacts;
  readonly startPtsMs: number;
  readonly jpegs: readonly Uint8Array[];
}

/** A change that waits for the end of the description under way. */
interface PendingChange {
  readonly change: PromptChange;
  readonly applied: PromiseWithResolvers<void>;
}

export class Describer {
  readonly #options: DescriberOptions;
  readonly #descriptions = new Descriptions();
  readonly #pending = new Set<PendingChange>();
  #change: PromptChange;
  /** The last description, not shortened. */
  #lastText = "";
  #isBusy = false;
  #isClosed = false;

  constructor(options: DescriberOptions) {
    this.#options = options;
    this.#change = { prompt: options.prompt, outputSchema: null };
  }

  /**
   * Applies the change between two pictures. Rejects with {@link NotAcknowledged} after `timeoutMs`; the change is then
   * dropped, as its caller has received the error.
   */
  async updatePrompt(change: PromptChange, timeoutMs: number): Promise<void> {
    if (this.#isClosed) throw new NotAcknowledged("closed");
    if (!this.#isBusy) {
      this.#change = change;
      return;
    }
    if (this.#pending.size >= LIMITS.live.commandsQueued) throw new NotAcknowledged("timeout");
    const pending: PendingChange = { change, applied: Promise.withResolvers() };
    this.#pending.add(pending);
    using _timeout = timer(this.#options.world, timeoutMs, () => {
      this.#pending.delete(pending);
      pending.applied.reject(new NotAcknowledged("timeout"));
    });
    await pending.applied.promise;
  }

  /** No change is accepted any more. */
  close(): void {
    this.#isClosed = true;
    for (const { applied } of this.#pending) applied.reject(new NotAcknowledged("closed"));
    this.#pending.clear();
  }

  /**
   * Why a frame has no `vlm` event: every reason, in the order in which they are decided. Each one counts the metric
   * behind it; `dropped` stands for service_pipeline_keyframes_dropped_total.
   *
   * In the Worker (`VideoStage` of src/live):
   *  1. The gate discarded the frame (see docs/frames.md#gate).
   *  2. The session describes clips, not keyframes: it writes `clip_vlm`.
   *  3. The frame belongs to a loop of the source.              dropped, and service_pipeline_loop_detected_total
   *  4. 32 keyframes are not acknowledged yet.                  dropped
   *  5. The frame cannot be made a JPEG, or a too large one.    dropped
   *
   * In the session (`LiveSession#offerKeyframe`):
   *  6. The queue of keyframes is full, or the session ends
   *     before the keyframe is described.                       dropped
   *
   * Here:
   *  7. The session has used up its output tokens.              dropped
   *  8. The novelty sidecar finds nothing new in the picture.   service_pipeline_novelty_reused_total
   *  9. The model failed or was late, or admission refused
   *     the call.                                               service_infer_requests_total{status="error"}
   *     Or the model answered with an empty text.
   * 10. The model was asked only to check a decision of 8.      service_pipeline_novelty_shadow_sampled_total
   * 11. The second model described it: `vlm_tiered` is written instead of `vlm`.
   * 12. The text equals the last description; `keyframe_stored` is still written.
   * 13. The run has ended, or the disk refused the event.       service_timeline_append_failures_total
   *
   * Rejects only with the reason of the signal. See docs/live.md#descriptions.
   */
  async keyframe(picture: DescribedPicture, signal: AbortSignal): Promise<void> {
    const { metrics } = this.#options;
    if (this.#options.questions && !this.#options.questions.hasTokens) {
      metrics.add("service_pipeline_keyframes_dropped_total");
      return;
    }
    await this.#whileBusy(() => this.#describeKeyframe(picture, signal));
  }

  /** The same for a clip, except that a failure of the model writes a `clip_vlm` event with the error. */
  async clip(clip: LiveClip, signal: AbortSignal): Promise<void> {
    const { questions, metrics } = this.#options;
    if (questions && !questions.hasTokens) {
      metrics.add("service_pipeline_keyframes_dropped_total");
      return;
    }
    await this.#whileBusy(() => this.#describeClip(clip, signal));
  }

  async #whileBusy(work: () => Promise<void>): Promise<void> {
    this.#isBusy = true;
    try {
      await work();
    } finally {
      this.#isBusy = false;
      for (const { change, applied } of this.#pending) {
        this.#change = change;
        applied.resolve();
      }
      this.#pending.clear();
    }
  }

  async #describeKeyframe(picture: DescribedPicture, signal: AbortSignal): Promise<void> {
    const { novelty, metrics } = this.#options;
    const { frame, jpeg } = picture;
    const step = await novelty?.step(jpeg, frame.ptsMs, signal);
    if (step?.verdict === "reuse") return;
    metrics.add("service_pipeline_keyframes_total");
    const reply = await this.#askAbout(picture, signal);
    if (reply === null) return;
    if (step?.verdict === "shadow") {
      novelty!.compared(this.#lastText, reply.text);
      return;
    }
    step?.commit();
    const { kind } = reply.isTiered ? { kind: "vlm_tiered" } as const : { kind: "vlm" } as const;
    await this.#write({ ...picture, kind, text: reply.text, confidence: frame.confidence });
  }

  /** Null where the model gives no answer. */
  async #askAbout(
    { frame, jpeg, trigger }: DescribedPicture,
    signal: AbortSignal,
  ): Promise<LiveReply | null> {
    const { questions } = this.#options;
    if (!questions) return NO_PROVIDER;
    const { confidence, novelty, motion, ptsMs } = frame;
    const gate = { trigger, confidence, novelty, motion, ptsMs };
    const { prompt, outputSchema } = this.#change;
    try {
      return await questions.ask({
        kind: "keyframe",
        prompt: keyframePrompt({ prompt, previous: this.#descriptions.previous, gate }),
        outputSchema,
        images: [jpeg],
      }, signal);
    } catch (error) {
      if (!(error instanceof InferenceFailed)) throw error;
      signal.throwIfAborted();
      return null;
    }
  }

  async #describeClip({ frame, startPtsMs, jpegs }: LiveClip, signal: AbortSignal): Promise<void> {
    const { questions, journal, identity: { runId, sessionId } } = this.#options;
    const { prompt, outputSchema } = this.#change;
    const { ptsMs } = frame;
    try {
      const reply = questions
        ? await questions.ask({
          kind: "clip",
          prompt: clipPrompt({ prompt, frames: jpegs.length, startPtsMs, endPtsMs: ptsMs }),
          outputSchema,
          images: jpegs,
        }, signal)
        : NO_PROVIDER;
      const { kind } = reply.isTiered ? { kind: "clip_vlm_tiered" } as const : { kind: "clip_vlm" } as const;
      const last = { frame, jpeg: jpegs.at(-1)!, eventType: kind, trigger: kind } as const;
      await this.#write({ ...last, kind, text: reply.text, confidence: CLIP_CONFIDENCE });
    } catch (error) {
      if (!(error instanceof InferenceFailed)) throw error;
      signal.throwIfAborted();
      const description = `clip_vlm_error: ${error.failure}`;
      const observation = { sessionId, frame, confidence: CLIP_CONFIDENCE, description };
      journal.append([event("clip_vlm", runId, observationPayload(observation))]);
    }
  }

  /** Writes the description, the state transition and the stored picture in this order, in one commit. */
  async #write(
    described: DescribedPicture & { kind: DescriptionKind; text: string; confidence: number },
  ): Promise<void> {
    const { journal, metrics, identity: { runId, sessionId } } = this.#options;
    const { frame, jpeg, kind, text, confidence, trigger, eventType } = described;
    const ref = await journal.store(jpeg);
    if (!ref) metrics.add("service_pipeline_sink_keyframes_dropped_total");
    const observation = { sessionId, frame, confidence, description: text };
    const { isRepeated, transition } = this.#descriptions.next(frame.ptsMs, text, { trigger, confidence });
    this.#lastText = text;
    const events: NewEvent[] = [];
    if (!isRepeated) events.push(event(kind, runId, observationPayload(observation)));
    if (transition !== null) {
      events.push(
        event("state_transition", runId, observationPayload({ ...observation, description: transition })),
      );
    }
    if (ref) {
      events.push(event("keyframe_stored", runId, keyframeStoredPayload(observation, eventType, ref)));
    }
    journal.append(events);
  }
}

type DescriptionKind = "vlm" | "vlm_tiered" | "clip_vlm" | "clip_vlm_tiered";

const NO_PROVIDER: LiveReply = { text: NO_PROVIDER_DESCRIPTION, isTiered: false };
