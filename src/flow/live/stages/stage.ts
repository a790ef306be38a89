/** One stage of a live session: what was reported for it waits in a queue, and is worked off one after the
 * other.
 */

import type { LabelsOf } from "../../../contract/metrics.ts";
import { NEVER_ABORTED } from "../../../base/wait.ts";
import type { Credit } from "../../../live/messages/messages.ts";
import { LiveQueue } from "./queue.ts";

/** What takes the reports of one kind. */
export interface ReportTaker<Report> {
  readonly stages: readonly AnyStage[];
  offer(report: Report): void;
}

/** A stage without the type of its items. */
export type AnyStage = Pick<Stage<never>, "name" | "run" | "drop" | "end" | "rolledOver">;

/** Gives credits back to the Worker. */
export type Acknowledge = (credit: Credit, count?: number) => void;

export interface StageOptions<Item> {
  /** The stage as the metrics of faults name it. */
  readonly name: LabelsOf<"service_pipeline_worker_faults_total">["stage"];
  /** How many items may wait. */
  readonly bound: number;
  /** What each item took of the Worker; null where the stage gives it back itself. */
  readonly credit: Credit | null;
  /** Whether a full queue loses the item that has waited longest; otherwise it loses the one that comes. */
  readonly keepsNewest?: true;
  /** Whether nothing waits any more once the session ends, as nobody waits for a model then. */
  readonly awaitsModel?: true;
  /** Whether work goes on where that of the session is aborted: all that was accepted is worked off. */
  readonly isNeverAborted?: true;
  /** What it throws after the signal has aborted is its normal end. */
  work(item: Item, signal: AbortSignal): Promise<void>;
  /** Called for an item that found no place, or is dropped. */
  onLost(item: Item): void;
  /** Called after the last item. */
  finish?(): Promise<void>;
  /** The session goes on in another run. */
  rolledOver?(runId: string): void;
}

/**
 * ```
 *   offer ─▶ [bound] ─▶ work ──────────────┬─▶ the credit goes back to the Worker
 *               └─ full, or ended ─▶ onLost ┘
 *   drop ─▶ onLost for each item that waits         end ─▶ nothing more is accepted; what waits is worked off
 * ```
 */
export class Stage<Item> implements ReportTaker<Item> {
  readonly stages: readonly AnyStage[] = [this];
  readonly #acknowledge: Acknowledge;
  readonly #options: StageOptions<Item>;
  readonly #queue: LiveQueue<Item>;

  constructor(acknowledge: Acknowledge, options: StageOptions<Item>) {
    this.#acknowledge = acknowledge;
    this.#options = options;
    this.#queue = new LiveQueue(options.bound);
  }

  get name(): StageOptions<Item>["name"] {
    return this.#options.name;
  }

  offer(item: Item): void {
    const { keepsNewest, onLost } = this.#options;
    const lost = keepsNewest ? this.#queue.offerNewest(item) : this.#queue.offer(item) ? null : item;
    if (lost === null) return;
    onLost(lost);
    this.#giveBack();
  }

  /** Works off the items until the stage has ended, or the signal aborts. */
  async run(sessionSignal: AbortSignal): Promise<void> {
    const { work, finish, isNeverAborted } = this.#options;
    const signal = isNeverAborted ? NEVER_ABORTED : sessionSignal;
    for await (const item of this.#queue.items(signal)) {
      await orAborted(work(item, signal), signal);
      this.#giveBack();
    }
    await finish?.();
  }

  /** The session ends: what waits for a model is lost. */
  drop(): void {
    const { awaitsModel, onLost } = this.#options;
    if (awaitsModel) { for (const item of this.#queue.clear()) onLost(item); }
  }

  end(): void {
    this.#queue.end();
  }

  rolledOver(runId: string): void {
    this.#options.rolledOver?.(runId);
  }

  #giveBack(): void {
    const { credit } = this.#options;
    if (credit !== null) this.#acknowledge(credit);
  }
}

/** Waits for `work`. What it throws after the signal has aborted is its normal end. */
export async function orAborted(work: Promise<unknown>, signal: AbortSignal): Promise<void> {
  try {
    await work;
  } catch (error) {
    if (!signal.aborted) throw error;
  }
}
