/** Policy revisions of a run: the fold of their events, and the allowed transitions. See
 * docs/triggers-policies.md#policy-stages.
 */

import { refuse } from "../../contract/refusal.ts";
import { LIMITS } from "../../contract/limits.ts";

export type PolicyStatus = "draft" | "shadow" | "canary" | "active" | "retired" | "rolled_back";

export const POLICY_STAGES = ["shadow", "canary", "active"] as const;
export type PolicyStage = typeof POLICY_STAGES[number];

/** The result of a deployment or a rollback. */
export interface PolicyApplication {
  readonly session_id: string | null;
  readonly generation: number | null;
  readonly prompt_acknowledged: boolean;
  readonly effective_on_current_generation: boolean;
  /** Parameters that are fixed for a generation; the next one starts with the new values. */
  readonly deferred_fields: readonly string[];
  readonly note: string;
}

/** One revision as it follows from its events. Its contents (prompt, schema, zone) stay in the log. */
export interface RevisionView {
  /** The number of the revision: the sequence number of the event that created it. */
  readonly revision: number;
  readonly parentRevision: number | null;
  readonly status: PolicyStatus;
  readonly createdMs: number;
  /** When its status last changed, epoch milliseconds. */
  readonly updatedMs: number;
  /** The live generation on which it took effect, while it is active. */
  readonly effectiveGeneration: number | null;
  readonly deferredFields: readonly string[];
}

type Revision = { -readonly [Field in keyof RevisionView]: RevisionView[Field] };

/** The kinds of events that the fold reads. */
export const POLICY_KINDS: ReadonlySet<string> = new Set([
  "policy_revision_created",
  "policy_deployment_acknowledged",
  "policy_rollback_acknowledged",
  "live_source_opened",
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
  /** The revisions by number, which is the sequence number of an event, so the last one is the newest. */
  readonly #revisions = new Map<number, Revision>();

  get count(): number {
    return this.#revisions.size;
  }

  /** All revisions, in the order of their numbers. */
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

  /** The revision with the number. Refuses with 404 on `revision` a number that is none of this run. */
  revision(number: number): RevisionView {
    const revision = this.#revisions.get(number);
    if (!revision) throw refuse.notFound("Policy revision", "revision");
    return revision;
  }

  /** Folds one event; `payload` is that of an event of one of `POLICY_KINDS`. */
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
    if (kind === "live_source_opened") return this.#startGeneration(payload as Opened);
    const { revision: number, status, application } = payload as Acknowledged;
    const revision = this.#revisions.get(number);
    if (!revision) return;
    const previous = this.#active();
    if (status === "active" && previous && previous !== revision) {
      change(previous, kind === "policy_rollback_acknowledged" ? "rolled_back" : "retired", ptsMs);
    }
    change(revision, status, ptsMs, application);
  }

  /** Folds the start of a generation, which begins with the active revision, zone included. */
  #startGeneration({ pipeline_generation: generation }: Opened): void {
    const active = this.#active();
    if (!active) return;
    active.effectiveGeneration = generation;
    active.deferredFields = [];
  }

  #active(): Revision | null {
    for (const revision of this.#revisions.values()) if (revision.status === "active") return revision;
    return null;
  }
}

interface Opened {
  readonly pipeline_generation: number;
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

/** Refuses with 409 unless `parent` is the newest revision, or null for the first one. */
export function checkParent(book: PolicyBook, parent: number | null): void {
  const newest = book.newest?.revision ?? null;
  if (parent === newest) return;
  throw refuse.conflict(
    "parent_revision",
    `Cannot create a revision as its parent must be the newest one, ${newest}: got ${parent}`,
  );
}

/** Refuses with 409 when the run has the largest allowed number of revisions. */
export function checkCount(book: PolicyBook): void {
  if (book.count < LIMITS.policy.revisionsMax) return;
  throw refuse.conflict("run_id", `Cannot create a revision as the run has ${book.count} already`);
}

const STAGE_BEFORE: Record<PolicyStage, PolicyStatus> = {
  shadow: "draft",
  canary: "shadow",
  active: "canary",
};

/** Refuses with 409 unless the revision has the status that must come before `stage`. */
export function checkStage({ revision, status }: RevisionView, stage: PolicyStage): void {
  if (status === STAGE_BEFORE[stage]) return;
  throw refuse.conflict(
    "stage",
    `Cannot move revision ${revision} to ${stage} as only a ${
      STAGE_BEFORE[stage]
    } revision may: it is ${status}`,
  );
}

/**
 * The revision that a rollback to `target` replaces. Refuses with 409 unless one is active and `target` was
 * active before it.
 */
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
