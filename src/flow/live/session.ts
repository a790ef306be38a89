/** One generation of a live session: everything that belongs to it, from its first report to its terminal record. */

import { NEVER_ABORTED, OutOfTime, within } from "../../base/wait.ts";
import type { Metrics } from "../../base/metrics.ts";
import { TaskGroup } from "../../base/tasks.ts";
import type { World } from "../../base/world.ts";
import type {
  FrameFacts,
  LiveCounts,
  LivePicture,
  OpusWindow,
  SessionReport,
  SessionSettings,
} from "../../live/messages.ts";
import type { LiveWorkers, Opening, SessionPort } from "../../live/worker_pool.ts";
import { event } from "../../model/events/event_table.ts";
import { LIMITS } from "../../model/limits.ts";
import {
  keyframeEventType,
  LOOP_CONFIDENCE,
  LOOP_DESCRIPTION,
  observationPayload,
} from "../../model/live/observation_event.ts";
import { triggerActions } from "../../model/triggers/trigger_event.ts";
import type { LiveAudio } from "./audio.ts";
import type { DescribedPicture, Describer, LiveClip } from "./describer.ts";
import type { EvidenceWriter } from "./evidence.ts";
import type { PulledSession, Reconnector } from "./reconnect.ts";
import { LiveQueue } from "./queue.ts";
import { LiveRefused } from "./refused.ts";
import { NotAcknowledged, type PromptableSession, type PromptChange } from "./session_commands.ts";
import type { LiveJournal, SessionIdentity, TerminalRecord } from "./journal.ts";

/** Contract 11.4: clips that wait for the model while it looks at another one. */
const CLIPS_QUEUED = 1;
/** How long what was reported before the end may still be worked on. */
const DRAIN_MS = 5_000;
/** How long the Worker may take to let go of what it has. */
const JOIN_MS = 10_000;
/** How long the Worker may take to answer an offer, or to restart ICE. */
const ANSWER_MS = 10_000;

export interface LiveSessionOptions {
  readonly identity: SessionIdentity;
  readonly settings: SessionSettings;
  readonly opening: Opening;
  readonly workers: LiveWorkers;
  readonly timeline: LiveJournal;
  readonly describer: Describer;
  readonly evidence: EvidenceWriter;
  /** Null when nobody listens. */
  readonly audio: LiveAudio | null;
  /** The right to run; given back when the Worker has let go of everything. */
  readonly reservation: Disposable;
  readonly metrics: Metrics;
  readonly world: World;
  /** Aborts when the service closes. */
  readonly closing: AbortSignal;
  /** The session is over, and its Worker holds nothing of it. */
  readonly onOver: () => void;
}

/**
 * Why a session ends. The higher one counts where several come together: a run that was stopped or deleted has its
 * terminal event already; a caller who ends the session completes the run; anything else fails it. Contract 11.6.
 */
export type Ending =
  | { readonly rank: 3; readonly why: "run_ended" }
  | { readonly rank: 2; readonly why: "completed"; readonly reason: string }
  | { readonly rank: 1; readonly why: "failed"; readonly reason: string };

/**
 * ```
 *   Worker ─┬─ zone, trigger ─▶ [8, drop] ─▶ EvidenceWriter ─▶ its event, then on to the keyframes
 *           ├─ keyframe ──────▶ [32, drop] ─▶ Describer ─▶ vlm, state_transition, keyframe_stored
 *           ├─ clip ──────────▶ [1, drop] ──▶ Describer ─▶ clip_vlm, keyframe_stored
 *           ├─ audio window ──▶ [2, drop] ──▶ LiveAudio ─▶ semantic_chunk_inferred, multimodal_moment
 *           └─ loop, restart, gap, counts ──▶ timeline and metrics, at once
 *
 *   end(why) ─▶ the Worker closes ─▶ what it reported is finished ─▶ terminal record ─▶ reservation given back
 * ```
 */
export class LiveSession implements PromptableSession {
  readonly #options: LiveSessionOptions;
  readonly #stages = new TaskGroup();
  /** Ends what is under way; the queues' own end lets it finish. */
  readonly #aborting = new AbortController();
  /** Ends the keeping of a pulled source, which goes on otherwise. */
  readonly #leaving = new AbortController();
  readonly #evidence = new LiveQueue<LivePicture>(LIMITS.live.evidenceQueued);
  readonly #keyframes = new LiveQueue<QueuedKeyframe>(LIMITS.live.decodedFramesQueuedKeyframe);
  readonly #clips = new LiveQueue<LiveClip>(CLIPS_QUEUED);
  readonly #audio = new LiveQueue<OpusWindow>(LIMITS.live.audioWindowsQueued);
  readonly #answer = Promise.withResolvers<string>();
  readonly #iceRestarts = new Map<number, PromiseWithResolvers<string | null>>();
  readonly #over = Promise.withResolvers<void>();
  #port: SessionPort | null = null;
  #pull: Reconnector | null = null;
  #ending: Ending | null = null;
  #isOnTimeline = false;
  #isFaulty = false;
  #isDetached = false;
  #iceRestartCount = 0;

  constructor(options: LiveSessionOptions) {
    this.#options = options;
    this.#answer.promise.catch(() => {}); // whoever waits for it sees it
  }

  get identity(): SessionIdentity {
    return this.#options.identity;
  }

  get sessionId(): string {
    return this.identity.sessionId;
  }

  get generation(): number {
    return this.identity.generation;
  }

  get isEnding(): boolean {
    return this.#ending !== null;
  }

  /** The session is over, but its Worker did not let go of it in time. */
  get isDetached(): boolean {
    return this.#isDetached;
  }

  /** Hands the session to a Worker. */
  open(): void {
    const { metrics, workers, settings, opening } = this.#options;
    metrics.add("service_pipeline_generations_started_total");
    this.#port = workers.open(settings, opening, (report) => this.#onReport(report));
  }

  /** The answer to its offer. Rejects with LiveRefused; then the session is over. */
  async answer(signal: AbortSignal): Promise<string> {
    try {
      return await within(this.#options.world, ANSWER_MS, this.#answer.promise, signal);
    } catch (error) {
      await this.end({ rank: 3, why: "run_ended" });
      throw error instanceof LiveRefused ? error : new LiveRefused(503, "no answer was found in time");
    }
  }

  /** Works on what is reported from here on: the run is on the timeline. `pull` belongs to the session now. */
  run(pull: Reconnector | null): void {
    this.#isOnTimeline = true;
    this.#pull = pull;
    this.#options.metrics.add("service_pipeline_sessions_created_total");
    this.#stages.start(() => this.#writeEvidence());
    this.#stages.start(() => this.#describeKeyframes());
    this.#stages.start(() => this.#describeClips());
    this.#stages.start(() => this.#hear());
    if (pull) this.#stages.start(() => this.#keep(pull));
    const { signal } = this.#stages;
    signal.addEventListener("abort", () => this.#onBug(signal.reason), { once: true });
  }

  candidate(fragment: string): void {
    this.#port?.send({ kind: "candidate", fragment });
  }

  /** The fragment that answers; null when the session cannot restart. */
  async restartIce(fragment: string, signal: AbortSignal): Promise<string | null> {
    const orderId = ++this.#iceRestartCount;
    const answer = Promise.withResolvers<string | null>();
    this.#iceRestarts.set(orderId, answer);
    try {
      this.#port?.send({ kind: "restart_ice", fragment, orderId });
      return await within(
        this.#options.world,
        ANSWER_MS,
        answer.promise,
        AbortSignal.any([signal, this.#aborting.signal]),
      );
    } catch {
      return null;
    } finally {
      this.#iceRestarts.delete(orderId);
    }
  }

  async updatePrompt(change: PromptChange, timeoutMs: number): Promise<void> {
    if (this.#ending) throw new NotAcknowledged("closed");
    await this.#options.describer.updatePrompt(change, timeoutMs);
  }

  /** Ends it, once; resolves when it is over. A weightier reason counts as long as the record is not written. */
  end(ending: Ending): Promise<void> {
    const isFirst = this.#ending === null;
    if (isFirst || ending.rank > this.#ending!.rank) this.#ending = ending;
    if (ending.why === "run_ended") this.#aborting.abort();
    if (isFirst) void this.#tearDown();
    return this.#over.promise;
  }

  /** The run was stopped or deleted, or the service closes and has ended all work. */
  endWithRun(): Promise<void> {
    return this.#options.timeline.isOpen ? this.abandon() : this.end({ rank: 3, why: "run_ended" });
  }

  /** The service closes, so nobody waits for what is under way. */
  abandon(): Promise<void> {
    const over = this.end({ rank: 1, why: "failed", reason: "service_stopped" });
    this.#aborting.abort();
    return over;
  }

  /** Called by the Worker's messages, so what is thrown here would end every session. */
  #onReport(report: SessionReport): void {
    try {
      this.#take(report);
    } catch (error) {
      this.#onBug(error);
    }
  }

  #take(report: SessionReport): void {
    switch (report.kind) {
      case "answered":
        return this.#answer.resolve(report.answer);
      case "refused":
        return this.#answer.reject(new LiveRefused(report.status, report.message));
      case "connected":
        return;
      case "picture":
        return this.#onPicture(report.picture);
      case "clip":
        return this.#onClip(report);
      case "audio_window":
        return this.#onAudioWindow(report.window);
      case "loop_detected":
        return this.#onLoop(report.frame);
      case "decoder_restarted":
        return this.#onDecoderRestarted(report);
      case "gap":
        return this.#pull?.lost(this.#pulled(), report);
      case "resumed":
        return this.#pull?.resumed(this.#pulled());
      case "counts":
        return addCounts(this.#options.metrics, report.counts);
      case "ice_restarted":
        return this.#iceRestarts.get(report.orderId)?.resolve(report.fragment);
      case "ended":
        return this.#onEnded(report);
      case "closed":
        this.#answer.reject(new LiveRefused(503, "the session could not be started"));
        return void this.end({ rank: 1, why: "failed", reason: "peer_state_channel_closed" });
    }
  }

  #onPicture(picture: LivePicture): void {
    const { metrics } = this.#options;
    if (!picture.zone && !picture.trigger) return this.#offerKeyframe(picture);
    if (this.#evidence.offer(picture)) return;
    if (picture.zone) metrics.add("service_pipeline_restricted_zone_queue_dropped_total");
    if (picture.trigger) metrics.add("service_pipeline_trigger_queue_dropped_total");
    this.#acknowledge({ evidence: 1 });
    if (picture.isKeyframe) this.#offerKeyframe({ ...picture, zone: null, trigger: null });
  }

  #offerKeyframe(picture: LivePicture): void {
    const { frame, jpeg, isKeyframe } = picture;
    const why = reasonOf(picture, this.#options.settings);
    if (this.#keyframes.offer({ frame, jpeg, ...why, isCredited: isKeyframe })) return;
    this.#options.metrics.add("service_pipeline_keyframes_dropped_total");
    if (isKeyframe) this.#acknowledge({ pictures: 1 });
  }

  #onClip(clip: LiveClip): void {
    if (this.#clips.offer(clip)) return;
    this.#options.metrics.add("service_pipeline_keyframes_dropped_total");
    this.#acknowledge({ pictures: 1 });
  }

  #onAudioWindow(window: OpusWindow): void {
    if (this.#options.audio && this.#audio.offer(window)) return;
    this.#options.metrics.add("service_pipeline_webrtc_audio_queue_dropped_total", window.units.length);
    this.#acknowledge({ audioWindows: 1 });
  }

  #onLoop(frame: FrameFacts): void {
    const { timeline, metrics, identity: { runId, sessionId } } = this.#options;
    const observation = { sessionId, frame, confidence: LOOP_CONFIDENCE, description: LOOP_DESCRIPTION };
    metrics.add("service_pipeline_loop_detected_total");
    timeline.append([event("loop_detected", runId, observationPayload(observation))]);
  }

  #onDecoderRestarted({ reason, ptsMs, restarts }: ReportOf<"decoder_restarted">): void {
    const { timeline, identity: { runId, sessionId, generation } } = this.#options;
    this.#countFault("decode", "unexpected_exit");
    timeline.append([
      event("decoder_restarted", runId, {
        session_id: sessionId,
        reason,
        pts_ms: ptsMs,
        restarts,
        pipeline_generation: generation,
      }),
    ]);
  }

  /** Contract 11.6: a fault of ours closes the peer, so that is what the run is told. */
  #onEnded({ cause, message }: ReportOf<"ended">): void {
    this.#options.world.log.info("live session ended", { session_id: this.sessionId, cause, message });
    if (cause === "worker_fault") this.#countFault("decode", "unexpected_exit");
    void this.end(
      cause === "source_ended"
        ? { rank: 2, why: "completed", reason: cause }
        : { rank: 1, why: "failed", reason: cause === "worker_fault" ? PEER_CLOSED : cause },
    );
  }

  /** Something threw what it should not have: a bug, which ends this session and no other. */
  #onBug(error: unknown): void {
    this.#options.world.log.error("live stage failed", {
      session_id: this.sessionId,
      error: error instanceof Error ? error.stack ?? error.message : String(error),
    });
    this.#countFault("vlm", "panic");
    void this.end({ rank: 1, why: "failed", reason: PEER_CLOSED });
  }

  /** What is asserted is written first; describing it comes after, and may be left out. */
  async #writeEvidence(): Promise<void> {
    for await (const picture of this.#evidence.items(this.#aborting.signal)) {
      await this.#options.evidence.write(picture);
      this.#acknowledge({ evidence: 1 });
      this.#offerKeyframe(picture);
    }
  }

  async #describeKeyframes(): Promise<void> {
    const { signal } = this.#aborting;
    for await (const picture of this.#keyframes.items(signal)) {
      await orAborted(this.#options.describer.keyframe(picture, signal), signal);
      if (picture.isCredited) this.#acknowledge({ pictures: 1 });
    }
  }

  async #describeClips(): Promise<void> {
    const { signal } = this.#aborting;
    for await (const clip of this.#clips.items(signal)) {
      await orAborted(this.#options.describer.clip(clip, signal), signal);
      this.#acknowledge({ pictures: 1 });
    }
  }

  async #hear(): Promise<void> {
    const { signal } = this.#aborting;
    for await (const window of this.#audio.items(signal)) {
      await orAborted(this.#options.audio!.hear(window, signal), signal);
      this.#acknowledge({ audioWindows: 1 });
    }
  }

  async #keep(pull: Reconnector): Promise<void> {
    const signal = AbortSignal.any([this.#leaving.signal, this.#aborting.signal]);
    await orAborted(pull.keep(this.#pulled(), signal), signal);
  }

  #pulled(): PulledSession {
    const { identity, timeline, world, settings } = this.#options;
    return { identity, timeline, world, send: (order) => this.#port?.send({ ...order, settings }) };
  }

  #acknowledge({ pictures = 0, evidence = 0, audioWindows = 0 }): void {
    this.#port?.send({ kind: "acknowledge", pictures, evidence, audioWindows });
  }

  /**
   * The Worker closes first, as it may report the rest of what it has; then the stages end; then the record is written,
   * with the weightiest reason that came until then.
   */
  async #tearDown(): Promise<void> {
    const { describer, metrics, timeline, world } = this.#options;
    try {
      describer.close();
      this.#dropWaiting();
      if (this.#isOnTimeline && !timeline.isOpen) this.#aborting.abort();
      await this.#closeWorker();
      await this.#finishStages();
      const record = this.#isOnTimeline ? recordOf(this.#ending!) : null;
      if (record) await timeline.finish(record, this.#options.closing);
    } catch (error) {
      this.#isFaulty = true;
      world.log.error("live session did not end well", { session_id: this.sessionId, error: String(error) });
    } finally {
      const outcome = this.#isDetached ? "forced" : this.#isFaulty ? "faulted" : "clean";
      metrics.add("service_pipeline_generation_shutdown_total", { outcome });
      if (this.#isOnTimeline) metrics.add("service_pipeline_sessions_removed_total");
      if (!this.#isDetached) this.#letGo();
      this.#over.resolve();
    }
  }

  /** Pictures that nobody has begun to look at are left out: who ends a session does not wait for them. */
  #dropWaiting(): void {
    const dropped = this.#keyframes.clear() + this.#clips.clear();
    this.#options.metrics.add("service_pipeline_keyframes_dropped_total", dropped);
  }

  async #closeWorker(): Promise<void> {
    const closed = this.#port?.close() ?? Promise.resolve();
    try {
      await within(this.#options.world, JOIN_MS, closed, NEVER_ABORTED);
    } catch (error) {
      if (!(error instanceof OutOfTime)) throw error;
      this.#isDetached = true;
      this.#countFault("decode", "join_deadline");
      this.#options.metrics.add("service_pipeline_detached_workers_total");
      closed.then(() => {
        this.#isDetached = false;
        this.#letGo();
      });
    }
  }

  async #finishStages(): Promise<void> {
    this.#evidence.end();
    this.#audio.end();
    this.#dropWaiting();
    this.#keyframes.end();
    this.#clips.end();
    this.#leaving.abort();
    const finished = this.#stages.join().catch(() => {}); // #onBug has told of it
    await within(this.#options.world, DRAIN_MS, finished, this.#aborting.signal).catch(() =>
      this.#aborting.abort()
    );
    await finished;
    this.#aborting.abort();
    await this.#pull?.[Symbol.asyncDispose]();
  }

  #letGo(): void {
    this.#options.reservation[Symbol.dispose]();
    this.#options.onOver();
  }

  #countFault(stage: "decode" | "vlm", reason: "unexpected_exit" | "panic" | "join_deadline"): void {
    const { metrics, world } = this.#options;
    this.#isFaulty = true;
    metrics.add("service_pipeline_worker_faults_total", { stage, reason });
    metrics.set("service_pipeline_last_fault_timestamp_seconds", Math.floor(world.now() / 1000));
  }
}

type QueuedKeyframe = DescribedPicture & {
  /** Whether the Worker waits for it to be acknowledged. */
  readonly isCredited: boolean;
};

type ReportOf<Kind extends SessionReport["kind"]> = Extract<SessionReport, { kind: Kind }>;

const PEER_CLOSED = "peer_closed";
const ZONE_ACTIVITY = "restricted_zone_activity";

function reasonOf(
  { zone, trigger, frame }: LivePicture,
  settings: SessionSettings,
): Pick<DescribedPicture, "eventType" | "trigger"> {
  if (zone) return { eventType: ZONE_ACTIVITY, trigger: ZONE_ACTIVITY };
  if (trigger && settings.trigger) {
    const { eventType } = triggerActions(settings.trigger);
    return { eventType: `trigger.${eventType}`, trigger: eventType };
  }
  return { eventType: keyframeEventType(frame.gateReason), trigger: frame.gateReason };
}

function recordOf(ending: Ending): TerminalRecord | null {
  if (ending.why === "run_ended") return null;
  return { kind: ending.why === "completed" ? "run_completed" : "run_failed", reason: ending.reason };
}

/** What `work` throws after the signal has aborted is the way it ended. */
async function orAborted(work: Promise<void>, signal: AbortSignal): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}

function addCounts(metrics: Metrics, counts: LiveCounts): void {
  metrics.add("service_pipeline_rtp_frames_received_total", counts.rtpFramesReceived);
  metrics.add("service_pipeline_frames_decoded_total", counts.framesDecoded);
  metrics.add("service_pipeline_frames_dropped_total", counts.framesDropped);
  metrics.add("service_pipeline_gate_frames_analyzed_total", counts.gateFramesAnalyzed);
  metrics.add("service_pipeline_gate_keyframes_selected_total", counts.gateKeyframesSelected);
  metrics.add("service_pipeline_keyframes_dropped_total", counts.keyframesDropped);
  metrics.add(
    "service_pipeline_decode_pending_sanity_violations_total",
    counts.decodePendingSanityViolations,
  );
  metrics.add("service_pipeline_restricted_zone_queue_dropped_total", counts.zoneQueueDropped);
  metrics.add("service_pipeline_trigger_queue_dropped_total", counts.triggerQueueDropped);
  metrics.add("service_pipeline_trigger_missing_signal_total", counts.triggerMissingSignal);
  metrics.add("service_pipeline_webrtc_audio_tracks_total", counts.audioTracks);
  metrics.add("service_pipeline_webrtc_audio_access_units_total", counts.audioAccessUnits);
  metrics.add("service_pipeline_webrtc_audio_bytes_total", counts.audioBytes);
  metrics.add("service_pipeline_webrtc_audio_duration_ms_total", counts.audioDurationMs);
  metrics.add("service_pipeline_webrtc_audio_receive_errors_total", counts.audioReceiveErrors);
  metrics.add("service_pipeline_webrtc_audio_queue_dropped_total", counts.audioQueueDropped);
  for (const us of counts.decodeLatenciesUs) metrics.observe("service_pipeline_decode_latency_us", us);
  for (const us of counts.gateLatenciesUs) metrics.observe("service_pipeline_gate_latency_us", us);
}
