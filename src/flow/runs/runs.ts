/** The life of a run: create, list, read, stop, keep alive, delete. See docs/api/runs.md#runs. */

import type { Metrics } from "../../contract/metrics.ts";
import { refuse } from "../../contract/refusal.ts";
import { yieldToEventLoop } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import type { CreateRunBody } from "../../model/api/runs.ts";
import { event } from "../../model/events/event_table.ts";
import { FieldRules, type IdentifyModel, quoted } from "../../model/field_rules.ts";
import { newRunId } from "../../model/identifiers.ts";
import type { Mode } from "../../model/mode.ts";
import { type RunStatus, type RunView, statusOf } from "../../model/runs/run.ts";
import type { RunOrder, RunPlace } from "../../model/runs/run_register.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { HeldBytes } from "../../store/space/held_bytes.ts";
import type { Caller } from "../caller.ts";
import type { WorkEvent } from "../idempotency.ts";
import { cursorNumbers, PageEntries, pageOf, type PageQuery } from "../list_page.ts";
import { actionableRun, ownedRun, ownedRunOrTombstone } from "./ownership.ts";
import type { RunWork, WorkProgress } from "./run_work.ts";

/** A run in responses; an unknown value is an empty string. */
export interface RunSummary {
  readonly run_id: string;
  readonly status: RunStatus;
  readonly mode: string;
  readonly model: string;
  readonly source_uri: string;
  /** The name that its upload had. */
  readonly source_name?: string;
  readonly on_hold: boolean;
  readonly events_removed: boolean;
  readonly created_at: string;
  readonly updated_at: string;
}

/** A run of the list, and where the list reads on behind it. */
export interface ListedRun {
  readonly place: RunPlace;
  readonly summary: RunSummary;
}

export type ListedRuns = AsyncIterable<readonly ListedRun[]> | PageEntries<ListedRun>;

/** Query values as they came. */
export interface RunListQuery extends PageQuery {
  readonly order?: string | undefined;
}

/** Listed in one turn: it takes some milliseconds at most. */
const RUNS_PER_BATCH = 256;

export interface CreatedRun {
  readonly run_id: string;
  readonly request_id: string;
  readonly status: "pending";
  readonly mode: Mode;
  readonly model: string | null;
}

/** The answer to the request that created a run, from its `run_created`. */
export function recreated({ runId, payload }: WorkEvent, requestId: string): CreatedRun {
  return createdRun(runId, requestId, JSON.parse(payload));
}

function createdRun(
  runId: string,
  requestId: string,
  { mode, model }: Pick<CreatedRun, "mode" | "model">,
): CreatedRun {
  return { run_id: runId, request_id: requestId, status: "pending", mode, model };
}

export interface RunsOptions {
  readonly timeline: Timeline;
  readonly world: World;
  readonly metrics: Metrics;
  readonly work: RunWork;
  readonly held: Pick<HeldBytes, "requireHold">;
  /** Knows the models that a caller may name. */
  readonly inference: {
    /** The id that each of these models is known by. */
    identify(models: readonly string[], signal: AbortSignal): Promise<IdentifyModel>;
  };
  readonly activeStreamLimit: number;
  readonly streamTtlMs: number;
}

export class Runs {
  readonly #options: RunsOptions;

  constructor(options: RunsOptions) {
    this.#options = options;
  }

  /** Errors: 422 on `mode` and `model`, 409 on `run_id` when the caller's active runs reach the limit. */
  async create(caller: Caller, body: CreateRunBody): Promise<CreatedRun> {
    const { timeline, world, metrics, inference, activeStreamLimit, streamTtlMs } = this.#options;
    const identify = await inference.identify(body.model == null ? [] : [body.model], caller.signal);
    const rules = new FieldRules();
    const mode = rules.mode(body.mode);
    const model = body.model == null ? null : rules.model(body.model, identify);
    rules.check();
    const runId = newRunId(world.randomBytes);
    timeline.commit((view) => {
      const active = view.activeCount(caller.principalKey, world.now(), streamTtlMs);
      if (active >= activeStreamLimit) {
        throw refuse.conflict("run_id", `Cannot create a run as ${activeLimitReached(activeStreamLimit)}`);
      }
      return [event("run_created", runId, {
        request_id: caller.requestId,
        mode,
        model,
        principal_key: caller.principalKey,
        tenant_id: caller.tenantId,
      })];
    });
    metrics.add("service_runs_created_total");
    return createdRun(runId, caller.requestId, { mode, model });
  }

  /**
   * The caller's runs in order of creation, those that were deleted or removed by retention excluded, and
   * those that are created while the list is read. `order` is `oldest` or `newest` first. Errors: 422 on
   * `limit`, `cursor`, `order`.
   */
  list(caller: Caller, { order = "oldest", ...query }: RunListQuery): ListedRuns {
    if (order !== "oldest" && order !== "newest") {
      throw refuse.invalid("order", `must be oldest or newest: got ${quoted(order)}`);
    }
    const page = pageOf(query);
    const [createdMs, firstSeq] = cursorNumbers(page, 2) ?? [];
    const after = createdMs === undefined ? null : { createdMs, firstSeq: firstSeq! };
    // one more tells whether there are others
    const count = Math.min(RUNS_PER_BATCH, (page?.limit ?? Infinity) + 1);
    const batches = this.#batches(caller, { after, isNewestFirst: order === "newest" }, count);
    return page === null ? batches : new PageEntries(batches, page, ({ place }) => placeText(place));
  }

  /** Each batch finds its place anew, as runs come and go between two of them. */
  async *#batches(
    { principalKey }: Caller,
    order: RunOrder,
    count: number,
  ): AsyncIterable<readonly ListedRun[]> {
    const { timeline: { view } } = this.#options;
    const { lastSeq } = view;
    for (let { after } = order;;) {
      const batch: ListedRun[] = [];
      for (const run of view.runsOf(principalKey, { ...order, after })) {
        if (run.firstSeq > lastSeq) continue;
        const { createdMs, firstSeq } = run;
        batch.push({ place: { createdMs, firstSeq }, summary: this.#summary(run) });
        if (batch.length === count) break;
      }
      if (batch.length > 0) yield batch;
      if (batch.length < count) return;
      after = batch.at(-1)!.place;
      await yieldToEventLoop();
    }
  }

  read(caller: Caller, runId: string): RunSummary {
    return this.#summary(ownedRun(this.#options.timeline.view, caller, runId));
  }

  state(caller: Caller, runId: string): RunStatus {
    return this.#status(ownedRun(this.#options.timeline.view, caller, runId));
  }

  /** How far the decode for the run is; null where none is under way. */
  progress(caller: Caller, runId: string): WorkProgress | null {
    return this.#options.work.progressOf(ownedRun(this.#options.timeline.view, caller, runId).runId);
  }

  stop(caller: Caller, runId: string): void {
    const { timeline, work } = this.#options;
    timeline.commit((view) => {
      const run = actionableRun(view, caller, runId, this.#clock(), "stop");
      return [event("stop_requested", run.runId, { request_id: caller.requestId })];
    });
    work.end(runId);
  }

  keepalive(caller: Caller, runId: string): void {
    this.#options.timeline.commit((view) => {
      const run = actionableRun(view, caller, runId, this.#clock(), "keep alive");
      return [event("keepalive_refreshed", run.runId, { request_id: caller.requestId })];
    });
  }

  /**
   * Holds a run, ended or not, or gives it free. Writes nothing where it is as wanted already. Errors: 409 on
   * `run_id` where the caller would hold too much.
   */
  hold(caller: Caller, runId: string, isWanted: boolean): void {
    this.#options.timeline.commit((view) => {
      const run = ownedRun(view, caller, runId);
      if (run.onHold === isWanted) return [];
      if (isWanted) this.#options.held.requireHold(run);
      const payload = { request_id: caller.requestId };
      return [
        isWanted ? event("hold_placed", run.runId, payload) : event("hold_released", run.runId, payload),
      ];
    });
  }

  /**
   * The first delete appends the event. A later one by the owner finds the tombstone, appends nothing and
   * succeeds. Errors: 409 on `run_id` while the run is on hold.
   */
  delete(caller: Caller, runId: string): void {
    const { timeline, work } = this.#options;
    timeline.commit((view) => {
      const run = ownedRunOrTombstone(view, caller, runId);
      if (run.onHold && !run.deleted) {
        throw refuse.conflict(
          "run_id",
          "Cannot delete a run that is on hold: release it with DELETE /v1/runs/:id/hold first",
        );
      }
      return run.deleted ? [] : [event("run_deleted", run.runId, { request_id: caller.requestId })];
    });
    work.end(runId);
  }

  #clock(): { nowMs: number; ttlMs: number } {
    return { nowMs: this.#options.world.now(), ttlMs: this.#options.streamTtlMs };
  }

  /** Decides here, on every read, whether the run has expired: see {@link statusOf}. */
  #status(run: RunView): RunStatus {
    const { nowMs, ttlMs } = this.#clock();
    return statusOf(run, nowMs, ttlMs);
  }

  #summary(run: RunView): RunSummary {
    return {
      run_id: run.runId,
      status: this.#status(run),
      mode: run.mode,
      model: run.model,
      source_uri: run.sourceUri,
      ...(run.sourceName !== "" && { source_name: run.sourceName }),
      on_hold: run.onHold,
      events_removed: run.removedSeq > 0,
      created_at: new Date(run.createdMs).toISOString(),
      updated_at: new Date(run.lastActivityMs).toISOString(),
    };
  }
}

function placeText({ createdMs, firstSeq }: RunPlace): string {
  return `${createdMs}-${firstSeq}`;
}

/** Why no run can begin, and what helps. */
export function activeLimitReached(limit: number): string {
  return `the limit of active runs is reached: ${limit}/${limit}. End or delete one of them, or raise SERVICE_ACTIVE_STREAM_LIMIT`;
}
