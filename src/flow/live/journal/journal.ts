/** What one live session writes: events while its run is open, pictures before the events that name them, its
 * counts.
 */

import type { LabelsOf, Metrics } from "../../../contract/metrics.ts";
import { Refusal } from "../../../contract/refusal.ts";
import { pause } from "../../../base/wait.ts";
import type { World } from "../../../base/world.ts";
import type { LiveCounts } from "../../../live/messages/messages.ts";
import { event, grantedBlobs, type SessionEvent } from "../../../model/events/event_table.ts";
import type { LiveSource } from "../../../model/events/run_payloads.ts";
import { isTerminal, type NewEvent } from "../../../model/runs/run.ts";
import type { BlobRef, Blobs } from "../../../store/media/blobs.ts";
import type { Timeline } from "../../../store/timeline/timeline.ts";
import type { CommittedEvent } from "../../../store/timeline/notification_ring.ts";
import type { SessionActivity } from "./activity.ts";
import type { CauseEvents } from "./cause_events.ts";

/** How the events of a session identify it. */
export interface SessionIdentity {
  readonly sessionId: string;
  /** Process-wide, from 1. */
  readonly generation: number;
  readonly principalKey: string;
  readonly source: LiveSource;
  /** As events name it; empty for a publisher. */
  readonly sourceUri: string;
}

/** Why a keyframe or a clip got no new description. */
export type Undescribed = LabelsOf<"service_pipeline_keyframes_undescribed_total">["reason"];

export interface LiveJournalOptions {
  readonly timeline: Timeline;
  readonly blobs: Blobs;
  readonly metrics: Metrics;
  readonly world: World;
  readonly identity: SessionIdentity;
  /** The first run of the session. */
  readonly runId: string;
  readonly activity: SessionActivity;
  /** Told of each event that is written. */
  readonly causes: CauseEvents;
  /** Called for each event that `append` has written. */
  readonly onWritten: (event: NewEvent, seq: number) => void;
  /** Called when an event or a picture is refused as the principal stores too much; may be called again. */
  readonly onQuotaReached: () => void;
}

/**
 * Why a session ends. The highest rank counts where several reasons come together: a run that was stopped or
 * deleted has its terminal event already; a caller who ends the session completes the run; anything else
 * fails it. See docs/live.md#session-end.
 */
export type Ending =
  | { readonly rank: 3; readonly why: "run_ended" }
  | { readonly rank: 2; readonly why: "completed"; readonly reason: string }
  | { readonly rank: 1; readonly why: "failed"; readonly reason: string };

/** Waits between attempts to write the terminal event: doubled from the first to the longest. */
const RETRY_FIRST_MS = 50;
const RETRY_LONGEST_MS = 1_000;

export class LiveJournal {
  readonly #options: LiveJournalOptions;
  #runId: string;

  constructor(options: LiveJournalOptions) {
    this.#options = options;
    this.#runId = options.runId;
  }

  /** The run of the session; another one after each roll-over. */
  get runId(): string {
    return this.#runId;
  }

  /** Whether the run still takes events of its session: it exists, and it is neither deleted nor terminal. */
  get isOpen(): boolean {
    const run = this.#options.timeline.view.run(this.#runId);
    return run !== undefined && !run.deleted && !isTerminal(run.state);
  }

  /**
   * Appends all events to the run of the session, or none where the run has ended or the disk refuses them
   * (the timeline counts those failures). Neither is an error: the session goes on, as no caller waits for
   * the result. Beyond the quota the session ends.
   */
  append(events: readonly SessionEvent[]): readonly CommittedEvent[] {
    try {
      const placed = events.map((each) => ({ ...each, runId: this.#runId }));
      const written = this.#options.timeline.commit(() => this.isOpen ? placed : []);
      for (const [at, { seq }] of written.entries()) {
        this.#notePicture(placed[at]!, seq);
        this.#options.onWritten(placed[at]!, seq);
      }
      return written;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.#endAtQuota(error);
      return [];
    }
  }

  /**
   * Appends events to their own runs, which may have ended meanwhile, by a roll-over or a stop; nothing
   * follows a deleted run. False where the disk or the quota refuses them.
   */
  appendToOwn(events: readonly NewEvent[]): boolean {
    try {
      this.#options.timeline.commit((view) =>
        events.filter(({ runId }) => view.run(runId)?.deleted === false)
      );
      return true;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.#endAtQuota(error);
      return false;
    }
  }

  #notePicture(written: NewEvent, seq: number): void {
    const { kind, payload } = written;
    this.#options.causes.note(written, seq);
    // The picture of a clip was stored before, with another event.
    if (kind === "clip_stored") return;
    const picture = grantedBlobs(kind, payload).find(({ route }) => route === "keyframes");
    if (picture) this.#options.activity.onPicture({ seq, sha256: picture.sha256 });
  }

  /** Stores a picture; null where the disk refuses it, or the quota, at which the session ends. */
  async store(jpeg: Uint8Array): Promise<BlobRef | null> {
    const { blobs, metrics, world, identity } = this.#options;
    const startedMs = world.monotonicMs();
    try {
      const ref = await blobs.put(jpeg, "jpeg", identity.principalKey);
      metrics.add(
        ref.created
          ? "service_pipeline_keyframe_blobs_written_total"
          : "service_pipeline_keyframe_blobs_reused_total",
      );
      metrics.add("service_pipeline_keyframe_blob_bytes_total", ref.sizeBytes);
      metrics.observe("service_pipeline_keyframe_blob_latency_ms", world.monotonicMs() - startedMs);
      return ref;
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.#endAtQuota(error);
      metrics.add("service_pipeline_keyframe_blob_failures_total");
      return null;
    }
  }

  /** Stores an evidence clip; null where the disk refuses it, or the quota, at which the session ends. */
  async storeClip(mp4: Uint8Array): Promise<BlobRef | null> {
    const { blobs, identity } = this.#options;
    try {
      return await blobs.put(mp4, "mp4", identity.principalKey);
    } catch (error) {
      if (!(error instanceof Refusal)) throw error;
      this.#endAtQuota(error);
      return null;
    }
  }

  #endAtQuota({ kind }: Refusal): void {
    if (kind === "storage_quota") this.#options.onQuotaReached();
  }

  /**
   * Writes the one terminal event of the session, or none where the run has ended already. Retries while the
   * disk refuses the event, until `signal` aborts; then `failRunsLeftOpen` writes one at the next start of
   * the service.
   */
  async finish(ending: Ending, signal: AbortSignal): Promise<void> {
    if (ending.why === "run_ended") return;
    const { timeline, world, identity: { sessionId, source } } = this.#options;
    const kind = ending.why === "completed" ? "run_completed" : "run_failed";
    const terminal = event(kind, this.#runId, { source, session_id: sessionId, reason: ending.reason });
    for (let waitMs = RETRY_FIRST_MS;; waitMs = Math.min(RETRY_LONGEST_MS, waitMs * 2)) {
      try {
        timeline.commit(() => this.isOpen ? [terminal] : []);
        return;
      } catch (error) {
        if (!(error instanceof Refusal)) throw error;
      }
      if (!await pause(world, waitMs, signal)) return;
    }
  }

  /**
   * Keyframes or clips that come to their end without a new description. See docs/live.md#stages-and-queues.
   */
  undescribed(reason: Undescribed, amount = 1): void {
    this.#options.metrics.add("service_pipeline_keyframes_undescribed_total", { reason }, amount);
  }

  /** Like `undescribed`, for keyframes or clips that no model was to be asked about any more. */
  dropped(reason: Undescribed, amount = 1): void {
    this.undescribed(reason, amount);
    this.#options.metrics.add("service_pipeline_keyframes_dropped_total", amount);
  }

  /**
   * Completes the run of the session, and goes on in a new one, whose events begin with `first`: both in one
   * commit, so that every event of the session has a run. Errors: the refusals of the timeline; then nothing
   * has changed.
   */
  rollOver(runId: string, first: readonly NewEvent[]): void {
    const { timeline, activity, identity: { sessionId: session_id } } = this.#options;
    const ended = { source: "live", session_id, reason: "rolled_over", successor_run_id: runId } as const;
    timeline.commit(() => [event("run_completed", this.#runId, ended), ...first]);
    this.#runId = runId;
    activity.forgetPicture();
  }

  /** Adds what the session's Worker counted since its last report. */
  count(counts: LiveCounts): void {
    const { metrics, activity, world } = this.#options;
    activity.onCounts(counts, world.now());
    for (const [name, metric] of METRIC_OF_COUNT) metrics.add(metric, counts[name]);
    metrics.add("service_live_view_fragments_dropped_total", { queue: "worker" }, counts.viewFragmentsLost);
    for (const [name, reason] of REASON_OF_COUNT) this.dropped(reason, counts[name]);
    for (const us of counts.decodeLatenciesUs) metrics.observe("service_pipeline_decode_latency_us", us);
    for (const us of counts.gateLatenciesUs) metrics.observe("service_pipeline_gate_latency_us", us);
  }
}

const REASON_OF_COUNT = [
  ["keyframesLooping", "loop"],
  ["keyframesWithoutCredit", "queue_full"],
  ["keyframesNotEncoded", "not_encoded"],
] as const;

const METRIC_OF_COUNT = [
  ["rtpFramesReceived", "service_pipeline_rtp_frames_received_total"],
  ["framesDecoded", "service_pipeline_frames_decoded_total"],
  ["framesDropped", "service_pipeline_frames_dropped_total"],
  ["gateFramesAnalyzed", "service_pipeline_gate_frames_analyzed_total"],
  ["gateKeyframesSelected", "service_pipeline_gate_keyframes_selected_total"],
  ["decodePendingSanityViolations", "service_pipeline_decode_pending_sanity_violations_total"],
  ["zoneQueueDropped", "service_pipeline_restricted_zone_queue_dropped_total"],
  ["triggerQueueDropped", "service_pipeline_trigger_queue_dropped_total"],
  ["triggerMissingSignal", "service_pipeline_trigger_missing_signal_total"],
  ["audioTracks", "service_pipeline_webrtc_audio_tracks_total"],
  ["audioAccessUnits", "service_pipeline_webrtc_audio_access_units_total"],
  ["audioBytes", "service_pipeline_webrtc_audio_bytes_total"],
  ["audioDurationMs", "service_pipeline_webrtc_audio_duration_ms_total"],
  ["audioReceiveErrors", "service_pipeline_webrtc_audio_receive_errors_total"],
  ["audioQueueDropped", "service_pipeline_webrtc_audio_queue_dropped_total"],
  ["recordingsLost", "service_pipeline_recordings_lost_total"],
  ["viewFragments", "service_live_view_fragments_total"],
  ["segmentsLost", "service_recording_segments_lost_total"],
] as const;
