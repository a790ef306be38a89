/** Routes of a run's policy revisions. */

import type { Policy } from "../../flow/policies/revisions.ts";
import {
  ACTIVATE_POLICY_BODY,
  APPLIED_POLICY,
  CREATE_POLICY_BODY,
  POLICIES,
  POLICY_READ,
  REPLAY_POLICY_BODY,
  REPLAYED_POLICY,
  ROLLBACK_POLICY_BODY,
} from "../../model/api/policies.ts";
import { json, jsonStream, Rejection } from "../answers/reply.ts";
import { readJson } from "../requests/body.ts";
import { parameter, type RouteCall } from "../route/call.ts";
import { answersJson, jsonContent, type Route } from "../route/route.ts";

export const POLICY_ROUTES: readonly Route[] = [
  {
    method: "POST",
    path: "/v1/runs/:id/policies",
    id: "createPolicy",
    tag: "policies",
    summary: "Creates a policy revision.",
    body: jsonContent(CREATE_POLICY_BODY),
    answers: answersJson(POLICY_READ, "The new draft"),
    failures: [404, 409, 422, 500],
    once: { kinds: ["policy_revision_created"] },
    handle: async (call) => {
      const body = await readJson(call, CREATE_POLICY_BODY);
      const policy = call.use.policies.create(call.caller, parameter(call, "id"), body);
      return json({ ...identity(call), policy });
    },
  },
  {
    method: "GET",
    path: "/v1/runs/:id/policies",
    id: "listPolicies",
    tag: "policies",
    summary: "Lists the policy revisions of a run.",
    answers: answersJson(POLICIES, "The revisions in the order of their numbers"),
    failures: [404, 422, 500],
    handle: (call) => jsonStream(policiesJson(call)),
  },
  {
    method: "GET",
    path: "/v1/runs/:id/policies/:revision",
    id: "getPolicy",
    tag: "policies",
    summary: "Reads one policy revision.",
    answers: answersJson(POLICY_READ, "The revision"),
    failures: [400, 404, 422, 500],
    handle: (call) => {
      const policy = call.use.policies.read(call.caller, parameter(call, "id"), revision(call));
      return json({ ...identity(call), policy });
    },
  },
  {
    method: "POST",
    path: "/v1/runs/:id/policies/:revision/activate",
    id: "activatePolicy",
    tag: "policies",
    summary: "Moves a policy revision to its next stage.",
    body: jsonContent(ACTIVATE_POLICY_BODY),
    answers: answersJson(
      APPLIED_POLICY,
      "The revision in its new stage, and how the live session applied it",
    ),
    failures: [400, 404, 409, 422, 500, 503],
    once: { kinds: ["policy_deployment_requested"] },
    handle: async (call) => {
      const number = revision(call);
      const body = await readJson(call, ACTIVATE_POLICY_BODY);
      const applied = await call.use.policies.activate(call.caller, parameter(call, "id"), number, body);
      return json({ ...identity(call), ...applied });
    },
  },
  {
    method: "POST",
    path: "/v1/runs/:id/policies/:revision/rollback",
    id: "rollbackPolicy",
    tag: "policies",
    summary: "Makes an earlier policy revision active again.",
    body: jsonContent(ROLLBACK_POLICY_BODY),
    answers: answersJson(APPLIED_POLICY, "The revision is active again, and how the live session applied it"),
    failures: [400, 404, 409, 422, 500, 503],
    once: { kinds: ["policy_rollback_requested"] },
    handle: async (call) => {
      const number = revision(call);
      const body = await readJson(call, ROLLBACK_POLICY_BODY);
      const applied = await call.use.policies.rollback(call.caller, parameter(call, "id"), number, body);
      return json({ ...identity(call), ...applied });
    },
  },
  {
    method: "POST",
    path: "/v1/runs/:id/policies/:revision/replay",
    id: "replayPolicy",
    tag: "policies",
    summary: "Evaluates a policy revision against stored events or media.",
    body: jsonContent(REPLAY_POLICY_BODY),
    answers: answersJson(REPLAYED_POLICY, "What the revision would have reported"),
    failures: [400, 404, 409, 422, 500, 503],
    once: { kinds: ["policy_replay_evaluated"] },
    handle: async (call) => {
      const number = revision(call);
      const body = await readJson(call, REPLAY_POLICY_BODY);
      const replayed = await call.use.policyReplay.run(call.caller, parameter(call, "id"), number, body);
      return json({
        ...identity(call),
        evaluation_id: replayed.evaluationId,
        evaluation: replayed.evaluation,
      });
    },
  },
];

function identity(call: RouteCall): { request_id: string; run_id: string } {
  return { request_id: call.caller.requestId, run_id: parameter(call, "id") };
}

/** 400 as plain text for a revision that is no number. See docs/api.md#plain-rejections. */
function revision(call: RouteCall): number {
  const text = parameter(call, "revision");
  if (!/^\d{1,15}$/.test(text)) throw new Rejection(400, "revision must be a whole number");
  return Number(text);
}

/**
 * One revision per chunk, as each may hold a long prompt. Checks the run before the first byte is written.
 */
function policiesJson(call: RouteCall): Iterable<string> {
  const runId = parameter(call, "id");
  const policies = call.use.policies.list(call.caller, runId)[Symbol.iterator]();
  const first = policies.next();
  const head = { ...identity(call), generation: call.use.policies.generation(call.caller, runId) };
  return chunks(`${JSON.stringify(head).slice(0, -1)},"policies":[`, first, policies);
}

function* chunks(
  head: string,
  first: IteratorResult<Policy>,
  rest: Iterator<Policy>,
): Iterable<string> {
  let prefix = head;
  for (let next = first; !next.done; next = rest.next()) {
    yield prefix + JSON.stringify(next.value);
    prefix = ",";
  }
  yield first.done ? `${head}]}` : "]}";
}
