/** The policy revisions of runs as they can be read: the state of each is folded from the run's events. */

import {
  POLICY_KINDS,
  PolicyBook,
  type PolicyStatus,
  type RevisionView,
} from "../../model/policies/policy.ts";
import type { RestrictedZone } from "../../model/policies/zone.ts";
import { isTerminal, type RunView } from "../../model/runs/run.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { Caller } from "../caller.ts";
import { ownedRun } from "../runs/ownership.ts";

/** The policy object of the API. See docs/triggers-policies.md#policies. */
export interface Policy {
  readonly revision: number;
  readonly parent_revision: number | null;
  readonly status: PolicyStatus;
  readonly prompt: string | null;
  readonly output_schema: Readonly<Record<string, unknown>> | null;
  readonly parameters: { readonly restricted_zone?: RestrictedZone };
  readonly created_at_ms: number;
  readonly updated_at_ms: number;
  readonly effective_generation: number | null;
  readonly effective_on_current_generation: boolean;
  readonly deferred_fields: readonly string[];
}

/** The content of a revision, as its event stores it. */
export type PolicyContent = Pick<Policy, "prompt" | "output_schema" | "parameters">;

/** Folds that are kept; the events of a run that was used longer ago are read again. */
const BOOKS_KEPT = 1024;

export class PolicyRevisions {
  readonly #timeline: Timeline;
  /** The folds of the runs that were used last, each with the sequence number up to which it has read. */
  readonly #books = new Map<string, { readonly book: PolicyBook; lastSeq: number }>();

  constructor(timeline: Timeline) {
    this.#timeline = timeline;
  }

  /** 422 and 404 on the run, 404 on `revision`. */
  revision(caller: Caller, runId: string, revision: number): RevisionView {
    return this.book(ownedRun(this.#timeline.view, caller, runId)).revision(revision);
  }

  /** The run's revisions up to its last event. Reads only the policy events since the last call. */
  book(run: RunView): PolicyBook {
    const known = this.#books.get(run.runId) ?? { book: new PolicyBook(), lastSeq: 0 };
    if (known.lastSeq < run.lastSeq) {
      const query = { fromSeq: known.lastSeq + 1, kinds: POLICY_KINDS };
      for (const batch of this.#timeline.read(run.runId, query)) {
        for (const { seq, ptsMs, kind, payload } of batch) {
          known.book.fold(seq, ptsMs, kind, JSON.parse(payload));
        }
      }
      known.lastSeq = run.lastSeq;
    }
    this.#books.delete(run.runId);
    this.#books.set(run.runId, known);
    if (this.#books.size > BOOKS_KEPT) this.#books.delete(this.#books.keys().next().value!);
    return known.book;
  }

  /** The content of the run's active revision; null where none is active. */
  activeContent(run: RunView): PolicyContent | null {
    const { active } = this.book(run);
    return active && this.content(active);
  }

  content({ revision }: RevisionView): PolicyContent {
    const stored = this.#timeline.readOne(revision);
    if (!stored) throw new Error(`Cannot read policy revision ${revision} as the log has lost its event`);
    const { prompt, output_schema, parameters } = JSON.parse(stored.payload) as PolicyContent;
    return { prompt, output_schema, parameters };
  }

  /** `view` is a revision of `run` as the run is now. */
  policy(run: RunView, view: RevisionView): Policy {
    const { prompt, output_schema, parameters } = this.content(view);
    return {
      revision: view.revision,
      parent_revision: view.parentRevision,
      status: view.status,
      prompt,
      output_schema,
      parameters,
      created_at_ms: view.createdMs,
      updated_at_ms: view.updatedMs,
      effective_generation: view.effectiveGeneration,
      // a generation ends with its run
      effective_on_current_generation: view.effectiveGeneration !== null && !isTerminal(run.state),
      deferred_fields: view.deferredFields,
    };
  }
}
