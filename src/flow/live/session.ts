/** One live session: everything that belongs to it, from the Worker's first report to the terminal event of
 * its run.
 */

import type { Credit, SessionSettings } from "../../live/messages/messages.ts";
import type { LiveWorkers, SessionOrder, SessionPort } from "../../live/worker_pool.ts";
import type { PictureSize } from "../../media/live/picture_sizes.ts";
import { event, sessionEvent } from "../../model/events/event_table.ts";
import type { Labels } from "../../model/frames/label_map.ts";
import type { RestrictedZone } from "../../model/policies/zone.ts";
import type { NewEvent } from "../../model/runs/run.ts";
import type { ArmedChange } from "../sources/armed_sources.ts";
import { type PromptChange, sessionIsEnding } from "../policies/open_sessions.ts";
import { SessionEnding } from "./ending.ts";
import { SessionFaults } from "./faults.ts";
import type { SessionActivity } from "./journal/activity.ts";
import type { SessionIdentity } from "./journal/journal.ts";
import { SessionMarkers } from "./markers.ts";
import { RoomKeeper } from "./room_keeper.ts";
import type { ReconnectedSession, Reconnector, SourceGap } from "./reconnect.ts";
import type { SessionRoom } from "./session_room.ts";
import { SessionReports } from "./reports.ts";
import { Signalling } from "./signalling.ts";
import { SessionStages } from "./stages/session_stages.ts";
import { orAborted } from "./stages/stage.ts";
import type { StagedSession } from "./stages/staged_session.ts";
import { LiveView } from "./viewing/live_view.ts";
import { Snapshots } from "./viewing/snapshots.ts";

export interface LiveSessionOptions
  extends Pick<StagedSession, "host" | "plan" | "journal" | "causes" | "describer" | "enricher"> {
  readonly settings: SessionSettings;
  readonly workers: LiveWorkers;
  readonly activity: SessionActivity;
  /** Renames the types of markers for the principal. */
  readonly labels: Labels;
  /** The reserved memory, threads and session slot, which the session frees. */
  readonly room: SessionRoom;
  /** Aborts when the service closes. */
  readonly closing: AbortSignal;
  /** Called when the session has ended and its Worker has released everything. */
  readonly onReleased: () => void;
}

/**
 * ```
 *   Worker ─┬─ picture, clip, audio window, evidence clip, segment ──▶ stages/ ──▶ timeline, recordings
 *           ├─ view ────────────────────▶ LiveView ──[64 fragments, 4 MiB]──▶ each viewer
 *           ├─ answered, ICE restarted ─▶ Signalling ──▶ the publisher
 *           ├─ gap, resumed ────────────▶ Reconnector ──▶ another "pull" to the Worker
 *           └─ loop, range, restart, counts, picture size ──▶ timeline and metrics, at once
 *
 *   end(why) ─▶ SessionEnding
 * ```
 * See docs/live.md#stages-and-queues.
 */
export class LiveSession {
  readonly #options: LiveSessionOptions;
  readonly #aborting = new AbortController();
  /** Stops reconnecting a pulled source. */
  readonly #stopReconnecting = new AbortController();
  readonly #stages: SessionStages;
  readonly #reports: SessionReports;
  readonly #reconnected: ReconnectedSession;
  readonly #roomKeeper: RoomKeeper;
  readonly ending: SessionEnding;
  readonly signalling: Signalling;
  /** What it sees now. */
  readonly snapshots: Snapshots;
  /** Who watches it. */
  readonly view: LiveView;
  #port: SessionPort | null = null;
  #reconnector: Reconnector | null = null;
  /** Epoch milliseconds. */
  readonly openedMs: number;

  constructor(options: LiveSessionOptions) {
    const { host: { world, metrics }, plan: { identity }, journal, causes, room, enricher, closing } =
      options;
    const { sessionId } = identity;
    const send = (order: SessionOrder) => this.#port?.send(order);
    const acknowledge = (credit: Credit, count = 1) => send({ kind: "acknowledge", credit, count });
    const aborting = this.#aborting;
    this.#options = options;
    this.openedMs = world.now();
    aborting.signal.addEventListener("abort", () => causes.close(), { once: true });
    const faults = new SessionFaults({ identity, journal, metrics, world });
    const markers = new SessionMarkers({ ...options, sessionId, metrics, world });
    this.#stages = new SessionStages({
      ...options,
      acknowledge,
      isEnding: () => this.ending.hasBegun,
      onCut: (frame) => markers.onCut(frame),
    }, { aborting, onBug: (stage, error) => this.ending.onBug(stage, error) });
    this.ending = new SessionEnding({
      ...{ sessionId, journal, faults, enricher, aborting, closing, metrics, world },
      stop: () => this.#stop(),
      closeWorker: () => this.#port?.close() ?? Promise.resolve(),
      finishStages: () => this.#finishStages(),
      release: () => {
        room[Symbol.dispose]();
        options.onReleased();
      },
    });
    this.signalling = new Signalling({ world, send, signal: aborting.signal });
    this.#roomKeeper = new RoomKeeper({ sessionId, journal, room, send, world });
    this.snapshots = new Snapshots({ world, order: () => send({ kind: "snapshot" }) });
    this.view = new LiveView({
      world,
      metrics,
      order: (viewId) => send({ kind: "watch", viewId }),
      acknowledge: () => acknowledge("fragments"),
    });
    this.#reconnected = {
      ...{ identity, journal, world },
      send: (order) => {
        const { video } = order.info;
        if (video) this.#roomKeeper.reopen(video);
        send({ ...order, settings: options.settings });
      },
    };
    const { view, ending, signalling, snapshots } = this;
    this.#reports = new SessionReports({
      ...{ identity, journal, activity: options.activity, markers, faults, world },
      ...{ view, ending, signalling, snapshots, stages: this.#stages, roomKeeper: this.#roomKeeper },
      reconnector: () => this.#reconnector,
      reconnected: this.#reconnected,
    });
  }

  get identity(): SessionIdentity {
    return this.#options.plan.identity;
  }

  /** Another one after each roll-over. */
  get runId(): string {
    return this.#options.journal.runId;
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

  /** Whether its zone is that of a policy revision. */
  get hasPolicyZone(): boolean {
    return this.#options.plan.policy?.zone != null;
  }

  get activity(): SessionActivity {
    return this.#options.activity;
  }

  /** What the model is asked now; null for the built-in prompt. */
  get prompt(): string | null {
    return this.#options.describer.prompt;
  }

  /** The size of the newest frames; null before the first. */
  get pictureSize(): PictureSize | null {
    return this.#roomKeeper.newest;
  }

  /** Null while a publisher is not connected; a pulled source is from the start. */
  get connectedMs(): number | null {
    return this.#reconnector ? this.openedMs : this.#reports.connectedMs;
  }

  /** Set while a pulled source gives no frames. */
  get gap(): SourceGap | null {
    return this.#reconnector?.gap ?? null;
  }

  /** Hands the session to a Worker. */
  open(): void {
    const { host: { metrics }, workers, settings, plan: { opening } } = this.#options;
    metrics.add("service_pipeline_generations_started_total");
    this.#port = workers.open(settings, opening, (report) => this.#reports.take(report));
  }

  /**
   * The SDP answer to the session's offer. Where there is none it discards the session. Errors: those of
   * `Signalling`.
   */
  async answer(signal: AbortSignal): Promise<string> {
    try {
      return await this.signalling.answer(signal);
    } catch (error) {
      await this.ending.discard();
      throw error;
    }
  }

  /**
   * Starts the stages. Call it when the run is on the timeline. The session owns `reconnector` from then on.
   */
  run(reconnector: Reconnector | null): void {
    this.ending.hasRun();
    this.#reconnector = reconnector;
    this.#options.host.metrics.add("service_pipeline_sessions_created_total");
    this.#stages.start();
    if (!reconnector) return;
    const signal = AbortSignal.any([this.#stopReconnecting.signal, this.#aborting.signal]);
    this.#stages.run("decode", () => orAborted(reconnector.run(this.#reconnected, signal), signal));
  }

  /**
   * Goes on in the run `runId`, which `first` creates, and completes the one before. False where the session
   * is ending. Errors: the refusals of the timeline; then nothing has changed.
   */
  rollOver(runId: string, first: readonly NewEvent[]): boolean {
    const { journal, plan: { identity: { sessionId: session_id } } } = this.#options;
    if (this.ending.hasBegun || !journal.isOpen) return false;
    const lost = this.gap &&
      event("source_gap", runId, { session_id, reason: this.gap.reason, pts_ms: null });
    journal.rollOver(runId, lost ? [...first, lost] : first);
    this.#stages.rolledOver(runId);
    this.view.endOfRun();
    return true;
  }

  /** Whether what zone and trigger find from here on is an alarm. */
  setArmed(isArmed: boolean): void {
    this.#port?.send({ kind: "arm", isArmed });
  }

  /** Like `setArmed`, and appends an event that tells of it. */
  arm({ isArmed, reason, principalKey, untilMs }: ArmedChange): void {
    const { sessionId, sourceUri } = this.identity;
    const payload = {
      session_id: sessionId,
      source_uri: sourceUri,
      reason,
      principal_key: principalKey,
      until_ms: untilMs,
    };
    this.#options.journal.append([
      isArmed ? sessionEvent("source_armed", payload) : sessionEvent("source_disarmed", payload),
    ]);
    this.setArmed(isArmed);
  }

  async updatePrompt(change: PromptChange, timeoutMs: number): Promise<void> {
    if (this.ending.hasBegun) throw sessionIsEnding();
    await this.#options.describer.updatePrompt(change, timeoutMs);
  }

  #stop(): void {
    this.#options.describer.close();
    this.view.close();
    this.#roomKeeper[Symbol.dispose]();
    this.#stages.drop();
  }

  async #finishStages(): Promise<void> {
    this.#stopReconnecting.abort();
    await this.#stages.finish();
    await this.#reconnector?.[Symbol.asyncDispose]();
  }
}
