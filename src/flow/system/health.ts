/** Whether live sessions and model calls are well, judged by the metrics of the process. See
 * docs/api/system.md#health-system-and-metrics.
 */

import type { GaugeName, Metrics } from "../../contract/metrics.ts";
import type { World } from "../../base/world.ts";
import type { ToolTrials } from "../../media/trials/tool_trials.ts";
import { NEVER_ABORTED } from "../../base/wait.ts";
import { unknownModelText } from "../../model/infer/model_list.ts";
import { LIMITS } from "../../contract/limits.ts";
import { LEAST_RESERVATION } from "../live/capacity.ts";
import type { Inference } from "../infer/inference.ts";
import type { LiveModelChoice } from "../live/describing/live_model_choice.ts";
import type { LiveRegistry } from "../live/registry.ts";
import type { AlwaysOn } from "../cameras/always_on.ts";

export interface HealthLook {
  readonly result: "faulted" | "saturated" | "healthy" | "idle";
  /** Why, the gravest first; never empty. */
  readonly reasons: readonly HealthReason[];
}

interface HealthReason {
  readonly code: string;
  /** A sentence without its full stop. */
  readonly text: string;
  /** When it happened, epoch milliseconds; null for what lasts. */
  readonly at_ms: number | null;
}

/** A fault or a refusal counts for so long. */
const RECENT_MS = 60_000;

export interface HealthOptions {
  readonly metrics: Metrics;
  readonly registry: LiveRegistry;
  readonly alwaysOn: AlwaysOn;
  readonly trials: Pick<ToolTrials, "faults">;
  readonly inference: Inference;
  readonly liveModels: LiveModelChoice;
  readonly world: Pick<World, "now">;
}

export class HealthView {
  readonly #options: HealthOptions;

  constructor(options: HealthOptions) {
    this.#options = options;
  }

  async look(): Promise<HealthLook> {
    await this.#options.inference.renewModels(NEVER_ABORTED);
    const { result, reasons } = await this.#ofSessions();
    return { result, reasons: [...this.#ofCameras(), ...this.#ofIdleModel(result), ...reasons] };
  }

  /** A model of live sessions that its server does not know is no fault until a session asks for it. */
  #ofIdleModel(result: HealthLook["result"]): HealthReason[] {
    const { inference, liveModels } = this.#options;
    const unknown = inference.unknown(liveModels.now.first);
    if (unknown === null || result === "faulted") return [];
    return [lasting("model_unknown", unknownModelText(unknown.model, unknown.has))];
  }

  /** They do not decide over the result, which is about the service itself. */
  #ofCameras(): HealthReason[] {
    const { alwaysOn, world } = this.#options;
    const down = alwaysOn.down.filter(({ sinceMs }) => world.now() - sinceMs >= RECENT_MS).length;
    const cameras = down === 1
      ? "1 camera that is always watched gives"
      : `${down} cameras that are always watched give`;
    return [
      ...alwaysOn.isFileBroken
        ? [
          lasting(
            "sources_file_faulty",
            "The file of sources has a fault, so an earlier one counts: see the log",
          ),
        ]
        : [],
      ...down > 0 ? [lasting("camera_down", `${cameras} no frames for over a minute`)] : [],
    ];
  }

  async #ofSessions(): Promise<HealthLook> {
    const faults = await this.#faults();
    if (faults.length > 0) return { result: "faulted", reasons: faults };
    const loads = await this.#loads();
    if (loads.length > 0) return { result: "saturated", reasons: loads };
    const running = await this.#value("service_pipeline_generations_active");
    return running > 0
      ? { result: "healthy", reasons: [lasting("sessions_running", `${sessions(running)} running`)] }
      : { result: "idle", reasons: [lasting("no_session", "No live session is running")] };
  }

  async #faults(): Promise<HealthReason[]> {
    const faultMs = await this.#recent("service_pipeline_last_fault_timestamp_seconds");
    const { registry: { detached }, trials } = this.#options;
    return [
      ...trials.faults.map(({ cannot, reason }) =>
        lasting("decoder_unusable", `The service's ffmpeg cannot ${cannot}: ${reason}`)
      ),
      ...await this.#unknownModels(),
      ...faultMs === null
        ? []
        : [{ code: "worker_fault", text: "A worker of a live session has failed", at_ms: faultMs }],
      ...detached === 0
        ? []
        : [lasting("detached_worker", `${detached} ended live sessions still hold their worker`)],
    ];
  }

  /** The unknown models of questions of the last minute, and of the live sessions that are running. */
  async #unknownModels(): Promise<HealthReason[]> {
    const { inference, liveModels } = this.#options;
    const isLive = await this.#value("service_pipeline_generations_active") > 0;
    const live = isLive ? inference.unknown(liveModels.now.first) : null;
    const refused = inference.refused(RECENT_MS).filter(({ model }) => model !== live?.model);
    return [...live ? [live] : [], ...refused].slice(0, LIMITS.backend.modelsNamed)
      .map(({ model, has }) => lasting("model_unknown", unknownModelText(model, has)));
  }

  async #loads(): Promise<HealthReason[]> {
    const waiting = await this.#value("service_infer_admission_waiting");
    const refusedMs = await this.#recent("service_media_capacity_last_rejection_timestamp_seconds");
    return [
      ...waiting === 0
        ? []
        : [lasting("inference_waiting", `${waiting} calls of models wait until others have ended`)],
      ...await this.#isFull() ? [lasting("capacity_full", "There is no room for another live session")] : [],
      ...refusedMs === null ? [] : [{
        code: "admission_rejected",
        text: "A live session was refused because there was no room for it",
        at_ms: refusedMs,
      }],
    ];
  }

  /** Whether not even a session of 720p without a zone would be let in. */
  async #isFull(): Promise<boolean> {
    const [memory, memoryLimit, threads, threadLimit, running] = await Promise.all([
      this.#value("service_media_capacity_memory_reserved_bytes"),
      this.#value("service_media_capacity_memory_limit_bytes"),
      this.#value("service_media_capacity_worker_threads_reserved"),
      this.#value("service_media_capacity_worker_thread_limit"),
      this.#value("service_pipeline_generations_active"),
    ]);
    return memoryLimit - memory < LEAST_RESERVATION.memoryBytes ||
      threadLimit - threads < LEAST_RESERVATION.threads || running >= LIMITS.whip.sessionsMax;
  }

  /** The time of a gauge that has one, epoch milliseconds; null where it is long ago or was never set. */
  async #recent(gauge: GaugeName): Promise<number | null> {
    const atMs = await this.#value(gauge) * 1000;
    return this.#options.world.now() - atMs < RECENT_MS + 1000 ? atMs : null; // the gauge has whole seconds
  }

  #value(gauge: GaugeName): Promise<number> {
    return this.#options.metrics.value(gauge);
  }
}

function lasting(code: string, text: string): HealthReason {
  return { code, text, at_ms: null };
}

function sessions(count: number): string {
  return count === 1 ? "1 live session is" : `${count} live sessions are`;
}
