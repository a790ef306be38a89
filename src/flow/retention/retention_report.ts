/** What of a principal's runs goes and what stays, as the report tells it. See docs/retention.md#report. */

import type { MediaRemovalReason } from "../../model/events/run_payloads.ts";
import type { MediaKind } from "../../model/files/media_kind.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { RemovalReason, RunChoice, StayReason } from "../../model/runs/removal.ts";
import type { MediaChoice } from "./media_removal.ts";

/** One run in the report. */
interface ReportedRun {
  readonly run_id: string;
  /** The time of its last activity, epoch milliseconds. */
  readonly ended_at_ms: number;
  readonly bytes: number;
}

interface ReportedRuns<Reason> {
  readonly count: number;
  readonly bytes: number;
  /** The oldest first, at most as many as the limit says. */
  readonly runs: readonly (ReportedRun & { readonly reason: Reason })[];
}

/** Media of one run in the report. */
interface ReportedMedia {
  readonly run_id: string;
  readonly media: MediaKind;
  readonly reason: MediaRemovalReason;
  readonly through_seq: number;
  readonly blobs: number;
  readonly bytes: number;
}

export interface RetentionLook {
  readonly is_on: boolean;
  /** Null before the first pass. */
  readonly last_pass_at_ms: number | null;
  readonly goes: ReportedRuns<RemovalReason>;
  readonly stays: ReportedRuns<StayReason>;
  /** What goes of runs whose events stay. */
  readonly media: {
    readonly count: number;
    readonly bytes: number;
    readonly runs: readonly ReportedMedia[];
  };
}

export class RetentionReport {
  readonly #principalKey: string;
  readonly #goes = new RunList<RemovalReason>();
  readonly #stays = new RunList<StayReason>();
  readonly #media = { count: 0, bytes: 0, runs: [] as ReportedMedia[] };

  constructor(principalKey: string) {
    this.#principalKey = principalKey;
  }

  /** Runs of other principals are not reported. */
  add(choice: RunChoice): void {
    if (choice.principalKey !== this.#principalKey) return;
    if (choice.goes !== null) this.#goes.add(choice, choice.goes);
    else this.#stays.add(choice, choice.stays ?? "within_limits");
  }

  addMedia({ runId, principalKey, media, reason, throughSeq, blobs, bytes }: MediaChoice): void {
    if (principalKey !== this.#principalKey) return;
    this.#media.count += blobs;
    this.#media.bytes += bytes;
    if (this.#media.runs.length >= LIMITS.retention.reportedRuns) return;
    this.#media.runs.push({ run_id: runId, media, reason, through_seq: throughSeq, blobs, bytes });
  }

  look(): Pick<RetentionLook, "goes" | "stays" | "media"> {
    return { goes: this.#goes.look(), stays: this.#stays.look(), media: this.#media };
  }
}

class RunList<Reason> {
  #count = 0;
  #bytes = 0;
  readonly #runs: (ReportedRun & { readonly reason: Reason })[] = [];

  add({ runId, endedMs, bytes }: RunChoice, reason: Reason): void {
    this.#count++;
    this.#bytes += bytes;
    if (this.#runs.length >= LIMITS.retention.reportedRuns) return;
    this.#runs.push({ run_id: runId, reason, ended_at_ms: endedMs, bytes });
  }

  look(): ReportedRuns<Reason> {
    return { count: this.#count, bytes: this.#bytes, runs: this.#runs };
  }
}
