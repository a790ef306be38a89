/** Describes a session's keyframes or clips, one after the other, and applies new prompts in between. */

import type { Metrics } from "../../../contract/metrics.ts";
import { timer } from "../../../base/wait.ts";
import type { World } from "../../../base/world.ts";
import type { FrameFacts } from "../../../live/messages/messages.ts";
import { type SessionEvent, sessionEvent } from "../../../model/events/event_table.ts";
import { InferenceFailed, type InferenceFailure } from "../../../model/infer/inference.ts";
import { LIMITS } from "../../../contract/limits.ts";
import { Descriptions } from "../../../model/live/description.ts";
import { clipPrompt, keyframePrompt } from "../../../model/live/prompt.ts";
import {
  CLIP_CONFIDENCE,
  type KeyframeEventType,
  keyframeStoredPayload,
  type Observation,
  observationPayload,
} from "../../../model/live/observation_event.ts";
import type { Enrichment } from "../../../model/events/enrichment.ts";
import { type PromptChange, promptTimedOut, sessionIsEnding } from "../../policies/open_sessions.ts";
import type { SessionNovelty } from "./novelty.ts";
import type { LiveQuestions, LiveReply } from "./questions.ts";
import type { LiveJournal, SessionIdentity, Undescribed } from "../journal/journal.ts";

export interface DescriberOptions {
  readonly identity: SessionIdentity;
  readonly journal: LiveJournal;
  readonly questions: LiveQuestions;
  readonly novelty: SessionNovelty | null;
  /** The prompt that the session starts with; null for the built-in one. */
  readonly prompt: string | null;
  /** The schema that the session starts with; null for none. */
  readonly outputSchema: PromptChange["outputSchema"];
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
  #change: Required<PromptChange>;
  /** The last description, not shortened. */
  #lastText = "";
  /** Why no model describes the pictures, as the last event about it says; null where one does. */
  #notice: string | null = null;
  #isBusy = false;
  readonly #loggedFailures = new Set<InferenceFailure>();
  #isClosed = false;

  constructor(options: DescriberOptions) {
    this.#options = options;
    this.#change = { prompt: options.prompt, outputSchema: options.outputSchema };
  }

  /** What the model is asked now; null for the built-in prompt. */
  get prompt(): string | null {
    return this.#change.prompt;
  }

  /**
   * Applies the change between two pictures. Rejects after `timeoutMs`, see `PromptableSession`; the change
   * is then dropped, as its caller has received the error.
   */
  async updatePrompt(change: PromptChange, timeoutMs: number): Promise<void> {
    if (this.#isClosed) throw sessionIsEnding();
    if (!this.#isBusy) {
      this.#change = { ...this.#change, ...change };
      return;
    }
    if (this.#pending.size >= LIMITS.live.commandsQueued) throw promptTimedOut();
    const pending: PendingChange = { change, applied: Promise.withResolvers() };
    this.#pending.add(pending);
    using _timeout = timer(this.#options.world, timeoutMs, () => {
      this.#pending.delete(pending);
      pending.applied.reject(promptTimedOut());
    });
    await pending.applied.promise;
  }

  /** No change is accepted any more. */
  close(): void {
    this.#isClosed = true;
    for (const { applied } of this.#pending) applied.reject(sessionIsEnding());
    this.#pending.clear();
  }

  /**
   * Describes one picture. Why it may get no `vlm` event: see docs/live/events.md#missing-descriptions.
   * Rejects only with the reason of the signal. The answer is what explains the events of the picture: the
   * description that holds for it, also where it is not a new one.
   */
  async keyframe(picture: DescribedPicture, signal: AbortSignal): Promise<Enrichment> {
    let text: string | null = null;
    const reason = await this.#described(picture, signal, async (notServed) => {
      if (notServed !== null) return await this.#writeNotice(picture, notServed);
      const described = await this.#describeKeyframe(picture, signal);
      text = described.text;
      return described.reason;
    });
    return text === null ? { reason: enrichmentReason(reason) } : { description: text };
  }

  /**
   * Describes a clip, like `keyframe`, except that a failure of the model writes a `clip_vlm` event with the
   * error.
   */
  async clip(clip: LiveClip, signal: AbortSignal): Promise<void> {
    const picture = lastOf(clip);
    await this.#described(
      picture,
      signal,
      (notServed) =>
        notServed === null ? this.#describeClip(clip, signal) : this.#writeNotice(picture, notServed),
    );
  }

  /**
   * `describe` says why there is no new description; null where there is one. So does the answer. It is told
   * why no backend serves the model; null where one does.
   */
  async #described(
    picture: DescribedPicture,
    signal: AbortSignal,
    describe: (notServed: string | null) => Promise<Undescribed | null>,
  ): Promise<Undescribed | null> {
    const { questions, journal } = this.#options;
    if (!questions.hasTokens) {
      journal.dropped("cap");
      await this.keep(picture, "No model was asked: the cap of output tokens was used up.");
      return "cap";
    }
    try {
      return await this.#whileBusy(async () => {
        const reason = await describe(await questions.notServed(signal));
        if (reason !== null) journal.undescribed(reason);
        return reason;
      });
    } catch (error) {
      if (signal.aborted) {
        journal.undescribed("session_ended");
        await this.keep(picture, "The model gave no answer: the session ended first.");
      }
      throw error;
    }
  }

  async #whileBusy<Result>(work: () => Promise<Result>): Promise<Result> {
    this.#isBusy = true;
    try {
      return await work();
    } finally {
      this.#isBusy = false;
      for (const { change, applied } of this.#pending) {
        this.#change = { ...this.#change, ...change };
        applied.resolve();
      }
      this.#pending.clear();
    }
  }

  async #describeKeyframe(picture: DescribedPicture, signal: AbortSignal): Promise<Described> {
    const { novelty, metrics } = this.#options;
    const { frame, jpeg } = picture;
    const step = await novelty?.step(jpeg, frame.ptsMs, signal);
    if (step?.verdict === "reuse") return { reason: "reused", text: this.#lastText };
    metrics.add("service_pipeline_keyframes_total");
    const reply = await this.#askAbout(picture, signal);
    if (reply instanceof InferenceFailed) {
      const reason = await this.#noticed(picture, reply) ?? await this.#keepUnanswered(picture, reply);
      return { reason, text: null };
    }
    const { text } = reply;
    if (step?.verdict === "shadow") {
      novelty!.compared(this.#lastText, text);
      return { reason: "reused", text };
    }
    step?.commit();
    const { kind } = reply.isTiered ? { kind: "vlm_tiered" } as const : { kind: "vlm" } as const;
    return { reason: await this.#write({ ...picture, kind, text, confidence: frame.confidence }), text };
  }

  /** The failure where the model gives no answer. */
  async #askAbout(
    { frame, jpeg, trigger }: DescribedPicture,
    signal: AbortSignal,
  ): Promise<LiveReply | InferenceFailed> {
    const { questions } = this.#options;
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
      this.#logFailure(error);
      return error;
    }
  }

  async #describeClip(clip: LiveClip, signal: AbortSignal): Promise<Undescribed | null> {
    const { frame, startPtsMs, jpegs } = clip;
    const { questions, journal, identity: { sessionId } } = this.#options;
    const { prompt, outputSchema } = this.#change;
    const { ptsMs } = frame;
    try {
      const reply = await questions.ask({
        kind: "clip",
        prompt: clipPrompt({ prompt, frames: jpegs.length, startPtsMs, endPtsMs: ptsMs }),
        outputSchema,
        images: jpegs,
      }, signal);
      const { kind } = reply.isTiered ? { kind: "clip_vlm_tiered" } as const : { kind: "clip_vlm" } as const;
      const last = { ...lastOf(clip), eventType: kind, trigger: kind } as const;
      return await this.#write({ ...last, kind, text: reply.text, confidence: CLIP_CONFIDENCE });
    } catch (error) {
      if (!(error instanceof InferenceFailed)) throw error;
      signal.throwIfAborted();
      this.#logFailure(error);
      const noticed = await this.#noticed(lastOf(clip), error);
      if (noticed !== null) return noticed;
      const description = `clip_vlm_error: ${error.failure}`;
      const observation = { sessionId, frame, confidence: CLIP_CONFIDENCE, description };
      journal.append([sessionEvent("clip_vlm", observationPayload(observation))]);
      return await this.#keepUnanswered(lastOf(clip), error);
    }
  }

  /** Writes the description, the state transition and the stored picture in this order, in one commit. */
  async #write(
    described: DescribedPicture & { kind: DescriptionKind; text: string; confidence: number },
  ): Promise<Undescribed | null> {
    const { journal, identity: { sessionId } } = this.#options;
    const { frame, kind, text, confidence, trigger } = described;
    const observation = { sessionId, frame, confidence, description: text };
    const stored = await this.#stored(described, observation);
    const { isRepeated, transition } = this.#descriptions.next(frame.ptsMs, text, { trigger, confidence });
    this.#lastText = text;
    this.#notice = null;
    const events: SessionEvent[] = [];
    if (!isRepeated) events.push(sessionEvent(kind, observationPayload(observation)));
    if (transition !== null) {
      events.push(
        sessionEvent("state_transition", observationPayload({ ...observation, description: transition })),
      );
    }
    const isWritten = journal.append([...events, ...stored]).length > 0;
    if (isRepeated) return "repeated";
    return isWritten ? null : journal.isOpen ? "not_stored" : "session_ended";
  }

  /** Writes a notice of a model that its server does not know; null for another failure. */
  async #noticed(picture: DescribedPicture, { told }: InferenceFailed): Promise<Undescribed | null> {
    return told === null ? null : await this.#writeNotice(picture, told);
  }

  async #keepUnanswered(picture: DescribedPicture, { failure }: InferenceFailed): Promise<Undescribed> {
    await this.keep(picture, `The model gave no answer: ${failure.replaceAll("_", " ")}.`);
    return "provider_failed";
  }

  /** Stores a picture of which no model says anything, with the reason, as long as the run is open. */
  async keep(picture: DescribedPicture, description: string): Promise<void> {
    const { journal } = this.#options;
    if (!journal.isOpen) return;
    const stored = await this.#stored(picture, this.#undescribed(picture, description));
    if (stored.length > 0) journal.append(stored);
  }

  /**
   * Stores the picture with the reason why no model describes it. The event with the reason is written where
   * it is another one than before. It is no description: no later prompt has it, and no state changes by it.
   */
  async #writeNotice(picture: DescribedPicture, text: string): Promise<Undescribed> {
    const { journal, metrics } = this.#options;
    const isClip = picture.eventType === "clip_vlm";
    metrics.add("service_pipeline_keyframes_total", isClip ? 0 : 1);
    const observation = this.#undescribed(picture, text);
    const stored = await this.#stored(picture, observation);
    const notice = text === this.#notice
      ? []
      : [sessionEvent(isClip ? "clip_vlm" : "vlm", observationPayload(observation))];
    this.#notice = text;
    journal.append([...notice, ...stored]);
    return "not_served";
  }

  /** What an event of a picture says that no model has described. */
  #undescribed({ frame, eventType }: DescribedPicture, description: string): Observation {
    const confidence = eventType === "clip_vlm" ? CLIP_CONFIDENCE : frame.confidence;
    return { sessionId: this.#options.identity.sessionId, frame, confidence, description };
  }

  /** Stores the picture; gives the event of that, or none where the disk or the quota refuses it. */
  async #stored({ jpeg, eventType }: DescribedPicture, observation: Observation): Promise<SessionEvent[]> {
    const { journal, metrics } = this.#options;
    const ref = await journal.store(jpeg);
    if (ref) return [sessionEvent("keyframe_stored", keyframeStoredPayload(observation, eventType, ref))];
    metrics.add("service_pipeline_sink_keyframes_dropped_total");
    return [];
  }

  /** Each kind of failure once, as a session may ask thousands of times. */
  #logFailure({ failure, message }: InferenceFailed): void {
    if (this.#loggedFailures.has(failure)) return;
    this.#loggedFailures.add(failure);
    const { world, journal: { runId: run_id }, identity: { sessionId: session_id } } = this.#options;
    world.log.warn("a picture of a live session was not described", {
      run_id,
      session_id,
      failure,
      message,
    });
  }
}

/**
 * Why there is no new description, null where there is one; and the text that holds for the picture, null for
 * none.
 */
interface Described {
  readonly reason: Undescribed | null;
  readonly text: string | null;
}

/** Why a picture has no description at all. */
function enrichmentReason(reason: Undescribed | null): "token_cap" | "model_failed" {
  return reason === "cap" ? "token_cap" : "model_failed";
}

/** What stands for a clip in the timeline. */
function lastOf({ frame, jpegs }: LiveClip): DescribedPicture {
  return { frame, jpeg: jpegs.at(-1)!, eventType: "clip_vlm", trigger: "clip_vlm" };
}

type DescriptionKind = "vlm" | "vlm_tiered" | "clip_vlm" | "clip_vlm_tiered";
