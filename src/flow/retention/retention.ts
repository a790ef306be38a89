/** Retention: removes the events of runs that are old or too much, pass by pass, while the service goes on. See docs/retention.md. */

import type { Log } from "../../base/log.ts";
import type { Metrics } from "../../base/metrics.ts";
import { TaskGroup } from "../../base/tasks.ts";
import { pause, yieldToEventLoop } from "../../base/wait.ts";
import type { World } from "../../base/world.ts";
import { event } from "../../model/events/event_table.ts";
import type { RemovalReason } from "../../model/events/run_payloads.ts";
import { LIMITS } from "../../model/limits.ts";
import { RemovalPlan, type RunChoice } from "../../model/runs/removal.ts";
import { summaryOf } from "../../model/runs/run.ts";
import type { Timeline } from "../../store/log/timeline.ts";
import type { Caller } from "../caller.ts";
import { type RetentionLook, RetentionReport } from "./retention_report.ts";
import type { RunStanding } from "./run_standing.ts";

/** The settings of retention; undefined for what has no limit. */
export interface RetentionRules {
  readonly runHours: number | undefined;
  readonly runBytes: number | undefined;
}

export interface RetentionOptions {
  readonly timeline: Timeline;
  readonly rules: RetentionRules;
  readonly standing: RunStanding;
  readonly world: World;
  readonly metrics: Metrics;
}

/**
 * ```
 *   a pass:  look at every run ──► `events_removed` of each that goes, and its metric ──► its records leave the log
 *                                   nobody reads its events any more
 * ```
 *
 * A process that is killed in between goes on with what the events say at its next pass: see Timeline.removeRecords.
 */
export class Retention implements AsyncDisposable {
  readonly #options: RetentionOptions;
  readonly #log: Log;
  readonly #tasks = new TaskGroup();
  #passing: Promise<void> = Promise.resolve();
  #lastPassMs: number | null = null;

  constructor(options: RetentionOptions) {
    this.#options = options;
    this.#log = options.world.log.child("retention");
  }

  /** Whether any limit is set. */
  get isOn(): boolean {
    const { rules, standing } = this.#options;
    return Object.values(rules).some((limit) => limit !== undefined) || standing.sourceHours().size > 0;
  }

  /** The first pass is one interval after the start, when the service has read what it needs. */
  start(): void {
    this.#tasks.start(async (signal) => {
      while (await pause(this.#options.world, LIMITS.retention.passMs, signal)) {
        if (this.isOn) await this.pass();
      }
    });
  }

  /** Never rejects: what could not be removed goes with a later pass. Two passes do not overlap. */
  pass(): Promise<void> {
    this.#passing = this.#passing.then(() => this.#pass()).catch((error) => {
      if (this.#tasks.signal.aborted) return;
      this.#options.metrics.add("service_retention_failures_total");
      this.#log.error("a pass of retention failed", { error: String(error) });
    });
    return this.#passing;
  }

  /** What the next pass would remove of the caller's runs, and why the others stay. Removes nothing. */
  async look(caller: Caller): Promise<RetentionLook> {
    const report = new RetentionReport(caller.principalKey);
    for await (const choice of this.#choices()) report.add(choice);
    return { is_on: this.isOn, last_pass_at_ms: this.#lastPassMs, ...report.look() };
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#tasks.close();
    await this.#passing;
  }

  async #pass(): Promise<void> {
    const { timeline, world, metrics } = this.#options;
    let runs = 0;
    for await (const choice of this.#choices()) {
      this.#tasks.signal.throwIfAborted();
      if (choice.goes === null) continue;
      if (this.#removeRun(choice.runId, choice.goes)) runs++;
      await yieldToEventLoop();
    }
    const { events, bytes, failed } = await timeline.removeRecords();
    metrics.add("service_retention_failures_total", failed);
    if (runs > 0 || events > 0) this.#log.info("removed what retention says", { runs, events, bytes });
    this.#lastPassMs = Math.floor(world.now());
  }

  /** All runs that have events, the oldest first; decided in steps, with turns for others in between. */
  async *#choices(): AsyncGenerator<RunChoice, void> {
    const { timeline, standing, rules, world } = this.#options;
    const hours = standing.sourceHours();
    const isByAge = rules.runHours !== undefined || hours.size > 0;
    const plan = new RemovalPlan({
      nowMs: world.now(),
      deletedLimitMs: isByAge ? LIMITS.retention.deletedHours * 3_600_000 : undefined,
      bytesMax: rules.runBytes,
      bytesToFree: 0,
    });
    let looked = 0;
    for (const run of timeline.view.everyRun()) {
      if (run.removedSeq === 0) plan.add(standing.factsOf(run, hours));
      if (++looked % RUNS_PER_TURN === 0) await yieldToEventLoop();
    }
    for (const choice of plan.choices()) {
      yield choice;
      if (++looked % RUNS_PER_TURN === 0) await yieldToEventLoop();
    }
  }

  /** False where the run has changed meanwhile, so that it stays. */
  #removeRun(runId: string, reason: RemovalReason): boolean {
    const { timeline, standing, metrics } = this.#options;
    const [removed] = timeline.commit((view) => {
      const run = view.run(runId);
      if (run === undefined || run.removedSeq > 0 || standing.staysFor(run) !== null) return [];
      metrics.add("service_retention_removed_total", { what: "runs" });
      metrics.add("service_retention_removed_total", { what: "events" }, run.eventCount);
      metrics.add("service_retention_removed_bytes_total", { what: "events" }, run.logBytes);
      return [event("events_removed", runId, {
        reason,
        events: run.eventCount,
        bytes: run.logBytes,
        through_seq: run.lastSeq,
        run: summaryOf(run),
      })];
    });
    return removed !== undefined;
  }
}

const RUNS_PER_TURN = 2_048;
