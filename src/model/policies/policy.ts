/** Policy revisions of a run: the fold of their events, and which step may follow which. Interface 2.7 and 3, contract 10. */

import { refuse } from "../../base/refusal.ts";
import { LIMITS } from "../limits.ts";

export type PolicyStatus = "draft" | "shadow" | "canary" | "active" | "retired" | "rolled_back";

export const POLICY_STAGES = ["shadow", "canary", "active"] as const;
export type PolicyStage = typeof POLICY_STAGES[number];

/** What came of a deployment or a rollback. Contract 10. */
export interface PolicyApplication {
  readonly session_id: string | null;
  readonly generation: number | null;
  readonly prompt_acknowledged: boolean;
  readonly effective_on_current_generation: boolean;
  /** Parameters that a generation keeps for its life; the next one starts with the new ones. */
  readonly deferred_fields: readonly string[];
  readonly note: string;
}

/** One revision as its events say. What it is made of (prompt, schema, zone) stays in the log, under its number. */
export interface RevisionView {
  /** The sequence number of the event that created it. */
  readonly revision: number;
  readonly parentRevision: number | null;
  readonly status: PolicyStatus;
  readonly createdMs: number;
  /** When its status last changed, epoch milliseconds. */
  readonly updatedMs: number;
  /** The live generation that it took effect on, as long as it is active. */
  readonly effectiveGeneration: number | null;
  readonly deferredFields: readonly string[];
}

type Revision = { -readonly [Field in keyof RevisionView]: RevisionView[Field] };

/** The kinds that the fold reads. */
export const POLICY_KINDS: ReadonlySet<string> = new Set([
  "policy_revision_created",
  "policy_deployment_acknowledged",
  "policy_rollback_acknowledged",
]);

/**
 * All revisions of one run.
 *
 * ```
 *   draft ──▶ shadow ──▶ canary ──▶ active ──▶ retired        when another one becomes active
 *                                    ▲  └────▶ rolled_back    when the run goes back to an older one
 *                                    └──────── retired or rolled_back, by a rollback
 * ```
 */
export class PolicyBook {
  /** By number; a number is the sequence number of an event, so the last one is the newest. */
  readonly #revisions = new Map<number, Revision>();

  get count(): number {
    return this.#revisions.size;
  }

  /** In the order of their numbers. */
  all(): Iterable<RevisionView> {
    return this.#revisions.values();
  }

  get newest(): RevisionView | null {
    let newest: RevisionView | null = null;
    for (const revision of this.#revisions.values()) newest = revision;
    return newest;
  }

  get active(): RevisionView | null {
    return this.#active();
  }

  /** 404 on `revision` for a number that is none of this run's. */
  revision(number: number): RevisionView {
    const revision = this.#revisions.get(number);
    if (!revision) throw refuse.notFound("Policy revision", "revision");
    return revision;
  }

  /** `payload` is what an event of one of `POLICY_KINDS` holds. */
  fold(seq: number, ptsMs: number, kind: string, payload: unknown): void {
    if (kind === "policy_revision_created") {
      this.#revisions.set(seq, {
        revision: seq,
        parentRevision: (payload as { parent_revision: number | null }).parent_revision,
        status: "draft",
        createdMs: ptsMs,
        updatedMs: ptsMs,
        effectiveGeneration: null,
        deferredFields: [],
      });
      return;
    }
    const { revision: number, status, application } = payload as Acknowledged;
    const revision = this.#revisions.get(number);
    if (!revision) return;
    const previous = this.#active();
    if (status === "active" && previous && previous !== revision) {
      change(previous, kind === "policy_rollback_acknowledged" ? "rolled_back" : "retired", ptsMs);
    }
    change(revision, status, ptsMs, application);
  }

  #active(): Revision | null {
    for (const revision of this.#revisions.values()) if (revision.status === "active") return revision;
    return null;
  }
}

interface Acknowledged {
  readonly revision: number;
  readonly status: PolicyStage;
  readonly application: PolicyApplication;
}

function change(
  revision: Revision,
  status: PolicyStatus,
  ptsMs: number,
  application?: PolicyApplication,
): void {
  revision.status = status;
  revision.updatedMs = ptsMs;
  revision.effectiveGeneration = application?.effective_on_current_generation ? application.generation : null;
  revision.deferredFields = application?.deferred_fields ?? [];
}

/** 409 unless a new revision may follow: `parent` names the newest, and is null for the first. */
export function checkParent(book: PolicyBook, parent: number | null): void {
  const newest = book.newest?.revision ?? null;
  if (parent === newest) return;
  throw refuse.conflict(
    "parent_revision",
    `Cannot create a revision as its parent must be the newest one, ${newest}: got ${parent}`,
  );
}

/** 409 when the run has as many revisions as it may. */
export function checkCount(book: PolicyBook): void {
  if (book.count < LIMITS.policy.revisionsMax) return;
  throw refuse.conflict("run_id", `Cannot create a revision as the run has ${book.count} already`);
}

const STAGE_BEFORE: Record<PolicyStage, PolicyStatus> = {
  shadow: "draft",
  canary: "shadow",
  active: "canary",
};

/** 409 unless `revision` is where the stage before `stage` leaves it. */
export function checkStage({ revision, status }: RevisionView, stage: PolicyStage): void {
  if (status === STAGE_BEFORE[stage]) return;
  throw refuse.conflict(
    "stage",
    `Cannot move revision ${revision} to ${stage} as only a ${
      STAGE_BEFORE[stage]
    } revision may: it is ${status}`,
  );
}

/** The revision that a rollback to `target` replaces; 409 unless one is active and `target` was active before it. */
export function rolledBackFrom(book: PolicyBook, target: RevisionView): RevisionView {
  const refused = (why: string) =>
    refuse.conflict("revision", `Cannot roll back to revision ${target.revision} as ${why}`);
  const { active } = book;
  if (!active) throw refused("no revision is active");
  if (active.revision === target.revision) throw refused("it is active");
  if (target.status !== "retired" && target.status !== "rolled_back") {
    throw refused(`it was never active: it is ${target.status}`);
  }
  return active;
}
