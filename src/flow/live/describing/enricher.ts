/** Explains a session's events once each: by the description of their picture, or by the reason why there is
 * none.
 */

import type { LabelsOf, Metrics } from "../../../contract/metrics.ts";
import { pause, timer } from "../../../base/wait.ts";
import type { World } from "../../../base/world.ts";
import { event } from "../../../model/events/event_table.ts";
import { LIMITS } from "../../../contract/limits.ts";
import {
  type EnrichedCause,
  enrichedPayload,
  type Enrichment,
  type EnrichPlan,
  explainedFrame,
  isToBeExplained,
  mayBeExplained,
} from "../../../model/events/enrichment.ts";
import type { NewEvent } from "../../../model/runs/run.ts";
import type { Timeline } from "../../../store/timeline/timeline.ts";
import { seekTime } from "../../events_by_time.ts";

export interface EnricherOptions {
  readonly plan: EnrichPlan;
  /** Whether a backend serves the model of live sessions now. */
  readonly hasModel: () => boolean;
  /**
   * Appends the events to their own runs, which may have ended; false where the disk or the quota refuses
   * them.
   */
  readonly append: (events: readonly NewEvent[]) => boolean;
  readonly metrics: Metrics;
  readonly world: World;
}

/** An event whose explanation is awaited. */
interface OpenEvent {
  readonly seq: number;
  readonly runId: string;
  readonly kind: string;
  readonly payload: unknown;
  readonly frameIndex: number | null;
  readonly deadline: Disposable;
}

/** An explanation that the disk has refused so far. */
interface Unwritten {
  readonly event: NewEvent;
  readonly outcome: EnrichmentOutcome;
}

type EnrichmentOutcome = LabelsOf<"service_pipeline_enrichments_total">["outcome"];

/** Between attempts to write what the disk has refused, and how many of them when the session ends. */
const RETRY_MS = 1_000;
const LAST_ATTEMPTS = 5;

/**
 * Whoever comes first explains an event: the description of its picture, a stage that drops the picture, the
 * deadline, or the end of the session. After that it is not open any more, so nobody explains it again.
 */
export class Enricher {
  readonly #options: EnricherOptions;
  readonly #open = new Map<number, OpenEvent>();
  #unwritten: readonly Unwritten[] = [];
  #retry: Disposable | null = null;

  constructor(options: EnricherOptions) {
    this.#options = options;
  }

  /**
   * The field with which such an event says that its explanation follows; none where the session does not
   * explain it.
   */
  announced(cause: EnrichedCause): { readonly enrichment_deadline_ms?: number } {
    const { on, deadlineMs } = this.#options.plan;
    return on.includes(cause) ? { enrichment_deadline_ms: deadlineMs } : {};
  }

  /** Call it for each event that was written. */
  note({ kind, runId, payload }: NewEvent, seq: number): void {
    if (!isToBeExplained({ kind, payload })) return;
    const { plan, hasModel, world } = this.#options;
    const deadline = timer(world, plan.deadlineMs, () => this.#explain(open, { reason: "deadline" }));
    const open: OpenEvent = { seq, runId, kind, payload, frameIndex: explainedFrame(payload), deadline };
    const isFull = this.#open.size >= LIMITS.live.enrichmentsOpen;
    this.#open.set(seq, open);
    if (!hasModel()) this.#explain(open, { reason: "no_model" });
    else if (isFull) this.#explain(open, { reason: "overloaded" });
  }

  /** What became of the picture of a frame. */
  settle(frameIndex: number, enrichment: Enrichment): void {
    for (const open of [...this.#open.values()]) {
      if (open.frameIndex === frameIndex) this.#explain(open, enrichment);
    }
  }

  /** The session has ended: explains what is open, and writes what was refused before, in a few attempts. */
  async finish(signal: AbortSignal): Promise<void> {
    for (const open of [...this.#open.values()]) this.#explain(open, { reason: "session_ended" });
    this.#retry?.[Symbol.dispose]();
    for (let attempts = 1; this.#unwritten.length > 0 && attempts < LAST_ATTEMPTS; attempts++) {
      if (!await pause(this.#options.world, RETRY_MS, signal)) return;
      this.#write();
    }
    this.#retry?.[Symbol.dispose]();
  }

  #explain(open: OpenEvent, enrichment: Enrichment): void {
    if (!this.#open.delete(open.seq)) return;
    open.deadline[Symbol.dispose]();
    const outcome = "reason" in enrichment ? enrichment.reason : "described";
    const explained = event("event_enriched", open.runId, enrichedPayload(open, enrichment));
    this.#unwritten = [...this.#unwritten, { event: explained, outcome }];
    this.#write();
  }

  #write(): void {
    const { append, metrics, world } = this.#options;
    this.#retry?.[Symbol.dispose]();
    this.#retry = null;
    const unwritten = this.#unwritten;
    if (append(unwritten.map(({ event }) => event))) {
      this.#unwritten = [];
      for (const { outcome } of unwritten) metrics.add("service_pipeline_enrichments_total", { outcome });
    } else {
      // Those of a disk that stays full: the oldest are lost.
      this.#unwritten = unwritten.slice(-LIMITS.live.enrichmentsOpen);
      this.#retry = timer(world, RETRY_MS, () => this.#write());
    }
  }
}

/**
 * The explanations that a run still lacks, whose session ended with the last process. Only the events are
 * read that were written within the longest deadline before the last one, and a little before: earlier ones
 * were explained in time.
 */
export function lackingExplanations(timeline: Timeline, runId: string): NewEvent[] {
  const open = new Map<number, NewEvent>();
  const kinds = (kind: string) => kind === "event_enriched" || mayBeExplained(kind);
  const endMs = timeline.view.run(runId)?.lastActivityMs ?? 0;
  const fromSeq = firstSince(timeline, runId, endMs - 2 * LIMITS.live.enrichDeadlineMs.maximum);
  for (const batch of timeline.read(runId, { fromSeq, kinds })) {
    for (const { seq, kind, payload: json } of batch) {
      const payload = JSON.parse(json);
      if (kind === "event_enriched") open.delete(payload.cause_seq);
      else if (isToBeExplained({ kind, payload })) {
        const explained = enrichedPayload({ seq, kind, payload }, { reason: "service_restarted" });
        open.set(seq, event("event_enriched", runId, explained));
      }
    }
  }
  return [...open.values()];
}

/**
 * A number between the run's events that were written before `sinceMs` and the others, found with a few
 * reads.
 */
function firstSince(timeline: Timeline, runId: string, sinceMs: number): number {
  const run = timeline.view.run(runId);
  const search = seekTime({
    first: (fromSeq, toSeq) => [...timeline.read(runId, { fromSeq, toSeq, limit: 1 })][0]?.[0],
    fromSeq: run?.firstSeq ?? 1,
    toSeq: run?.lastSeq ?? 1,
    sinceMs,
  });
  let step = search.next();
  while (!step.done) step = search.next();
  return step.value;
}
