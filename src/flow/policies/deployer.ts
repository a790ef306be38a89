/** Moves a policy revision: writes the request, applies the revision to the live session, writes the outcome.
 */

import { Refusal, refuse } from "../../contract/refusal.ts";
import { LIMITS } from "../../contract/limits.ts";
import type { PolicyApplication, PolicyBook } from "../../model/policies/policy.ts";
import { isSameZone, type RestrictedZone } from "../../model/policies/zone.ts";
import type { NewEvent, RunView } from "../../model/runs/run.ts";
import type { Timeline } from "../../store/timeline/timeline.ts";
import type { Caller } from "../caller.ts";
import type { OpenSessions, PromptableSession } from "./open_sessions.ts";
import { ownedRun } from "../runs/ownership.ts";
import type { Policy, PolicyContent, PolicyRevisions } from "./revisions.ts";

export interface AppliedPolicy {
  readonly policy: Policy;
  readonly application: PolicyApplication;
}

/** A request to move a revision, with the event of each of its steps. */
export interface Deployment {
  readonly runId: string;
  readonly revision: number;
  readonly expectedGeneration: number | null;
  /** Whether the live session shall work with the revision; otherwise only the new stage is recorded. */
  readonly changesSession: boolean;
  readonly requested: NewEvent;
  acknowledged(requestSeq: number, application: PolicyApplication): NewEvent;
  rejected(requestSeq: number, reason: string): NewEvent;
}

export interface PolicyDeployerOptions {
  readonly timeline: Timeline;
  readonly revisions: PolicyRevisions;
  readonly sessions: OpenSessions;
}

/**
 * The one parameter that a live session keeps for its life. See docs/triggers-policies.md#restricted-zone.
 */
export const ZONE_FIELD = "parameters.restricted_zone";

/** See docs/triggers-policies.md#policy-stages. */
export class PolicyDeployer {
  readonly #options: PolicyDeployerOptions;
  /**
   * Runs with a deployment that waits for its live session: no other revision of the run may move meanwhile.
   */
  readonly #underWay = new Set<string>();

  constructor(options: PolicyDeployerOptions) {
    this.#options = options;
  }

  /**
   * The check and the request are one commit; the outcome is another one, after the live session has
   * answered. Nothing else moves on the run in between, so what `decide` checked still holds then.
   */
  async deploy(
    caller: Caller,
    runId: string,
    decide: (book: PolicyBook) => Deployment,
  ): Promise<AppliedPolicy> {
    const { timeline, revisions } = this.#options;
    let deployment: Deployment | undefined;
    const [requested] = timeline.commit((view) => {
      const run = ownedRun(view, caller, runId);
      deployment = decide(revisions.book(run));
      if (this.#underWay.has(runId)) {
        throw refuse.conflict("revision", "Cannot move a revision as another one of this run is being moved");
      }
      return [deployment.requested];
    });
    this.#underWay.add(runId);
    try {
      return await this.#finish(caller, deployment!, requested!.seq);
    } finally {
      this.#underWay.delete(runId);
    }
  }

  async #finish(caller: Caller, deployment: Deployment, requestSeq: number): Promise<AppliedPolicy> {
    const { timeline, revisions, sessions } = this.#options;
    const { runId, revision } = deployment;
    const content = revisions.content(revisions.revision(caller, runId, revision));
    let session, rejection, isAcknowledged;
    // again where a session began or ended meanwhile, so that the outcome is true of the one that is open now
    do {
      session = sessions.find(runId);
      const run = ownedRun(timeline.view, caller, runId);
      ({ rejection, isAcknowledged } = await apply(deployment, { content, session, run }));
    } while (rejection === null && sessions.find(runId) !== session);
    const commit = (outcome: NewEvent) =>
      timeline.commit((now) => {
        ownedRun(now, caller, runId);
        return [outcome];
      });
    if (rejection !== null) {
      commit(deployment.rejected(requestSeq, rejection));
      throw refused(rejection);
    }
    const application = applicationOf(deployment, session, content, isAcknowledged);
    commit(deployment.acknowledged(requestSeq, application));
    const run = ownedRun(timeline.view, caller, runId);
    return { policy: revisions.policy(run, revisions.book(run).revision(revision)), application };
  }
}

/** Sends the prompt and the schema to the live session where the deployment is applied. */
async function apply(deployment: Deployment, { content, session, run }: {
  readonly content: PolicyContent;
  readonly session: PromptableSession | null;
  readonly run: RunView;
}): Promise<{ readonly rejection: string | null; readonly isAcknowledged: boolean }> {
  const rejection = generationFault(deployment, session, run);
  const { prompt, output_schema: outputSchema } = content;
  const hasChange = prompt !== null || outputSchema !== null;
  if (rejection !== null || !session || !deployment.changesSession || !hasChange) {
    return { rejection, isAcknowledged: false };
  }
  try {
    const change = { ...(prompt !== null && { prompt }), outputSchema };
    await session.updatePrompt(change, LIMITS.policy.acknowledgementMs);
    return { rejection: null, isAcknowledged: true };
  } catch (error) {
    if (!(error instanceof Refusal)) throw error;
    const reason = error.kind === "policy_acknowledgement_timeout" ? TIMED_OUT : closed(session.generation);
    return { rejection: reason, isAcknowledged: false };
  }
}

const EXPECTED_REQUIRED = "expected_generation_required";
const TIMED_OUT = "acknowledgement_timeout";

function closed(generation: number | null): string {
  return `generation_closed: ${
    generation === null ? "the run has no live session" : `generation ${generation} has ended`
  }`;
}

/**
 * A deployment that is applied to a live session must name its generation; a number that is given must be
 * right.
 */
function generationFault(
  { expectedGeneration, changesSession }: Deployment,
  session: PromptableSession | null,
  run: RunView,
): string | null {
  if (!session) return expectedGeneration !== null && run.source !== "" ? closed(null) : null;
  if (expectedGeneration === null) return changesSession ? EXPECTED_REQUIRED : null;
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
  { changesSession }: Deployment,
  session: PromptableSession | null,
  { parameters }: PolicyContent,
  isAcknowledged: boolean,
): PolicyApplication {
  const deferred = isZoneDeferred(parameters.restricted_zone ?? null, session) ? [ZONE_FIELD] : [];
  const base = {
    session_id: session?.sessionId ?? null,
    generation: session?.generation ?? null,
    prompt_acknowledged: isAcknowledged,
    effective_on_current_generation: session !== null && changesSession && deferred.length === 0,
    deferred_fields: deferred,
  };
  if (!session) return { ...base, note: "No live session: the new stage is recorded." };
  if (!changesSession) {
    return { ...base, note: "The live session goes on as before: nothing is applied at this stage." };
  }
  return {
    ...base,
    note: deferred.length === 0
      ? "The live session works with this revision."
      : "A generation keeps its restricted zone: the next one starts with this revision's.",
  };
}

/**
 * Whether a session that runs with the revision from its first frame on would have another zone than this
 * one.
 */
function isZoneDeferred(zone: RestrictedZone | null, session: PromptableSession | null): boolean {
  if (!session || zone === null) return zone !== null || (session?.hasPolicyZone ?? false);
  return session.zone === null || !isSameZone(zone, session.zone);
}
