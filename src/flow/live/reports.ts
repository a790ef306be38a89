/** What the Worker of a live session reports: hands each report to the part of the session that it is for. */

import type { World } from "../../base/world.ts";
import type { ReportOf, SessionReport } from "../../live/messages/messages.ts";
import { sessionEvent } from "../../model/events/event_table.ts";
import type { SessionEnding } from "./ending.ts";
import type { SessionFaults } from "./faults.ts";
import type { SessionActivity } from "./journal/activity.ts";
import type { LiveJournal, SessionIdentity } from "./journal/journal.ts";
import type { SessionMarkers } from "./markers.ts";
import type { RoomKeeper } from "./room_keeper.ts";
import type { ReconnectedSession, Reconnector } from "./reconnect.ts";
import type { Signalling } from "./signalling.ts";
import type { SessionStages } from "./stages/session_stages.ts";
import type { LiveView } from "./viewing/live_view.ts";
import type { Snapshots } from "./viewing/snapshots.ts";

export interface SessionReportsOptions {
  readonly identity: SessionIdentity;
  readonly journal: LiveJournal;
  readonly activity: SessionActivity;
  readonly stages: SessionStages;
  readonly signalling: Signalling;
  readonly markers: SessionMarkers;
  readonly faults: SessionFaults;
  readonly roomKeeper: RoomKeeper;
  readonly snapshots: Snapshots;
  readonly view: LiveView;
  readonly ending: SessionEnding;
  /** Null for a publisher. */
  readonly reconnector: () => Reconnector | null;
  readonly reconnected: ReconnectedSession;
  readonly world: World;
}

export class SessionReports {
  readonly #options: SessionReportsOptions;
  #connectedMs: number | null = null;

  constructor(options: SessionReportsOptions) {
    this.#options = options;
  }

  /** When the publisher was connected, epoch milliseconds; null before that. */
  get connectedMs(): number | null {
    return this.#connectedMs;
  }

  /**
   * Called for each message of the Worker. An error must not leave this method: it would end every session.
   */
  take(report: SessionReport): void {
    const { stages, ending } = this.#options;
    try {
      if (!stages.offer(report)) this.#handle(report);
    } catch (error) {
      ending.onBug("event_writer", error);
    }
  }

  #handle(report: SessionReport): void {
    const { journal, activity, signalling, markers, faults, roomKeeper, snapshots, view, ending } =
      this.#options;
    const { reconnector, reconnected } = this.#options;
    switch (report.kind) {
      case "answered":
        return signalling.onAnswered(report);
      case "refused":
        return signalling.onRefused(report);
      case "ice_restarted":
        return signalling.onIceRestarted(report);
      case "connected":
        return this.#onConnected(report);
      case "loop_detected":
        return markers.onLoop(report.frame);
      case "range":
        return markers.onRange(report.range);
      case "decoder_restarted":
        return faults.onDecoderRestarted(report);
      case "gap":
        return reconnector()?.onGap(reconnected, report);
      case "resumed":
        return reconnector()?.onResumed(reconnected);
      case "packets_lost":
        return this.#onPacketsLost(report);
      case "picture_size":
        return roomKeeper.onFrames(report);
      case "counts":
        return journal.count(report.counts);
      case "samples":
        return activity.onSamples(report.samples);
      case "snapshot":
        return snapshots.onSnapshot(report.snapshot);
      case "view":
        return view.onReport(report.view);
      case "ended":
        return ending.onEnded(report);
      case "closed":
        signalling.onClosed();
        return void ending.end({ rank: 1, why: "failed", reason: "peer_state_channel_closed" });
    }
  }

  /** From here on the run reads `processing`; that of a pulled source does since `live_source_opened`. */
  #onConnected({ tookMs }: ReportOf<"connected">): void {
    const { journal, world, identity: { sessionId: session_id, generation } } = this.#options;
    this.#connectedMs = world.now();
    const payload = { session_id, connect_ms: Math.round(tookMs), pipeline_generation: generation };
    journal.append([sessionEvent("publisher_connected", payload)]);
  }

  #onPacketsLost({ reason }: ReportOf<"packets_lost">): void {
    const { journal, world, identity: { sessionId } } = this.#options;
    world.log.warn(
      "clips, recording and live view of a live source are without some of its pictures or sound",
      { run_id: journal.runId, session_id: sessionId, reason },
    );
  }
}
