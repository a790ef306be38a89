/** Whether a run may lose its events now, and after what time it does. */

import type { World } from "../../base/world.ts";
import type { RunFacts } from "../../model/runs/removal.ts";
import { isTerminal, type RunView, statusOf } from "../../model/runs/run.ts";
import { sourceUriOf } from "../../model/source_name.ts";
import type { NamedSources } from "../sources/named_sources.ts";
import type { MediaHours } from "./media_removal.ts";
import type { RunWork } from "../runs/run_work.ts";

export interface RunStandingOptions {
  readonly work: Pick<RunWork, "isUnderWay">;
  readonly webhooks: { isBehind(run: RunView): boolean };
  /** Null where there is no mirror database. */
  readonly mirror: { isBehind(run: RunView): boolean } | null;
  readonly named: Pick<NamedSources, "all">;
  readonly streamTtlMs: number;
  readonly runHours: number | undefined;
  /** The clock by which ages are judged. */
  readonly world: Pick<World, "now">;
}

export class RunStanding {
  readonly #options: RunStandingOptions;
  /**
   * When a run was looked at first whose last event is of a time to come: the clock was ahead when it was
   * written.
   */
  readonly #seenMs = new Map<string, number>();

  constructor(options: RunStandingOptions) {
    this.#options = options;
  }

  /**
   * The hours of named sources by their URI, for many runs at once: the file of sources may change at any
   * time.
   */
  sourceHours(): ReadonlyMap<string, number> {
    const hours = new Map<string, number>();
    for (const { name, retentionHours } of this.#options.named.all) {
      if (retentionHours !== null) hours.set(sourceUriOf(name), retentionHours);
    }
    return hours;
  }

  /** Likewise of their pictures, clips and sounds. */
  sourceMediaHours(): ReadonlyMap<string, MediaHours> {
    const hours = new Map<string, MediaHours>();
    for (const { name, mediaHours } of this.#options.named.all) {
      if (mediaHours !== undefined) hours.set(sourceUriOf(name), mediaHours);
    }
    return hours;
  }

  /** `hours` is that of {@link sourceHours}. */
  factsOf(run: RunView, hours: ReadonlyMap<string, number>): RunFacts {
    const { runId, principalKey, logBytes: bytes, deleted } = run;
    const endedMs = this.#lastActivityMs(run);
    const ageHours = hours.get(run.sourceUri) ?? this.#options.runHours;
    return {
      ...{ runId, principalKey, endedMs, bytes, deleted },
      hasEnded: this.#hasEnded(run),
      stays: this.staysFor(run),
      ageLimitMs: ageHours === undefined ? undefined : ageHours * 3_600_000,
    };
  }

  staysFor(run: RunView): RunFacts["stays"] {
    const { webhooks, mirror } = this.#options;
    if (run.onHold) return "on_hold";
    if (!this.#hasEnded(run)) return "not_ended";
    if (webhooks.isBehind(run)) return "webhook_behind";
    return mirror?.isBehind(run) ? "mirror_behind" : null;
  }

  /** An expired run of a live session still has it, and an expired one that is worked on is not idle. */
  #hasEnded(run: RunView): boolean {
    const { work, world, streamTtlMs } = this.#options;
    if (work.isUnderWay(run.runId)) return false;
    if (run.deleted || isTerminal(run.state)) return true;
    const lastActivityMs = this.#lastActivityMs(run);
    return run.source === "" &&
      isTerminal(statusOf({ state: run.state, lastActivityMs }, world.now(), streamTtlMs));
  }

  /**
   * A time to come counts as the one at which it was seen first, so that no run stays until a wrong clock is
   * right.
   */
  #lastActivityMs({ runId, lastActivityMs }: RunView): number {
    const nowMs = this.#options.world.now();
    if (lastActivityMs <= nowMs) {
      this.#seenMs.delete(runId);
      return lastActivityMs;
    }
    const seenMs = this.#seenMs.get(runId) ?? nowMs;
    this.#seenMs.set(runId, seenMs);
    return seenMs;
  }
}
