/** Builds a live session from the parts that the process shares and from what the session's attach configuration asks for. */

import type { Metrics } from "../../contract/metrics.ts";
import type { ToolRunner } from "../../media/tools/runner.ts";
import type { World } from "../../base/world.ts";
import type { IceSettings, SessionSettings } from "../../live/messages.ts";
import type { LiveWorkers, Opening } from "../../live/worker_pool.ts";
import type { Extent } from "../../model/frames/coordinates.ts";
import { type LabelMaps, labelsOf } from "../../model/frames/label_map.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { AttachConfig, AttachPolicy } from "../../model/live/attach.ts";
import { keptBytesMax } from "../../model/live/recording/record_plan.ts";
import { type RecordingPlan, segmentBytesMax } from "../../model/sources/recording_plan.ts";
import type { LiveModels } from "../../model/live/live_models.ts";
import type { GateThresholds } from "../../model/frames/signals.ts";
import type { AudioSidecar } from "../../remote/sidecars/audio_sidecar.ts";
import type { TriggerDatagramSender } from "../../remote/trigger_datagram_sender.ts";
import type { Blobs } from "../../store/media/blobs.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { Recordings } from "../../store/recordings/recordings.ts";
import { SegmentRecorder } from "../recordings/segment_recorder.ts";
import { SessionActivity } from "./activity.ts";
import { SessionRoom } from "./session_room.ts";
import { LiveSession } from "./session.ts";
import type { Inference } from "../infer/inference.ts";
import { LiveAudio } from "./audio.ts";
import { Enricher } from "./describing/enricher.ts";
import { Describer } from "./describing/describer.ts";
import { CauseEvents } from "./evidence/cause_events.ts";
import { EvidenceClips } from "./evidence/clips.ts";
import { EvidenceWriter } from "./evidence/evidence.ts";
import type { LiveModelChoice } from "./describing/live_model_choice.ts";
import type { SemanticNovelty } from "./describing/novelty.ts";
import { LiveQuestions } from "./describing/questions.ts";
import type { LiveRegistry } from "./registry.ts";
import { LiveJournal, type SessionIdentity } from "./journal.ts";
import { type MediaCapacity, reservationOf } from "./capacity.ts";

export interface LiveSessionFactoryOptions {
  readonly timeline: Timeline;
  readonly blobs: Blobs;
  readonly recordings: Recordings;
  readonly metrics: Metrics;
  readonly world: World;
  readonly workers: LiveWorkers;
  readonly registry: LiveRegistry;
  readonly capacity: MediaCapacity;
  readonly inference: Inference;
  readonly models: LiveModels;
  readonly choice: LiveModelChoice;
  /** Of each pass of a question. */
  readonly modelTimeoutMs: number;
  /** Null where no embedding sidecar is configured. */
  readonly novelty: SemanticNovelty | null;
  /** Null where no audio sidecar is configured. */
  readonly audio: {
    readonly sidecar: AudioSidecar;
    readonly runner: ToolRunner;
    readonly timeoutMs: number;
  } | null;
  readonly datagrams: TriggerDatagramSender | null;
  readonly thresholds: GateThresholds;
  readonly labelMaps: LabelMaps | null;
  readonly ice: IceSettings;
  readonly mediaIdleMs: number;
}

/** What differs from session to session. */
export interface LiveSessionPlan {
  readonly identity: SessionIdentity;
  /** Its prompt and zone are those of `policy`, where that sets them. */
  readonly attach: AttachConfig;
  /** Of the active policy revision of the run; null where there is none. */
  readonly policy: AttachPolicy | null;
  readonly opening: Opening;
  /** A camera that is always watched may be silent for as long as it likes. */
  readonly isAlwaysOn?: true;
  /** Of a source that is recorded all day. */
  readonly recording?: RecordedSource | null;
}

/** What is recorded, and how long it is kept. */
export interface RecordedSource {
  readonly source: string;
  readonly plan: RecordingPlan;
}

export class LiveSessionFactory {
  readonly #options: LiveSessionFactoryOptions;

  constructor(options: LiveSessionFactoryOptions) {
    this.#options = options;
  }

  /** Whether sessions may ask for audio analysis. */
  get hasAudioSidecar(): boolean {
    return this.#options.audio !== null;
  }

  /**
   * Reserves the memory, the threads and the slot of a session of the principal. Throws CapacityExhausted, or LiveRefused where there is no
   * slot. See {@link MediaCapacity.reserve} for who frees the reservation.
   */
  reserve(
    principalKey: string,
    picture: Extent,
    attach: AttachConfig,
    { isPublished = false, ...options }: { readonly isRecorded?: boolean; readonly isPublished?: boolean } =
      {},
  ): SessionRoom {
    const { capacity, registry } = this.#options;
    using held = new DisposableStack();
    const reserved = held.use(capacity.reserve(principalKey, reservationOf(picture, attach, options)));
    const slot = registry.takeSlot(principalKey);
    held.move();
    return new SessionRoom({
      ...{ capacity: reserved, slot, picture },
      least: isPublished ? picture : null,
      memoryBytes: (size) => reservationOf(size, attach, options).memoryBytes,
    });
  }

  /** The session owns `room` from here on. Nothing is started yet. */
  create(plan: LiveSessionPlan, room: SessionRoom): LiveSession {
    const { metrics, world, registry, workers, blobs, timeline, datagrams, recordings } = this.#options;
    const { identity, attach, policy, opening, recording } = plan;
    const activity = new SessionActivity();
    const causes = new CauseEvents();
    const enricher: Enricher | null = attach.enrich && new Enricher({
      plan: attach.enrich,
      hasModel: () => this.#options.choice.now.notServed === null,
      append: (events) => journal.appendToOwn(events),
      metrics,
      world,
    });
    const journal = new LiveJournal({
      ...{ timeline, blobs, metrics, world, identity, activity, causes },
      onWritten: (written, seq) => enricher?.note(written, seq),
      onQuotaReached: () => void session.end({ rank: 1, why: "failed", reason: "storage_quota" }),
    });
    const session: LiveSession = new LiveSession({
      identity,
      settings: this.#settings(plan, room.picture),
      hasPolicyZone: policy !== null && policy.zone !== null,
      opening,
      workers,
      journal,
      activity,
      describer: this.#describer(plan, journal),
      evidence: new EvidenceWriter({
        identity,
        journal,
        zone: attach.zone,
        trigger: attach.trigger,
        datagrams,
        metrics,
        enricher,
      }),
      causes,
      recordings: attach.record && new EvidenceClips({ identity, journal, causes, metrics, world }),
      recorder: recording
        ? new SegmentRecorder({ ...recording, runId: identity.runId, recordings, metrics, world })
        : null,
      enricher,
      labels: labelsOf(this.#options.labelMaps, identity.principalKey),
      audio: this.#audio(plan, journal),
      room,
      metrics,
      world,
      closing: registry.closing,
      onReleased: () => registry.remove(session),
    });
    return session;
  }

  #settings({ identity, attach, isAlwaysOn, recording }: LiveSessionPlan, maxFrame: Extent): SessionSettings {
    const { thresholds, ice, mediaIdleMs } = this.#options;
    return {
      sessionId: identity.sessionId,
      generation: identity.generation,
      gateThresholds: thresholds,
      windowSize: LIMITS.analyze.windowSizeDefault,
      crop: attach.crop,
      zone: attach.zone,
      trigger: attach.trigger,
      clip: attach.clip,
      wantsKeyframes: attach.clip === null,
      wantsAudio: attach.localAudio !== null,
      record: attach.record && { ...attach.record, bytesMax: keptBytesMax(maxFrame, attach.record) },
      recording: recording
        ? { segmentMs: LIMITS.recording.segmentMs, bytesMax: segmentBytesMax(maxFrame) }
        : null,
      maxFrame,
      mediaIdleMs: isAlwaysOn ? LONGEST_TIMER_MS : mediaIdleMs,
      isAlwaysOn: isAlwaysOn ?? false,
      ice,
    };
  }

  #describer({ identity, attach, policy }: LiveSessionPlan, journal: LiveJournal): Describer {
    const { metrics, world, inference, models, choice, modelTimeoutMs, novelty } = this.#options;
    const { prompt, tokensPerSecond } = attach;
    return new Describer({
      identity,
      journal,
      questions: new LiveQuestions({
        ...{
          inference,
          models,
          choice,
          metrics,
          world,
          identity,
          tokensPerSecond,
          timeoutMs: modelTimeoutMs,
        },
      }),
      novelty: novelty && novelty.session(identity.principalKey),
      prompt,
      outputSchema: policy && policy.outputSchema,
      metrics,
      world,
    });
  }

  #audio({ identity, attach: { localAudio } }: LiveSessionPlan, journal: LiveJournal): LiveAudio | null {
    const { audio, metrics, world } = this.#options;
    if (!audio || !localAudio) return null;
    const { sidecar, runner, timeoutMs } = audio;
    return new LiveAudio({ identity, journal, plan: localAudio, sidecar, runner, timeoutMs, metrics, world });
  }
}

/** 24 days. A longer one would end at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
