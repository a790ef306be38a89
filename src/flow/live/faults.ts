/** What goes wrong in a live session: counts its faults, and tells of bugs and of restarts of its decoder. */

import type { LabelsOf, Metrics } from "../../contract/metrics.ts";
import type { World } from "../../base/world.ts";
import type { ReportOf } from "../../live/messages/messages.ts";
import { sessionEvent } from "../../model/events/event_table.ts";
import type { LiveJournal, SessionIdentity } from "./journal/journal.ts";

/** How many restarts of the decoder, within how long, are a fault; one that happens now and then is not. */
const FAULTY_RESTARTS = 3;
const FAULTY_RESTARTS_MS = 60_000;

type FaultLabels = LabelsOf<"service_pipeline_worker_faults_total">;
export type FaultStage = FaultLabels["stage"];

export interface SessionFaultsOptions {
  readonly identity: SessionIdentity;
  readonly journal: LiveJournal;
  readonly metrics: Metrics;
  readonly world: World;
}

export class SessionFaults {
  readonly #options: SessionFaultsOptions;
  #hasAny = false;
  /** When the decoder was restarted lately, epoch milliseconds. */
  #restartTimesMs: readonly number[] = [];

  constructor(options: SessionFaultsOptions) {
    this.#options = options;
  }

  get hasAny(): boolean {
    return this.#hasAny;
  }

  count(stage: FaultStage, reason: FaultLabels["reason"]): void {
    const { metrics, world } = this.#options;
    this.#hasAny = true;
    metrics.add("service_pipeline_worker_faults_total", { stage, reason });
    metrics.set("service_pipeline_last_fault_timestamp_seconds", Math.floor(world.now() / 1000));
  }

  onBug(stage: FaultStage, error: unknown): void {
    this.#options.world.log.error("live stage failed", {
      session_id: this.#options.identity.sessionId,
      stage,
      error: error instanceof Error ? error.stack ?? error.message : String(error),
    });
    this.count(stage, isNotStarted(stage, error) ? "spawn_failure" : "panic");
  }

  onDecoderRestarted({ reason, ptsMs, restarts }: ReportOf<"decoder_restarted">): void {
    const { journal, metrics, world, identity: { sessionId, generation } } = this.#options;
    metrics.add("service_pipeline_decoder_restarts_total");
    const nowMs = world.now();
    const isRecent = (timeMs: number) => nowMs - timeMs < FAULTY_RESTARTS_MS;
    this.#restartTimesMs = [...this.#restartTimesMs.filter(isRecent), nowMs];
    if (this.#restartTimesMs.length >= FAULTY_RESTARTS) {
      this.#restartTimesMs = [];
      this.count("decode", "unexpected_exit");
    }
    const payload = {
      session_id: sessionId,
      reason,
      pts_ms: ptsMs,
      restarts,
      pipeline_generation: generation,
    };
    journal.append([sessionEvent("decoder_restarted", payload)]);
  }
}

/** Only the stage of audio starts a program; Deno says with these errors that there is none. */
function isNotStarted(stage: FaultStage, error: unknown): boolean {
  const { NotFound, PermissionDenied, NotCapable } = Deno.errors;
  return stage === "audio" && [NotFound, PermissionDenied, NotCapable].some((kind) => error instanceof kind);
}
