/** Builds a live session from the parts that the process shares and from what the session's attach
 * configuration asks for.
 */

import type { IceSettings, SessionSettings } from "../../live/messages/messages.ts";
import type { LiveWorkers } from "../../live/worker_pool.ts";
import type { Extent } from "../../model/frames/coordinates.ts";
import { type LabelMaps, labelsOf } from "../../model/frames/label_map.ts";
import { LIMITS } from "../../contract/limits.ts";
import { keptBytesMax } from "../../model/live/recording/record_plan.ts";
import { segmentBytesMax } from "../../model/sources/recording_plan.ts";
import type { LiveModels } from "../../model/live/live_models.ts";
import type { GateThresholds } from "../../model/frames/signals.ts";
import type { Blobs } from "../../store/media/blobs.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import { SessionActivity } from "./journal/activity.ts";
import { SessionRoom } from "./session_room.ts";
import { LiveSession } from "./session.ts";
import type { Inference } from "../infer/inference.ts";
import { Enricher } from "./describing/enricher.ts";
import { Describer } from "./describing/describer.ts";
import { CauseEvents } from "./journal/cause_events.ts";
import type { LiveSessionPlan, StageHost } from "./stages/staged_session.ts";
import type { LiveModelChoice } from "./describing/live_model_choice.ts";
import type { SemanticNovelty } from "./describing/novelty.ts";
import { LiveQuestions } from "./describing/questions.ts";
import type { LiveRegistry } from "./registry.ts";
import { LiveJournal, type SessionIdentity } from "./journal/journal.ts";
import { type MediaCapacity, reservationOf } from "./capacity.ts";

export interface LiveSessionFactoryOptions extends StageHost {
  readonly timeline: Timeline;
  readonly blobs: Blobs;
  readonly workers: LiveWorkers;
  readonly registry: LiveRegistry;
  readonly capacity: MediaCapacity;
  readonly inference: Inference;
  readonly models: LiveModels;
  readonly choice: LiveModelChoice;
  /** How long each pass of a question may take. */
  readonly modelTimeoutMs: number;
  /** Null where no embedding sidecar is configured. */
  readonly novelty: SemanticNovelty | null;
  readonly thresholds: GateThresholds;
  readonly labelMaps: LabelMaps | null;
  readonly ice: IceSettings;
  readonly mediaIdleMs: number;
}

/** What a session is opened for. */
export interface AskedSession
  extends Omit<LiveSessionPlan, "identity">, Omit<SessionIdentity, "sessionId" | "generation"> {
  /** A publisher has taken its number already; default the next one. */
  readonly generation?: number;
  /** The largest pictures of a publisher, and the present ones of a source that is pulled. */
  readonly picture: Extent;
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
   * Reserves the memory, the threads and the slot of a session, lets `begin` write its first events, and
   * makes it; nothing is started. The session owns what is reserved. Errors: `provider_saturated`, and those
   * of `begin`; nothing is left then.
   */
  open(asked: AskedSession, begin: (identity: SessionIdentity) => void = () => {}): LiveSession {
    const { principalKey, source, sourceUri, generation, picture: _, ...rest } = asked;
    const { registry } = this.#options;
    using unused = new DisposableStack();
    const room = unused.use(this.#reserve(asked));
    const identity: SessionIdentity = {
      sessionId: registry.newSessionId(),
      generation: generation ?? registry.nextGeneration(),
      principalKey,
      source,
      sourceUri,
    };
    begin(identity);
    unused.move(); // the session frees it
    return this.#create({ ...rest, identity }, room);
  }

  #reserve({ principalKey, source, picture, attach, recording }: AskedSession): SessionRoom {
    const { capacity, registry } = this.#options;
    const ofSize = (size: Extent) => reservationOf(size, attach, { isRecorded: recording != null });
    using held = new DisposableStack();
    const reserved = held.use(capacity.reserve(principalKey, ofSize(picture)));
    const slot = registry.takeSlot(principalKey);
    held.move();
    return new SessionRoom({
      ...{ capacity: reserved, slot, picture },
      least: source === "whip" ? picture : null,
      memoryBytes: (size) => ofSize(size).memoryBytes,
    });
  }

  #create(plan: LiveSessionPlan, room: SessionRoom): LiveSession {
    const { metrics, world, registry, workers, blobs, timeline } = this.#options;
    const { identity, runId, attach } = plan;
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
      ...{ timeline, blobs, metrics, world, identity, runId, activity, causes },
      onWritten: (written, seq) => enricher?.note(written, seq),
      onQuotaReached: () => void session.ending.end({ rank: 1, why: "failed", reason: "storage_quota" }),
    });
    const session: LiveSession = new LiveSession({
      host: this.#options,
      plan,
      settings: this.#settings(plan, room.picture),
      workers,
      journal,
      activity,
      causes,
      enricher,
      describer: this.#describer(plan, journal),
      labels: labelsOf(this.#options.labelMaps, identity.principalKey),
      room,
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
        ...{ inference, models, choice, metrics, world, journal, tokensPerSecond },
        principalKey: identity.principalKey,
        timeoutMs: modelTimeoutMs,
      }),
      novelty: novelty && novelty.session(identity.principalKey),
      prompt,
      outputSchema: policy && policy.outputSchema,
      metrics,
      world,
    });
  }
}

/** 24 days. A longer one would end at once. */
const LONGEST_TIMER_MS = 2 ** 31 - 1;
