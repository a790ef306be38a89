/** Policy revisions of a run: created, moved stage by stage, rolled back. Interface 4.9, contract 10. */

import { utf8Length } from "../../base/bytes.ts";
import { refuse } from "../../base/refusal.ts";
import type { ActivatePolicyBody, CreatePolicyBody, RollbackPolicyBody } from "../../model/api/policies.ts";
import { event } from "../../model/events/event_table.ts";
import { FieldRules, quoted } from "../../model/field_rules.ts";
import { LIMITS } from "../../model/limits.ts";
import {
  checkCount,
  checkParent,
  checkStage,
  POLICY_KINDS,
  POLICY_STAGES,
  type PolicyApplication,
  PolicyBook,
  type PolicyStage,
  type PolicyStatus,
  type RevisionView,
  rolledBackFrom,
} from "../../model/policies/policy.ts";
import type { NewEvent, RunView } from "../../model/runs/run.ts";
import { checkedSchema } from "../../model/schema_field.ts";
import { checkZone, type RestrictedZone } from "../../model/policies/zone.ts";
import type { Timeline } from "../../store/log/timeline.ts";
import type { Caller } from "../caller.ts";
import { NotAcknowledged } from "../live/describer.ts";
import type { OpenSessions, PromptableSession } from "../live/registry.ts";
import { ownedRun } from "../runs/ownership.ts";

/** Contract 10, the policy object. */
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

export interface AppliedPolicy {
  readonly policy: Policy;
  readonly application: PolicyApplication;
}

/** What a revision is made of, as its event holds it. */
export type PolicyContent = Pick<Policy, "prompt" | "output_schema" | "parameters">;

export interface PoliciesOptions {
  readonly timeline: Timeline;
  readonly sessions: OpenSessions;
}

/** A request to move a revision, from its first event to its last. */
interface Deployment {
  readonly runId: string;
  readonly revision: number;
  readonly expectedGeneration: number | null;
  /** Whether the generation is to work with the revision, as opposed to being told of it. */
  readonly isApplied: boolean;
  readonly requested: NewEvent;
  acknowledged(requestSeq: number, application: PolicyApplication): NewEvent;
  rejected(requestSeq: number, reason: string): NewEvent;
}

export class Policies {
  readonly #timeline: Timeline;
  readonly #sessions: OpenSessions;
  /** Folds of the runs that were asked about last, each with how far it has read. */
  readonly #books = new Map<string, { readonly book: PolicyBook; lastSeq: number }>();
  /** Runs with a deployment that waits for its generation: nothing else may move there meanwhile. */
  readonly #underWay = new Set<string>();

  constructor({ timeline, sessions }: PoliciesOptions) {
    this.#timeline = timeline;
    this.#sessions = sessions;
  }

  /**
   * A new draft. A terminal run takes policies like any other. Errors: 422 and 404 on the run, 422 on `prompt`,
   * `output_schema` and `parameters.restricted_zone.*`, 409 on `parent_revision` unless it names the newest revision.
   */
  create(caller: Caller, runId: string, body: CreatePolicyBody): Policy {
    ownedRun(this.#timeline.view, caller, runId);
    const content = checkedContent(body);
    const parent = body.parent_revision ?? null;
    const [committed] = this.#timeline.commit((view) => {
      const book = this.#book(ownedRun(view, caller, runId));
      checkParent(book, parent);
      checkCount(book);
      return [event("policy_revision_created", runId, { parent_revision: parent, ...content })];
    });
    return this.#policy(this.#revision(caller, runId, committed!.seq));
  }

  /** In the order of their numbers. Errors: 422 and 404 on the run. */
  *list(caller: Caller, runId: string): Iterable<Policy> {
    const run = ownedRun(this.#timeline.view, caller, runId);
    for (const revision of [...this.#book(run).all()]) yield this.#policy(revision);
  }

  /** Errors: 422 and 404 on the run, 404 on `revision`. */
  read(caller: Caller, runId: string, revision: number): Policy {
    return this.#policy(this.#revision(caller, runId, revision));
  }

  /**
   * Moves a revision to the next stage. Errors: 422 and 404 on the run, 404 on `revision`, 422 and 409 on `stage`, 409 on
   * `expected_generation`, 503 `policy_acknowledgement_timeout`.
   */
  activate(caller: Caller, runId: string, number: number, body: ActivatePolicyBody): Promise<AppliedPolicy> {
    const decide = (book: PolicyBook): Deployment => {
      const revision = book.revision(number);
      const stage = checkedStage(body.stage);
      checkStage(revision, stage);
      const expected_generation = body.expected_generation ?? null;
      return {
        runId,
        revision: number,
        expectedGeneration: expected_generation,
        isApplied: stage === "active",
        requested: event("policy_deployment_requested", runId, {
          revision: number,
          from_status: revision.status,
          to_status: stage,
          expected_generation,
        }),
        acknowledged: (request_seq, application) =>
          event("policy_deployment_acknowledged", runId, {
            revision: number,
            request_seq,
            status: stage,
            application,
          }),
        rejected: (request_seq, reason) =>
          event("policy_deployment_rejected", runId, {
            revision: number,
            request_seq,
            to_status: stage,
            reason,
          }),
      };
    };
    return this.#deploy(caller, runId, decide);
  }

  /**
   * Makes a revision that was active before active again. Errors: 422 and 404 on the run, 404 and 409 on `revision`, 409 on
   * `expected_generation`, 503 `policy_acknowledgement_timeout`.
   */
  rollback(caller: Caller, runId: string, number: number, body: RollbackPolicyBody): Promise<AppliedPolicy> {
    const decide = (book: PolicyBook): Deployment => {
      const from_revision = rolledBackFrom(book, book.revision(number)).revision;
      const expected_generation = body.expected_generation ?? null;
      const both = { revision: number, from_revision };
      return {
        runId,
        revision: number,
        expectedGeneration: expected_generation,
        isApplied: true,
        requested: event("policy_rollback_requested", runId, { ...both, expected_generation }),
        acknowledged: (request_seq, application) =>
          event("policy_rollback_acknowledged", runId, {
            ...both,
            request_seq,
            status: "active",
            application,
          }),
        rejected: (request_seq, reason) =>
          event("policy_rollback_rejected", runId, { ...both, request_seq, reason }),
      };
    };
    return this.#deploy(caller, runId, decide);
  }

  /** What the revision is made of; 404 on `revision`. */
  content(caller: Caller, runId: string, revision: number): PolicyContent {
    return this.#content(this.#revision(caller, runId, revision));
  }

  /**
   * The order and the request are one decision; what follows the request is one more, when the generation has answered.
   * Nothing else moves on the run in between, so the first decision still holds then.
   */
  async #deploy(
    caller: Caller,
    runId: string,
    decide: (book: PolicyBook) => Deployment,
  ): Promise<AppliedPolicy> {
    let deployment: Deployment | undefined;
    const [requested] = this.#timeline.commit((view) => {
      const run = ownedRun(view, caller, runId);
      deployment = decide(this.#book(run));
      if (this.#underWay.has(runId)) {
        throw refuse.conflict("revision", "Cannot move a revision as another one of this run is being moved");
      }
      return [deployment.requested];
    });
    this.#underWay.add(runId);
    try {
      return await this.#apply(caller, deployment!, requested!.seq);
    } finally {
      this.#underWay.delete(runId);
    }
  }

  async #apply(caller: Caller, deployment: Deployment, requestSeq: number): Promise<AppliedPolicy> {
    const { runId } = deployment;
    const view = this.#timeline.view;
    const content = this.#content(this.#revision(caller, runId, deployment.revision));
    const session = this.#sessions.find(runId);
    let reason = generationFault(deployment, session, ownedRun(view, caller, runId));
    let acknowledged = false;
    if (reason === null && session && deployment.isApplied && content.prompt !== null) {
      try {
        const change = { prompt: content.prompt, outputSchema: content.output_schema };
        await session.updatePrompt(change, LIMITS.policy.acknowledgementMs);
        acknowledged = true;
      } catch (error) {
        if (!(error instanceof NotAcknowledged)) throw error;
        reason = error.why === "timeout" ? TIMED_OUT : closed(session.generation);
      }
    }
    if (reason !== null) {
      const why = reason;
      this.#timeline.commit((now) => {
        ownedRun(now, caller, runId);
        return [deployment.rejected(requestSeq, why)];
      });
      throw refused(why);
    }
    const application = applicationOf(deployment, session, content, acknowledged);
    this.#timeline.commit((now) => {
      ownedRun(now, caller, runId);
      return [deployment.acknowledged(requestSeq, application)];
    });
    return { policy: this.#policy(this.#revision(caller, runId, deployment.revision)), application };
  }

  #revision(caller: Caller, runId: string, revision: number): RevisionView {
    return this.#book(ownedRun(this.#timeline.view, caller, runId)).revision(revision);
  }

  /** The run's revisions up to its last event: what came since the last look is read, by its kinds. */
  #book(run: RunView): PolicyBook {
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

  #content({ revision }: RevisionView): PolicyContent {
    const stored = this.#timeline.readOne(revision);
    if (!stored) throw new Error(`Cannot read policy revision ${revision} as the log has lost its event`);
    const { prompt, output_schema, parameters } = JSON.parse(stored.payload) as PolicyContent;
    return { prompt, output_schema, parameters };
  }

  #policy(view: RevisionView): Policy {
    const { prompt, output_schema, parameters } = this.#content(view);
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
      effective_on_current_generation: view.effectiveGeneration !== null,
      deferred_fields: view.deferredFields,
    };
  }
}

/** Folds that are kept; one of a run that was asked about longer ago is read again. */
const BOOKS_KEPT = 1024;

/** The one parameter that a generation keeps for its life. Interface part 3. */
const ZONE_FIELD = "parameters.restricted_zone";

const EXPECTED_REQUIRED = "expected_generation_required";
const TIMED_OUT = "acknowledgement_timeout";

function closed(generation: number | null): string {
  return `generation_closed: ${
    generation === null ? "the run has no live session" : `generation ${generation} has ended`
  }`;
}

/** Contract 10: only what is applied to a live generation must name it; a number that is given must be right. */
function generationFault(
  { expectedGeneration, isApplied }: Deployment,
  session: PromptableSession | null,
  run: RunView,
): string | null {
  if (!session) return expectedGeneration !== null && run.source === "whip" ? closed(null) : null;
  if (expectedGeneration === null) return isApplied ? EXPECTED_REQUIRED : null;
  if (expectedGeneration === session.generation) return null;
  return `stale_generation: expected ${expectedGeneration}, the current one is ${session.generation}`;
}

function refused(reason: string): Error {
  return reason === TIMED_OUT
    ? refuse.because(
      "policy_acknowledgement_timeout",
      `The live session did not acknowledge the revision within ${LIMITS.policy.acknowledgementMs} ms`,
    )
    : refuse.conflict(
      "expected_generation",
      `Cannot apply the revision to the live session: ${
        reason === EXPECTED_REQUIRED ? "expected_generation is required" : reason
      }`,
    );
}

function applicationOf(
  { isApplied }: Deployment,
  session: PromptableSession | null,
  { parameters }: PolicyContent,
  acknowledged: boolean,
): PolicyApplication {
  const deferred = parameters.restricted_zone ? [ZONE_FIELD] : [];
  const base = {
    session_id: session?.sessionId ?? null,
    generation: session?.generation ?? null,
    prompt_acknowledged: acknowledged,
    effective_on_current_generation: acknowledged && deferred.length === 0,
    deferred_fields: deferred,
  };
  if (!session) return { ...base, note: "No live session: the new stage is recorded." };
  if (!isApplied) {
    return { ...base, note: "The live session goes on as before: nothing is applied at this stage." };
  }
  return {
    ...base,
    note: deferred.length === 0
      ? "The live session works with this revision."
      : "A generation keeps its restricted zone: the next one starts with this revision's.",
  };
}

function checkedStage(stage: string): PolicyStage {
  const known = POLICY_STAGES.find((name) => name === stage);
  if (!known) throw refuse.invalid("stage", `must be shadow, canary or active: got ${quoted(stage)}`);
  return known;
}

/** Contract 10; every fault in one answer. */
function checkedContent(body: CreatePolicyBody): PolicyContent {
  const rules = new FieldRules();
  const zone = body.parameters?.restricted_zone ?? null;
  const prompt = body.prompt?.trim() ?? null;
  if (prompt === null && zone === null) {
    rules.fault("prompt", "is required unless parameters.restricted_zone is given");
  }
  if (prompt === "") rules.fault("prompt", "must not be blank");
  const promptBytes = utf8Length(prompt ?? "");
  if (promptBytes > LIMITS.policy.promptBytesMax) {
    rules.fault("prompt", `must have at most ${LIMITS.policy.promptBytesMax} bytes: got ${promptBytes}`);
  }
  const given = body.output_schema ?? null;
  const schema = given === null ? null : checkedSchema("output_schema", given, rules) ?? null;
  if (zone) checkZone(rules, ZONE_FIELD, zone);
  rules.check();
  return { prompt, output_schema: schema, parameters: zone ? { restricted_zone: zone } : {} };
}
