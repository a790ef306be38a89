/** Puts the parts of a generation together, from what the process has and what its session asks for. */

import type { Metrics } from "../../base/metrics.ts";
import type { Tools } from "../../base/program_paths.ts";
import type { World } from "../../base/world.ts";
import type { IceSettings } from "../../live/messages.ts";
import type { LiveWorkers, Opening } from "../../live/worker_pool.ts";
import type { Extent } from "../../model/frames/coordinates.ts";
import { LIMITS } from "../../model/limits.ts";
import type { AttachConfig } from "../../model/live/attach.ts";
import type { GateThresholds } from "../../model/frames/signals.ts";
import type { AudioSidecar } from "../../remote/sidecars/audio_sidecar.ts";
import type { TriggerDatagramSender } from "../../remote/trigger_datagram_sender.ts";
import type { Blobs } from "../../store/blobs.ts";
import type { Timeline } from "../../store/log/timeline.ts";
import { LiveSession } from "./session.ts";
import type { Inference } from "../infer/inference.ts";
import { LiveAudio } from "./audio.ts";
import { Describer } from "./describer.ts";
import { EvidenceWriter } from "./evidence.ts";
import type { SemanticNovelty } from "./novelty.ts";
import { type LiveModels, LiveQuestions } from "./questions.ts";
import type { LiveRegistry } from "./registry.ts";
import { LiveJournal, type SessionIdentity } from "./journal.ts";
import { reservationOf } from "./reservation.ts";
import type { MediaCapacity } from "./capacity.ts";

export interface LiveSessionFactoryOptions {
  readonly timeline: Timeline;
  readonly blobs: Blobs;
  readonly metrics: Metrics;
  readonly world: World;
  readonly workers: LiveWorkers;
  readonly table: LiveRegistry;
  readonly capacity: MediaCapacity;
  readonly inference: Inference;
  readonly models: LiveModels;
  /** Null where novelty is off. */
  readonly novelty: SemanticNovelty | null;
  readonly audio: {
    readonly sidecar: AudioSidecar;
    readonly tools: Pick<Tools, "ffmpeg" | "prlimit">;
    readonly timeoutMs: number;
  } | null;
  readonly datagrams: TriggerDatagramSender | null;
  readonly thresholds: GateThresholds;
  readonly ice: IceSettings;
}

/** What one session is to be. */
export interface LiveSessionPlan {
  readonly identity: SessionIdentity;
  readonly attach: AttachConfig;
  /** Larger pictures are scaled down; 0x0 for a session without any. */
  readonly maxFrame: Extent;
  readonly opening: Opening;
}

export class LiveSessionFactory {
  readonly #options: LiveSessionFactoryOptions;

  constructor(options: LiveSessionFactoryOptions) {
    this.#options = options;
  }

  /** Whether there is a sidecar for sessions that ask for one. */
  get canHear(): boolean {
    return this.#options.audio !== null;
  }

  /** What a session may hold, reserved; throws CapacityExhausted, or LiveRefused where there is no slot. */
  reserve(maxFrame: Extent, attach: AttachConfig): Disposable {
    const { capacity, table } = this.#options;
    using held = new DisposableStack();
    held.use(capacity.reserve(reservationOf(maxFrame, attach)));
    held.use(table.takeSlot());
    return held.move();
  }

  /** `reservation` belongs to the generation from here on. Nothing is started yet. */
  create({ identity, attach, maxFrame, opening }: LiveSessionPlan, reservation: Disposable): LiveSession {
    const { metrics, world, table, workers, thresholds, ice, inference, models, novelty } = this.#options;
    const timeline = new LiveJournal({ ...this.#options, identity });
    const { tokensPerSecond } = attach;
    const questions = inference.isConfigured
      ? new LiveQuestions({ inference, models, metrics, world, identity, tokensPerSecond })
      : null;
    const generation: LiveSession = new LiveSession({
      identity,
      settings: {
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
        maxFrame,
        ice,
      },
      opening,
      workers,
      timeline,
      describer: new Describer({
        identity,
        timeline,
        questions,
        novelty: questions && novelty ? novelty.session() : null,
        prompt: attach.prompt,
        metrics,
        world,
      }),
      evidence: new EvidenceWriter({ ...this.#options, ...attach, identity, timeline }),
      audio: this.#audio(identity, timeline, attach),
      reservation,
      metrics,
      world,
      closing: table.closing,
      onOver: () => table.remove(generation),
    });
    return generation;
  }

  #audio(identity: SessionIdentity, timeline: LiveJournal, { localAudio }: AttachConfig): LiveAudio | null {
    const { audio, metrics, world } = this.#options;
    return audio && localAudio
      ? new LiveAudio({ identity, timeline, plan: localAudio, ...audio, metrics, world })
      : null;
  }
}
