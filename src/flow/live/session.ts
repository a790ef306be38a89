/** One live session: everything that belongs to it, from the Worker's first report to the terminal event of its run. */

import { hasEndedWithin, OutOfTime, pause, timer, within } from "../../base/wait.ts";
import type { LabelsOf, Metrics } from "../../contract/metrics.ts";
import { TaskGroup } from "../../base/tasks.ts";
import type { World } from "../../base/world.ts";
import type {
  AudioWindow,
  FrameFacts,
  LivePicture,
  MadeSegment,
  RecordedClip,
  SessionReport,
  SessionSettings,
  Snapshot,
} from "../../live/messages.ts";
import type { PictureSize } from "../../media/live/picture_sizes.ts";
import type { Extent } from "../../model/frames/coordinates.ts";
import type { LiveWorkers, Opening, SessionPort } from "../../live/worker_pool.ts";
import { event } from "../../model/events/event_table.ts";
import type { DetectedRange } from "../../model/frames/detected_range.ts";
import type { Labels } from "../../model/frames/label_map.ts";
import { type MarkedRange, rangeMarker, rangeOfRows } from "../../model/frames/row_range.ts";
import { DEFAULT_STREAM_ID } from "../../model/identifiers.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { NewEvent } from "../../model/runs/run.ts";
import {
  keyframeEventType,
  LOOP_CONFIDENCE,
  LOOP_DESCRIPTION,
  observationPayload,
} from "../../model/live/observation_event.ts";
import type { CandidateSender } from "../../model/live/candidate.ts";
import { unitScore } from "../../model/live/live_frame.ts";
import type { RestrictedZone } from "../../model/policies/zone.ts";
import { triggerActions } from "../../model/triggers/trigger_event.ts";
import type { Caller } from "../caller.ts";
import type { SessionActivity } from "./activity.ts";
import type { LiveAudio } from "./audio.ts";
import {
  type DescribedPicture,
  type Describer,
  type LiveClip,
  NotAcknowledged,
  type PromptChange,
} from "./describing/describer.ts";
import type { CauseEvents } from "./evidence/cause_events.ts";
import type { ArmedChange } from "../sources/armed_sources.ts";
import type { EvidenceClips } from "./evidence/clips.ts";
import type { EvidenceWriter } from "./evidence/evidence.ts";
import type { Enricher } from "./describing/enricher.ts";
import type { SegmentRecorder } from "../recordings/segment_recorder.ts";
import type { Ending, LiveJournal, SessionIdentity } from "./journal.ts";
import { LiveQueue } from "./queue.ts";
import type { ReconnectedSession, Reconnector, SourceGap } from "./reconnect.ts";
import { Snapshots } from "./snapshots.ts";
import type { SessionRoom } from "./session_room.ts";
import { LiveView } from "./viewing/live_view.ts";

export type LiveStatus = 400 | 403 | 404 | 409 | 412 | 415 | 422 | 500 | 503 | 507;

/** An expected refusal of a live session. The WHIP routes answer it with the bare status and the message as plain text. */
export class LiveRefused extends Error {
  override readonly name = "LiveRefused";

  constructor(readonly status: LiveStatus, message: string) {
    super(message);
  }
}

/** Keyframes that wait while the model describes another one: the newest. */
const KEYFRAMES_WAITING = 1;
/** Clips that wait while the model describes another one. */
const CLIPS_QUEUED = 1;
/** How long the stages may go on with what was reported before the end. */
const DRAIN_MS = 5_000;
/** How long the Worker may take to release everything it holds for the session. */
const JOIN_MS = 10_000;
/** How long a publisher that closed its connection may take to say with a DELETE that this was the end. */
const GOODBYE_GRACE_MS = 2_000;
/** So many restarts of the decoder within so long are a fault; one that happens now and then is not. */
const FAULTY_RESTARTS = 3;
const FAULTY_RESTARTS_MS = 60_000;
/** How long memory for larger pictures is kept, for those that change their size again and again. */
const ROOM_KEPT_MS = 60_000;
/** How long the Worker may take to answer an offer, or to restart ICE. */
const ANSWER_MS = 10_000;

export interface LiveSessionOptions {
  readonly identity: SessionIdentity;
  readonly settings: SessionSettings;
  /** Whether the zone of `settings` is that of a policy revision. */
  readonly hasPolicyZone: boolean;
  readonly opening: Opening;
  readonly workers: LiveWorkers;
  readonly journal: LiveJournal;
  readonly activity: SessionActivity;
  readonly describer: Describer;
  readonly evidence: EvidenceWriter;
  readonly causes: CauseEvents;
  /** Null where the session has no evidence clips. */
  readonly recordings: EvidenceClips | null;
  /** Null where the source is not recorded all day. */
  readonly recorder: SegmentRecorder | null;
  /** Null where no event of the session is explained by a second one. */
  readonly enricher: Enricher | null;
  /** Renames the types of markers for the principal. */
  readonly labels: Labels;
  /** Null where the session has no audio analysis. */
  readonly audio: LiveAudio | null;
  /** The reserved memory, threads and session slot. The session owns it; `#release` frees it. */
  readonly room: SessionRoom;
  readonly metrics: Metrics;
  readonly world: World;
  /** Aborts when the service closes. */
  readonly closing: AbortSignal;
  /** Called when the session has ended and its Worker has released everything. */
  readonly onReleased: () => void;
}

/**
 * ```
 *   Worker ─┬─ zone, trigger ─▶ [8, drop] ─▶ EvidenceWriter ─▶ its event, then on to the keyframes
 *           ├─ keyframe ──────▶ [1, newest] ▶ Describer ─▶ vlm, state_transition, keyframe_stored
 *           │                     │              └─▶ Enricher ─▶ event_enriched, once for each event that announced it
 *           │                     └─ older ─▶ keyframe_stored
 *           ├─ clip ──────────▶ [1, drop] ──▶ Describer ─▶ clip_vlm, keyframe_stored
 *           ├─ audio window ──▶ [2, drop] ──▶ LiveAudio ─▶ semantic_chunk_inferred, multimodal_moment
 *           ├─ recorded ──────▶ [2] ────────▶ EvidenceClips ─▶ clip_stored
 *           ├─ segment ───────▶ [2] ────────▶ SegmentRecorder ─▶ a file of the source, and no event
 *           ├─ view ──────────▶ LiveView ──[64 fragments, 4 MiB]──▶ each viewer
 *           └─ loop, range, restart, gap, counts ──▶ timeline and metrics, at once
 *
 *   end(why) ─▶ the Worker closes ─▶ the stages finish ─▶ terminal event ─▶ the reservation is freed
 * ```
 * See docs/live.md#stages-and-queues.
 */
export class LiveSession {
  readonly #options: LiveSessionOptions;
  readonly #stages = new TaskGroup();
  /** Aborts the work under way; ending the queues instead lets it finish. */
  readonly #aborting = new AbortController();
  /** Stops reconnecting a pulled source. */
  readonly #stopReconnecting = new AbortController();
  readonly #evidence = new LiveQueue<LivePicture>(LIMITS.live.evidenceQueued);
  readonly #keyframes = new LiveQueue<QueuedKeyframe>(KEYFRAMES_WAITING);
  /** Those that no model is asked about. */
  readonly #passedOver = new LiveQueue<PassedOver>(LIMITS.live.decodedFramesQueuedKeyframe);
  readonly #clips = new LiveQueue<LiveClip>(CLIPS_QUEUED);
  readonly #audio = new LiveQueue<AudioWindow>(LIMITS.live.audioWindowsQueued);
  readonly #recordings = new LiveQueue<RecordedClip>(LIMITS.evidence.clipsHeld);
  readonly #segments = new LiveQueue<MadeSegment>(LIMITS.recording.segmentsHeld);
  readonly #answer = Promise.withResolvers<string>();
  readonly #iceRestarts = new Map<number, PromiseWithResolvers<string | null>>();
  readonly #ended = Promise.withResolvers<void>();
  readonly #snapshots: Snapshots;
  /** Who watches it. */
  readonly view: LiveView;
  #port: SessionPort | null = null;
  #reconnector: Reconnector | null = null;
  #ending: Ending | null = null;
  #isOnTimeline = false;
  /** When it was opened, and when its publisher was connected, epoch milliseconds. */
  readonly #openedMs: number;
  #connectedMs: number | null = null;
  #isFaulty = false;
  #isDetached = false;
  #pictureSize: PictureSize | null = null;
  /** Set while the pictures are smaller than what is reserved. */
  #givingBack: Disposable | null = null;
  /** Resolves when a closed connection is no longer waited for; null without one. */
  #goodbyeGrace: Promise<unknown> | null = null;
  readonly #endGrace = new AbortController();
  #iceRestartCount = 0;
  /** Markers that were written. */
  #markers = 0;
  #markerMinute = { startMs: -Infinity, markers: 0 };
  /** When the decoder was restarted lately, epoch milliseconds. */
  #restartTimesMs: readonly number[] = [];

  constructor(options: LiveSessionOptions) {
    this.#options = options;
    this.#openedMs = options.world.now();
    this.#snapshots = new Snapshots({
      world: options.world,
      order: () => this.#port?.send({ kind: "snapshot" }),
    });
    this.view = new LiveView({
      ...{ world: options.world, metrics: options.metrics },
      order: (viewId) => this.#port?.send({ kind: "watch", viewId }),
      acknowledge: () => this.#acknowledge({ fragments: 1 }),
    });
    this.#answer.promise.catch(() => {}); // `answer` handles the rejection
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

  get zone(): RestrictedZone | null {
    return this.#options.settings.zone;
  }

  get hasPolicyZone(): boolean {
    return this.#options.hasPolicyZone;
  }

  get isEnding(): boolean {
    return this.#ending !== null;
  }

  get activity(): SessionActivity {
    return this.#options.activity;
  }

  /** What the model is asked now; null for the built-in prompt. */
  get prompt(): string | null {
    return this.#options.describer.prompt;
  }

  /** Of the newest frames; null before the first. */
  get pictureSize(): PictureSize | null {
    return this.#pictureSize;
  }

  get openedMs(): number {
    return this.#openedMs;
  }

  /** Null while a publisher is not connected; a pulled source is from the start. */
  get connectedMs(): number | null {
    return this.#reconnector ? this.#openedMs : this.#connectedMs;
  }

  /** Of a pulled source that gives no frames. */
  get gap(): SourceGap | null {
    return this.#reconnector?.gap ?? null;
  }

  /** Resolves when it has ended; its Worker may still hold it then. */
  get ended(): Promise<void> {
    return this.#ended.promise;
  }

  /**
   * Goes on in the run `runId`, which `first` creates, and completes the one before. False where the session is ending. Errors:
   * the refusals of the timeline; then nothing has changed.
   */
  rollOver(runId: string, first: readonly NewEvent[]): boolean {
    if (this.#ending || !this.#options.journal.isOpen) return false;
    const { sessionId: session_id } = this.identity;
    const gap = this.gap;
    const lost = gap && event("source_gap", runId, { session_id, reason: gap.reason, pts_ms: null });
    this.#options.journal.rollOver(runId, lost ? [...first, lost] : first);
    this.#options.recorder?.rolledOver(runId);
    this.view.endOfRun();
    return true;
  }

  /** Whether what zone and trigger find from here on is an alarm. */
  setArmed(isArmed: boolean): void {
    this.#port?.send({ kind: "arm", isArmed });
  }

  /** The same, and an event that tells of it. */
  arm({ isArmed, reason, principalKey, untilMs }: ArmedChange): void {
    const { journal, identity: { runId, sessionId, sourceUri } } = this.#options;
    const payload = {
      session_id: sessionId,
      source_uri: sourceUri,
      reason,
      principal_key: principalKey,
      until_ms: untilMs,
    };
    journal.append([
      isArmed ? event("source_armed", runId, payload) : event("source_disarmed", runId, payload),
    ]);
    this.setArmed(isArmed);
  }

  /** The session has ended, but its Worker has not released it in time: its reservation is still held. */
  get isDetached(): boolean {
    return this.#isDetached;
  }

  /** Hands the session to a Worker. */
  open(): void {
    const { metrics, workers, settings, opening } = this.#options;
    metrics.add("service_pipeline_generations_started_total");
    this.#port = workers.open(settings, opening, (report) => this.#onReport(report));
  }

  /** The SDP answer to the session's offer. Rejects with {@link LiveRefused} after it has discarded the session. */
  async answer(signal: AbortSignal): Promise<string> {
    try {
      return await within(this.#options.world, ANSWER_MS, this.#answer.promise, signal);
    } catch (error) {
      await this.discard();
      throw error instanceof LiveRefused ? error : new LiveRefused(503, "no answer was found in time");
    }
  }

  /** Starts the stages. Call it when the run is on the timeline. The session owns `reconnector` from then on. */
  run(reconnector: Reconnector | null): void {
    this.#isOnTimeline = true;
    this.#reconnector = reconnector;
    this.#options.metrics.add("service_pipeline_sessions_created_total");
    this.#start("event_writer", () => this.#writeEvidence());
    this.#start("vlm", () => this.#describeKeyframes());
    this.#start("event_writer", () => this.#keepPassedOver());
    this.#start("vlm", () => this.#describeClips());
    this.#start("audio", () => this.#analyzeAudio());
    this.#start("event_writer", () => this.#storeRecordings());
    this.#start("event_writer", () => this.#storeSegments());
    if (reconnector) this.#start("decode", () => this.#reconnect(reconnector));
  }

  #start(stage: FaultStage, work: () => Promise<void>): void {
    this.#stages.start(async () => {
      try {
        // The request that starts the session has its span, and the stages outlive it.
        await this.#options.world.tracing.within(null, work);
      } catch (error) {
        this.#onBug(stage, error);
        throw error;
      }
    });
  }

  /** What it sees now; null where no frame comes in time. */
  snapshot(signal: AbortSignal): Promise<Snapshot | null> {
    return this.#snapshots.newest(signal);
  }

  candidate(fragment: string, { isOnLoopback }: CandidateSender): void {
    this.#port?.send({ kind: "candidate", fragment, isOnLoopback });
  }

  /** The answering SDP fragment; null when the session cannot restart ICE. */
  async restartIce(fragment: string, { isOnLoopback, signal }: Caller): Promise<string | null> {
    const orderId = ++this.#iceRestartCount;
    const answer = Promise.withResolvers<string | null>();
    this.#iceRestarts.set(orderId, answer);
    try {
      this.#port?.send({ kind: "restart_ice", fragment, isOnLoopback, orderId });
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

  /**
   * Ends the session; resolves when it has ended. Calling it again only waits for that, except that a reason of a higher
   * rank replaces the first one until the terminal event is written.
   */
  end(ending: Ending): Promise<void> {
    const isFirst = this.#ending === null;
    const isWeightier = !isFirst && ending.rank > this.#ending!.rank;
    if (isFirst || isWeightier) this.#ending = ending;
    if (isWeightier) this.#endGrace.abort();
    if (ending.why === "run_ended") this.#aborting.abort();
    if (isFirst) void this.#tearDown();
    return this.#ended.promise;
  }

  /** Ends a session without a terminal event: its run was never created, or has its terminal event already. */
  discard(): Promise<void> {
    return this.end({ rank: 3, why: "run_ended" });
  }

  /** Called when all work of the run is cancelled: the run was stopped or deleted, or the service closes. */
  endWithRun(): Promise<void> {
    return this.#options.journal.isOpen ? this.endForShutdown() : this.discard();
  }

  /** The service closes: fails the run and aborts the work under way. */
  endForShutdown(): Promise<void> {
    const ended = this.end({ rank: 1, why: "failed", reason: "service_stopped" });
    this.#aborting.abort();
    this.#endGrace.abort();
    return ended;
  }

  /** Called for each message of the Worker. An error must not leave this method: it would end every session. */
  #onReport(report: SessionReport): void {
    try {
      this.#handle(report);
    } catch (error) {
      this.#onBug("event_writer", error);
    }
  }

  #handle(report: SessionReport): void {
    switch (report.kind) {
      case "answered":
        return this.#answer.resolve(report.answer);
      case "refused":
        return this.#answer.reject(new LiveRefused(report.status, report.message));
      case "connected":
        return this.#onConnected(report);
      case "picture":
        return this.#onPicture(report.picture);
      case "clip":
        return this.#onClip(report);
      case "recorded":
        return this.#onRecorded(report.clip);
      case "segment":
        return this.#onSegment(report.segment);
      case "audio_window":
        return this.#onAudioWindow(report.window);
      case "loop_detected":
        return this.#onLoop(report.frame);
      case "range":
        return this.#onRange(report.range);
      case "decoder_restarted":
        return this.#onDecoderRestarted(report);
      case "gap":
        return this.#reconnector?.onGap(this.#reconnected(), report);
      case "resumed":
        return this.#reconnector?.onResumed(this.#reconnected());
      case "packets_lost":
        return this.#onPacketsLost(report);
      case "picture_size":
        return this.#onPictureSize(report);
      case "counts":
        return this.#options.journal.count(report.counts);
      case "samples":
        return this.#options.activity.onSamples(report.samples);
      case "snapshot":
        return this.#snapshots.onSnapshot(report.snapshot);
      case "view":
        return this.view.onReport(report.view);
      case "ice_restarted":
        return this.#iceRestarts.get(report.orderId)?.resolve(report.fragment);
      case "ended":
        return this.#onEnded(report);
      case "closed":
        this.#answer.reject(new LiveRefused(503, "the session could not be started"));
        return void this.end({ rank: 1, why: "failed", reason: "peer_state_channel_closed" });
    }
  }

  /** From here on the run reads `processing`; that of a pulled source does since `live_source_opened`. */
  #onConnected({ tookMs }: ReportOf<"connected">): void {
    const { journal, world, identity: { runId, sessionId, generation } } = this.#options;
    this.#connectedMs = world.now();
    journal.append([
      event("publisher_connected", runId, {
        session_id: sessionId,
        connect_ms: Math.round(tookMs),
        pipeline_generation: generation,
      }),
    ]);
  }

  #onPicture(picture: LivePicture): void {
    const { metrics, causes, recordings } = this.#options;
    if (recordings) causes.expect(picture.frame.frameIndex);
    if (picture.isKeyframe && picture.frame.gateReason === "scene_cut") this.#onCut(picture.frame);
    if (!picture.zone && !picture.trigger) return this.#offerKeyframe(picture);
    if (this.#evidence.offer(picture)) return;
    if (picture.zone) metrics.add("service_pipeline_restricted_zone_queue_dropped_total");
    if (picture.trigger) metrics.add("service_pipeline_trigger_queue_dropped_total");
    this.#acknowledge({ evidence: 1 });
    this.#offerWithoutEvidence(picture);
  }

  /** What is found while the camera is disarmed is not described for that. */
  #offerEvidence(picture: LivePicture): void {
    if (picture.isArmed === false) this.#offerWithoutEvidence(picture);
    else this.#offerKeyframe(picture);
  }

  #offerWithoutEvidence(picture: LivePicture): void {
    if (picture.isKeyframe) this.#offerKeyframe({ ...picture, zone: null, trigger: null });
    else this.#options.causes.settle(picture.frame.frameIndex);
  }

  /** The Worker has a credit for each clip that fits into the queue. */
  #onRecorded(clip: RecordedClip): void {
    if (this.#recordings.offer(clip)) return;
    this.#options.metrics.add("service_pipeline_recordings_lost_total");
    this.#acknowledge({ recordings: 1 });
  }

  /** The same for each segment. */
  #onSegment(segment: MadeSegment): void {
    if (this.#segments.offer(segment)) return;
    this.#options.recorder?.lost();
    this.#acknowledge({ segments: 1 });
  }

  /** {@link Describer.keyframe} lists every reason why a frame gets no `vlm` event. */
  #offerKeyframe(picture: LivePicture): void {
    const { frame, jpeg, isKeyframe } = picture;
    const reason = reasonOf(picture, this.#options.settings);
    const keyframe = { frame, jpeg, ...reason, isCredited: isKeyframe };
    const older = this.#ending ? keyframe : this.#keyframes.offerNewest(keyframe);
    if (older) this.#passOver(older);
  }

  /** No model is asked about the picture, which is kept all the same. */
  #passOver(picture: QueuedKeyframe): void {
    const { journal, enricher } = this.#options;
    const why = this.#ending ? "session_ended" : "queue_full";
    journal.dropped(why);
    enricher?.settle(picture.frame.frameIndex, { reason: this.#ending ? "session_ended" : "overloaded" });
    if (!this.#passedOver.offer({ ...picture, why })) this.#isDealtWith(picture);
  }

  #isDealtWith({ frame, isCredited }: QueuedKeyframe): void {
    this.#options.causes.settle(frame.frameIndex);
    if (isCredited) this.#acknowledge({ pictures: 1 });
  }

  #onClip(clip: LiveClip): void {
    if (this.#clips.offer(clip)) return;
    this.#options.journal.dropped(this.#ending ? "session_ended" : "queue_full");
    this.#acknowledge({ pictures: 1 });
  }

  #onAudioWindow(window: AudioWindow): void {
    if (this.#options.audio && this.#audio.offer(window)) return;
    this.#options.metrics.add("service_pipeline_webrtc_audio_queue_dropped_total", window.units.length);
    this.#acknowledge({ audioWindows: 1 });
  }

  #onLoop(frame: FrameFacts): void {
    const { journal, metrics, identity: { runId, sessionId } } = this.#options;
    const observation = { sessionId, frame, confidence: LOOP_CONFIDENCE, description: LOOP_DESCRIPTION };
    metrics.add("service_pipeline_loop_detected_total");
    journal.append([event("loop_detected", runId, observationPayload(observation))]);
  }

  #onRange(range: DetectedRange): void {
    this.#mark(rangeOfRows(range, range.startFrame, range.endFrame));
  }

  /** Only a session that explains its cuts marks them, at once; every other one tells of them with their description. */
  #onCut({ frameIndex, ptsMs, gateConfidence }: FrameFacts): void {
    const announced = this.#options.enricher?.announced("scene_cut");
    if (announced?.enrichment_deadline_ms === undefined) return;
    const place = {
      type: "scene_cut",
      ...{ start_frame: frameIndex, end_frame: frameIndex, start_pts_ms: ptsMs, end_pts_ms: ptsMs },
      confidence: unitScore(gateConfidence),
    } as const;
    this.#mark(place, announced);
  }

  /** Ids of markers count those of the session from 0. See docs/live.md#live-markers. */
  #mark(place: MarkedRange, announced: { readonly enrichment_deadline_ms?: number } = {}): void {
    const { journal, labels, metrics, identity: { runId, sessionId } } = this.#options;
    if (!this.#mayMark()) return metrics.add("service_pipeline_live_markers_dropped_total");
    const marker = rangeMarker(place, this.#markers, { runId, streamId: DEFAULT_STREAM_ID }, labels);
    const payload = { ...marker, session_id: sessionId, ...announced };
    this.#markers += journal.append([event("marker_emitted", runId, payload)]).length;
  }

  /** Counts a marker; false beyond the limit, which begins anew a minute after its first marker. */
  #mayMark(): boolean {
    const nowMs = this.#options.world.monotonicMs();
    if (nowMs - this.#markerMinute.startMs >= 60_000) this.#markerMinute = { startMs: nowMs, markers: 0 };
    return ++this.#markerMinute.markers <= LIMITS.live.markersPerMinute;
  }

  #onDecoderRestarted({ reason, ptsMs, restarts }: ReportOf<"decoder_restarted">): void {
    const { journal, metrics, world, identity: { runId, sessionId, generation } } = this.#options;
    metrics.add("service_pipeline_decoder_restarts_total");
    const nowMs = world.now();
    const isRecent = (timeMs: number) => nowMs - timeMs < FAULTY_RESTARTS_MS;
    this.#restartTimesMs = [...this.#restartTimesMs.filter(isRecent), nowMs];
    if (this.#restartTimesMs.length >= FAULTY_RESTARTS) {
      this.#restartTimesMs = [];
      this.#countFault("decode", "unexpected_exit");
    }
    journal.append([
      event("decoder_restarted", runId, {
        session_id: sessionId,
        reason,
        pts_ms: ptsMs,
        restarts,
        pipeline_generation: generation,
      }),
    ]);
  }

  /** A fault of the Worker closes the peer connection, so the run fails with `peer_closed`. */
  #onEnded({ cause, message, fault }: ReportOf<"ended">): void {
    this.#options.world.log.info("live session ended", { session_id: this.sessionId, cause, message });
    if (cause === "worker_fault") {
      this.#countFault(fault?.stage ?? "decode", fault?.reason ?? "unexpected_exit");
    }
    if (cause === PEER_CLOSED && !this.isEnding) {
      this.#goodbyeGrace = pause(this.#options.world, GOODBYE_GRACE_MS, this.#endGrace.signal);
    }
    void this.end(
      cause === "source_ended"
        ? { rank: 2, why: "completed", reason: cause }
        : { rank: 1, why: "failed", reason: cause === "worker_fault" ? PEER_CLOSED : cause },
    );
  }

  /** Ends this session, and no other, after an unexpected error. */
  #onBug(stage: FaultStage, error: unknown): void {
    this.#options.world.log.error("live stage failed", {
      session_id: this.sessionId,
      stage,
      error: error instanceof Error ? error.stack ?? error.message : String(error),
    });
    this.#countFault(stage, isNotStarted(stage, error) ? "spawn_failure" : "panic");
    void this.end({ rank: 1, why: "failed", reason: PEER_CLOSED });
  }

  /** Writes the event of the zone or trigger first. The description comes after it, and may be dropped. */
  async #writeEvidence(): Promise<void> {
    for await (const picture of this.#evidence.items(this.#aborting.signal)) {
      await this.#options.evidence.write(picture);
      this.#acknowledge({ evidence: 1 });
      this.#offerEvidence(picture);
    }
  }

  async #describeKeyframes(): Promise<void> {
    const { signal } = this.#aborting;
    const { describer, enricher } = this.#options;
    for await (const picture of this.#keyframes.items(signal)) {
      const explain = describer.keyframe(picture, signal).then((enrichment) =>
        enricher?.settle(picture.frame.frameIndex, enrichment)
      );
      await orAborted(explain, signal);
      this.#isDealtWith(picture);
    }
  }

  /** Not aborted: what waits when the session ends is stored as long as the run is open. */
  async #keepPassedOver(): Promise<void> {
    for await (const picture of this.#passedOver.items(NEVER)) {
      await this.#options.describer.keep(picture, WHY_PASSED_OVER[picture.why]);
      this.#isDealtWith(picture);
    }
  }

  async #describeClips(): Promise<void> {
    const { signal } = this.#aborting;
    for await (const clip of this.#clips.items(signal)) {
      await orAborted(this.#options.describer.clip(clip, signal), signal);
      this.#acknowledge({ pictures: 1 });
    }
  }

  async #analyzeAudio(): Promise<void> {
    const { signal } = this.#aborting;
    for await (const window of this.#audio.items(signal)) {
      await orAborted(this.#options.audio!.analyze(window, signal), signal);
      this.#acknowledge({ audioWindows: 1 });
    }
  }

  /** Not aborted: the last clip comes when the session ends, and is stored as long as the run is open. */
  async #storeRecordings(): Promise<void> {
    const { recordings, causes, journal } = this.#options;
    this.#aborting.signal.addEventListener("abort", () => causes.close(), { once: true });
    for await (const clip of this.#recordings.items(NEVER)) {
      if (journal.isOpen) await recordings?.store(clip);
      this.#acknowledge({ recordings: 1 });
    }
    await recordings?.finish();
  }

  /** Neither aborted nor bound to the run: a recording belongs to the source. */
  async #storeSegments(): Promise<void> {
    for await (const segment of this.#segments.items(NEVER)) {
      await this.#options.recorder?.store(segment);
      this.#acknowledge({ segments: 1 });
    }
  }

  async #reconnect(reconnector: Reconnector): Promise<void> {
    const signal = AbortSignal.any([this.#stopReconnecting.signal, this.#aborting.signal]);
    await orAborted(reconnector.run(this.#reconnected(), signal), signal);
  }

  #reconnected(): ReconnectedSession {
    const { identity, journal, world, settings } = this.#options;
    return {
      ...{ identity, journal, world },
      send: (order) => {
        const { video } = order.info;
        if (video) this.#orderRoom(this.#options.room.reopen(video), video);
        this.#port?.send({ ...order, settings });
      },
    };
  }

  #onPacketsLost({ reason }: ReportOf<"packets_lost">): void {
    const { world, identity: { runId, sessionId } } = this.#options;
    world.log.warn(
      "clips, recording and live view of a live source are without some of its pictures or sound",
      {
        ...{ run_id: runId, session_id: sessionId, reason },
      },
    );
  }

  /** More is reserved at once, and given back where the pictures stay smaller for a while. */
  #onPictureSize({ frame, source }: ReportOf<"picture_size">): void {
    const { room, world } = this.#options;
    this.#pictureSize = { frame, source };
    this.#givingBack?.[Symbol.dispose]();
    this.#givingBack = null;
    if (room.isTooSmallFor(frame)) this.#orderRoom(room.resize(frame), source);
    if (!room.isLargerThan(frame)) return;
    this.#givingBack = timer(world, ROOM_KEPT_MS, () => this.#orderRoom(room.resize(frame), source));
  }

  #orderRoom(isGranted: boolean, asked: Extent): void {
    const { room: { picture }, world, identity: { runId, sessionId } } = this.#options;
    this.#port?.send({ kind: "room", picture: { width: picture.width, height: picture.height }, isGranted });
    if (isGranted) return;
    world.log.warn("there is no memory for the pictures of a live session: they are scaled down", {
      ...{ run_id: runId, session_id: sessionId },
      ...{ picture: `${asked.width}x${asked.height}`, to_pixels_of: `${picture.width}x${picture.height}` },
    });
  }

  #acknowledge(
    { pictures = 0, evidence = 0, audioWindows = 0, recordings = 0, fragments = 0, segments = 0 },
  ): void {
    this.#port?.send({
      kind: "acknowledge",
      pictures,
      evidence,
      audioWindows,
      recordings,
      fragments,
      segments,
    });
  }

  /**
   * Closes the Worker first, as it may still report what it has; then ends the stages; then waits for the DELETE of a
   * publisher that has closed its connection; then writes the terminal event, with the reason of the highest rank so far.
   */
  async #tearDown(): Promise<void> {
    const { describer, metrics, journal, world } = this.#options;
    let hasFailed = false;
    try {
      describer.close();
      this.view.close();
      this.#givingBack?.[Symbol.dispose]();
      this.#dropQueuedPictures();
      if (this.#isOnTimeline && !journal.isOpen) this.#aborting.abort();
      await this.#closeWorker();
      await this.#finishStages();
      await this.#goodbyeGrace;
      await this.#options.enricher?.finish(this.#options.closing);
      if (this.#isOnTimeline) await journal.finish(this.#ending!, this.#options.closing);
    } catch (error) {
      hasFailed = true;
      world.log.error("live session failed while it ended", {
        session_id: this.sessionId,
        error: String(error),
      });
    } finally {
      // What went wrong before is counted already; it does not matter for a session that its caller ended and that let go.
      const isFaulty = hasFailed || (this.#isFaulty && this.#ending!.why !== "completed");
      const outcome = this.#isDetached ? "forced" : isFaulty ? "faulted" : "clean";
      metrics.add("service_pipeline_generation_shutdown_total", { outcome });
      if (this.#isOnTimeline) metrics.add("service_pipeline_sessions_removed_total");
      if (!this.#isDetached) this.#release();
      this.#ended.resolve();
    }
  }

  /** Nothing waits for a model any more, so that ending a session does not wait for it. */
  #dropQueuedPictures(): void {
    for (const picture of this.#keyframes.clear()) this.#passOver(picture);
    this.#options.journal.dropped("session_ended", this.#clips.clear().length);
  }

  async #closeWorker(): Promise<void> {
    const closed = this.#port?.close() ?? Promise.resolve();
    try {
      await within(this.#options.world, JOIN_MS, closed);
    } catch (error) {
      if (!(error instanceof OutOfTime)) throw error;
      this.#isDetached = true;
      this.#countFault("decode", "join_deadline");
      this.#options.metrics.add("service_pipeline_detached_workers_total");
      closed.then(() => {
        this.#isDetached = false;
        this.#release();
      });
    }
  }

  async #finishStages(): Promise<void> {
    this.#evidence.end();
    this.#audio.end();
    this.#dropQueuedPictures();
    this.#keyframes.end();
    this.#passedOver.end();
    this.#clips.end();
    this.#recordings.end();
    this.#segments.end();
    this.#stopReconnecting.abort();
    const finished = this.#stages.join().catch(() => {}); // #onBug has logged it
    await hasEndedWithin(this.#options.world, DRAIN_MS, finished, this.#aborting.signal);
    this.#aborting.abort();
    await finished;
    await this.#reconnector?.[Symbol.asyncDispose]();
  }

  /** Frees the session's reservation, once the Worker holds nothing of the session any more. */
  #release(): void {
    this.#options.room[Symbol.dispose]();
    this.#options.onReleased();
  }

  #countFault(stage: FaultStage, reason: FaultLabels["reason"]): void {
    const { metrics, world } = this.#options;
    this.#isFaulty = true;
    metrics.add("service_pipeline_worker_faults_total", { stage, reason });
    metrics.set("service_pipeline_last_fault_timestamp_seconds", Math.floor(world.now() / 1000));
  }
}

type QueuedKeyframe = DescribedPicture & {
  /** Whether it took a credit of the Worker, which an acknowledgement gives back. */
  readonly isCredited: boolean;
};

type PassedOver = QueuedKeyframe & { readonly why: keyof typeof WHY_PASSED_OVER };

type FaultLabels = LabelsOf<"service_pipeline_worker_faults_total">;
type FaultStage = FaultLabels["stage"];

type ReportOf<Kind extends SessionReport["kind"]> = Extract<SessionReport, { kind: Kind }>;

const NEVER = new AbortController().signal;
const PEER_CLOSED = "peer_closed";
const WHY_PASSED_OVER = {
  queue_full: "No model was asked: it was busy, and a newer picture took the place of this one.",
  session_ended: "No model was asked: the session ended first.",
} as const;
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

/** Of the stages here only audio starts a program; Deno says with these errors that there is none. */
function isNotStarted(stage: FaultStage, error: unknown): boolean {
  const { NotFound, PermissionDenied, NotCapable } = Deno.errors;
  return stage === "audio" && [NotFound, PermissionDenied, NotCapable].some((kind) => error instanceof kind);
}

/** Waits for `work`. What it throws after the signal has aborted is its normal end. */
async function orAborted(work: Promise<unknown>, signal: AbortSignal): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
