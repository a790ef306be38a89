/** Policy revisions of a run: creates and reads them, moves them stage by stage, rolls them back. */

import { utf8Length } from "../../base/bytes.ts";
import { refuse } from "../../contract/refusal.ts";
import type { ActivatePolicyBody, CreatePolicyBody, RollbackPolicyBody } from "../../model/api/policies.ts";
import { event } from "../../model/events/event_table.ts";
import { FieldRules, quoted } from "../../model/field_rules.ts";
import { LIMITS } from "../../contract/limits.ts";
import {
  checkCount,
  checkParent,
  checkStage,
  POLICY_STAGES,
  type PolicyBook,
  type PolicyStage,
  rolledBackFrom,
} from "../../model/policies/policy.ts";
import { checkZone } from "../../model/policies/zone.ts";
import { checkedSchema } from "../../model/reason/schema_field.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { Caller } from "../caller.ts";
import type { OpenSessions } from "./open_sessions.ts";
import { ownedRun } from "../runs/ownership.ts";
import { type AppliedPolicy, type Deployment, PolicyDeployer, ZONE_FIELD } from "./deployer.ts";
import type { Policy, PolicyContent, PolicyRevisions } from "./revisions.ts";

export interface PoliciesOptions {
  readonly timeline: Timeline;
  readonly revisions: PolicyRevisions;
  readonly sessions: OpenSessions;
}

export class Policies {
  readonly #timeline: Timeline;
  readonly #revisions: PolicyRevisions;
  readonly #sessions: OpenSessions;
  readonly #deployer: PolicyDeployer;

  constructor({ timeline, revisions, sessions }: PoliciesOptions) {
    this.#timeline = timeline;
    this.#revisions = revisions;
    this.#sessions = sessions;
    this.#deployer = new PolicyDeployer({ timeline, revisions, sessions });
  }

  /**
   * A new draft. A terminal run takes policies like any other. Errors: 422 and 404 on the run, 422 on
   * `prompt`, `output_schema` and `parameters.restricted_zone.*`, 409 on `parent_revision` unless it names
   * the newest revision.
   */
  create(caller: Caller, runId: string, body: CreatePolicyBody): Policy {
    ownedRun(this.#timeline.view, caller, runId);
    const content = checkedContent(body);
    const parent = body.parent_revision ?? null;
    const [committed] = this.#timeline.commit((view) => {
      const book = this.#revisions.book(ownedRun(view, caller, runId));
      checkParent(book, parent);
      checkCount(book);
      return [event("policy_revision_created", runId, { parent_revision: parent, ...content })];
    });
    return this.read(caller, runId, committed!.seq);
  }

  /** In the order of their numbers. Errors: 422 and 404 on the run. */
  *list(caller: Caller, runId: string): Iterable<Policy> {
    const run = ownedRun(this.#timeline.view, caller, runId);
    for (const revision of [...this.#revisions.book(run).all()]) yield this.#revisions.policy(run, revision);
  }

  /** The generation of the open live session of the run; null without one. Errors: 422 and 404 on the run. */
  generation(caller: Caller, runId: string): number | null {
    ownedRun(this.#timeline.view, caller, runId);
    return this.#sessions.find(runId)?.generation ?? null;
  }

  /** Errors: 422 and 404 on the run, 404 on `revision`. */
  read(caller: Caller, runId: string, revision: number): Policy {
    const run = ownedRun(this.#timeline.view, caller, runId);
    return this.#revisions.policy(run, this.#revisions.book(run).revision(revision));
  }

  /**
   * Moves a revision to the next stage. Errors: 422 and 404 on the run, 404 on `revision`, 422 and 409 on
   * `stage`, 409 on `expected_generation`, 503 `policy_acknowledgement_timeout`.
   */
  activate(
    caller: Caller,
    runId: string,
    revision: number,
    body: ActivatePolicyBody,
  ): Promise<AppliedPolicy> {
    return this.#deployer.deploy(caller, runId, (book) => activation(book, runId, revision, body));
  }

  /**
   * Makes an earlier active revision active again. Errors: 422 and 404 on the run, 404 and 409 on `revision`,
   * 409 on `expected_generation`, 503 `policy_acknowledgement_timeout`.
   */
  rollback(
    caller: Caller,
    runId: string,
    revision: number,
    body: RollbackPolicyBody,
  ): Promise<AppliedPolicy> {
    return this.#deployer.deploy(caller, runId, (book) => rollback(book, runId, revision, body));
  }
}

function activation(
  book: PolicyBook,
  runId: string,
  revision: number,
  body: ActivatePolicyBody,
): Deployment {
  const policy = book.revision(revision);
  const stage = checkedStage(body.stage);
  checkStage(policy, stage);
  const expected_generation = body.expected_generation ?? null;
  return {
    runId,
    revision,
    expectedGeneration: expected_generation,
    changesSession: stage === "active",
    requested: event("policy_deployment_requested", runId, {
      revision,
      from_status: policy.status,
      to_status: stage,
      expected_generation,
    }),
    acknowledged: (request_seq, application) =>
      event("policy_deployment_acknowledged", runId, {
        revision,
        request_seq,
        status: stage,
        application,
      }),
    rejected: (request_seq, reason) =>
      event("policy_deployment_rejected", runId, {
        revision,
        request_seq,
        to_status: stage,
        reason,
      }),
  };
}

function rollback(
  book: PolicyBook,
  runId: string,
  revision: number,
  body: RollbackPolicyBody,
): Deployment {
  const from_revision = rolledBackFrom(book, book.revision(revision)).revision;
  const expected_generation = body.expected_generation ?? null;
  const both = { revision, from_revision };
  return {
    runId,
    revision,
    expectedGeneration: expected_generation,
    changesSession: true,
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
}

function checkedStage(stage: string): PolicyStage {
  const known = POLICY_STAGES.find((name) => name === stage);
  if (!known) throw refuse.invalid("stage", `must be shadow, canary or active: got ${quoted(stage)}`);
  return known;
}

/** Reports every fault in one error. */
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
