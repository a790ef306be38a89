/** TABLE of the operations on trigger programs and policies, by method and path. */

import {
  ACTIVATE_POLICY_BODY,
  CREATE_POLICY_BODY,
  REPLAY_POLICY_BODY,
  ROLLBACK_POLICY_BODY,
} from "../../../model/api/policies.ts";
import {
  COMPILED_TRIGGER,
  EVALUATED_ON_RUN,
  EVALUATED_TRIGGER,
  VALID_TRIGGER,
} from "../../../model/api/answers/models.ts";
import {
  APPLIED_POLICY,
  POLICIES,
  POLICY_READ,
  REPLAYED_POLICY,
} from "../../../model/api/answers/policies.ts";
import { COMPILE_BODY, EVALUATE_BODY, EVALUATE_ON_RUN_BODY } from "../../../model/api/triggers.ts";
import { triggerProgram } from "../../../model/triggers/program.ts";
import { answersJson, jsonContent, type Operation } from "../operation.ts";

export const POLICY_OPERATIONS: Readonly<Record<string, Operation>> = {
  "POST /v1/triggers/compile": {
    id: "compileTrigger",
    tag: "triggers",
    body: jsonContent(COMPILE_BODY),
    answers: answersJson(COMPILED_TRIGGER, "The compiled program"),
    failures: [422],
  },
  "POST /v1/triggers/validate": {
    id: "validateTrigger",
    tag: "triggers",
    body: jsonContent(triggerProgram),
    answers: answersJson(VALID_TRIGGER, "The program is valid"),
    failures: [422],
  },
  "POST /v1/triggers/evaluate": {
    id: "evaluateTrigger",
    tag: "triggers",
    body: jsonContent(EVALUATE_BODY),
    answers: answersJson(EVALUATED_TRIGGER, "A result for each sample"),
    failures: [422],
  },
  "POST /v1/runs/:id/triggers/evaluate": {
    id: "evaluateTriggerOnRun",
    tag: "triggers",
    body: jsonContent(EVALUATE_ON_RUN_BODY),
    answers: answersJson(EVALUATED_ON_RUN, "Where the program fires"),
    failures: [404, 422, 500],
  },
  "POST /v1/runs/:id/policies": {
    id: "createPolicy",
    tag: "policies",
    body: jsonContent(CREATE_POLICY_BODY),
    answers: answersJson(POLICY_READ, "The new draft"),
    failures: [404, 409, 422, 500],
  },
  "GET /v1/runs/:id/policies": {
    id: "listPolicies",
    tag: "policies",
    answers: answersJson(POLICIES, "The revisions in the order of their numbers"),
    failures: [404, 422, 500],
  },
  "GET /v1/runs/:id/policies/:revision": {
    id: "getPolicy",
    tag: "policies",
    answers: answersJson(POLICY_READ, "The revision"),
    failures: [400, 404, 422, 500],
  },
  "POST /v1/runs/:id/policies/:revision/activate": {
    id: "activatePolicy",
    tag: "policies",
    body: jsonContent(ACTIVATE_POLICY_BODY),
    answers: answersJson(
      APPLIED_POLICY,
      "The revision in its new stage, and how the live session applied it",
    ),
    failures: [400, 404, 409, 422, 500, 503],
  },
  "POST /v1/runs/:id/policies/:revision/rollback": {
    id: "rollbackPolicy",
    tag: "policies",
    body: jsonContent(ROLLBACK_POLICY_BODY),
    answers: answersJson(APPLIED_POLICY, "The revision is active again, and how the live session applied it"),
    failures: [400, 404, 409, 422, 500, 503],
  },
  "POST /v1/runs/:id/policies/:revision/replay": {
    id: "replayPolicy",
    tag: "policies",
    body: jsonContent(REPLAY_POLICY_BODY),
    answers: answersJson(REPLAYED_POLICY, "What the revision would have reported"),
    failures: [400, 404, 409, 422, 500, 503],
  },
};
