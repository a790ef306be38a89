/** Describes a session's keyframes or clips, one after the other, and takes new prompts in between. Contract 11.4. */

import type { Metrics } from "../../base/metrics.ts";
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
import { NotAcknowledged, type PromptChange } from "./session_commands.ts";
import type { LiveJournal, SessionIdentity } from "./journal.ts";

export interface DescriberOptions {
  readonly identity: SessionIdentity;
  readonly timeline: LiveJournal;
  /** Null without any model: every picture has the same description then. */
  readonly questions: LiveQuestions | null;
  readonly novelty: SessionNovelty | null;
  /** The prompt that the session begins with; null for the built-in one. */
  readonly prompt: string | null;
  readonly metrics: Metrics;
  readonly world: World;
}

/** A picture to describe, and why. */
export interface DescribedPicture {
  readonly frame: FrameFacts;
  readonly jpeg: Uint8Array;
  readonly eventType: KeyframeEventType;
  /** What the model is told of why. */
  readonly trigger: string;
}

export interface LiveClip {
  readonly frame: FrameFacts;
  readonly startPtsMs: number;
  readonly jpegs: readonly Uint8Array[];
}

interface PendingChange {
  readonly change: PromptChange;
  readonly answered: PromiseWithResolvers<void>;
}

export class Describer {
  readonly #options: DescriberOptions;
  readonly #descriptions = new Descriptions();
  readonly #pending = new Set<PendingChange>();
  #change: PromptChange;
  /** What was said last, whole. */
  #lastText = "";
  #isBusy = false;
  #isClosed = false;

  constructor(options: DescriberOptions) {
    this.#options = options;
    this.#change = { prompt: options.prompt, outputSchema: null };
  }

  /**
   * Takes the change over between two pictures. One that waits longer than `timeoutMs` is dropped, as its caller was told
   * that it failed. Rejects with {@link NotAcknowledged}.
   */
  async updatePrompt(change: PromptChange, timeoutMs: number): Promise<void> {
    if (this.#isClosed) throw new NotAcknowledged("closed");
    if (!this.#isBusy) {
      this.#change = change;
      return;
    }
    if (this.#pending.size >= LIMITS.live.commandsQueued) throw new NotAcknowledged("timeout");
    const pending: PendingChange = { change, answered: Promise.withResolvers() };
    this.#pending.add(pending);
    const waiting = new AbortController();
    this.#options.world.sleep(timeoutMs, waiting.signal).then(
      () => pending.answered.reject(new NotAcknowledged("timeout")),
      () => {},
    );
    try {
      await pending.answered.promise;
    } finally {
      waiting.abort();
      this.#pending.delete(pending);
    }
  }

  /** No change is taken any more. */
  close(): void {
    this.#isClosed = true;
    for (const { answered } of this.#pending) answered.reject(new NotAcknowledged("closed"));
  }

  /** Rejects with the reason of the signal only: a picture that cannot be described is left out. */
  async keyframe(picture: DescribedPicture, signal: AbortSignal): Promise<void> {
    const { metrics } = this.#options;
    if (this.#options.questions && !this.#options.questions.hasTokens) {
      metrics.add("service_pipeline_keyframes_dropped_total");
      return;
    }
    await this.#whileBusy(() => this.#describeKeyframe(picture, signal));
  }

  /** The same for a clip; but one whose model fails says so in its event. */
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
      for (const { change, answered } of this.#pending) {
        this.#change = change;
        answered.resolve();
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
    await this.#tell({ ...picture, kind, text: reply.text, confidence: frame.confidence });
  }

  /** Null where nobody answers. */
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
    const { questions, timeline, identity: { runId, sessionId } } = this.#options;
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
      await this.#tell({ ...last, kind, text: reply.text, confidence: CLIP_CONFIDENCE });
    } catch (error) {
      if (!(error instanceof InferenceFailed)) throw error;
      signal.throwIfAborted();
      const description = `clip_vlm_error: ${error.failure}`;
      const observation = { sessionId, frame, confidence: CLIP_CONFIDENCE, description };
      timeline.append([event("clip_vlm", runId, observationPayload(observation))]);
    }
  }

  /** The description, the change of state and the stored picture, in this order and at once. */
  async #tell(
    told: DescribedPicture & { kind: DescriptionKind; text: string; confidence: number },
  ): Promise<void> {
    const { timeline, metrics, identity: { runId, sessionId } } = this.#options;
    const { frame, kind, text, confidence, trigger, eventType } = told;
    const ref = await timeline.store(told.jpeg);
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
    timeline.append(events);
  }
}

type DescriptionKind = "vlm" | "vlm_tiered" | "clip_vlm" | "clip_vlm_tiered";

const NO_PROVIDER: LiveReply = { text: NO_PROVIDER_DESCRIPTION, isTiered: false };
