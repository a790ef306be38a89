/** Answers of the policy routes: their shapes. See docs/triggers-policies.md#policies. */

import * as z from "zod";
import {
  application,
  policyParameters,
  policyReplayEvaluated,
  policyStatus,
} from "../../events/policy_payloads.ts";
import { count, jsonObject, positive, text } from "../../events/payload_shapes.ts";
import { answer, requestIdField, runIdField } from "./answer_fields.ts";

export const POLICY = answer("Policy", () => ({
  revision: positive.describe("The sequence number of the event that created it"),
  parent_revision: positive.nullable(),
  status: policyStatus,
  prompt: text.nullable(),
  output_schema: jsonObject.nullable(),
  parameters: policyParameters,
  created_at_ms: count.describe("Epoch milliseconds"),
  updated_at_ms: count.describe("When the status last changed, epoch milliseconds"),
  effective_generation: positive.nullable(),
  effective_on_current_generation: z.boolean(),
  deferred_fields: z.array(text),
}));

export const POLICY_READ = answer(
  "PolicyResponse",
  () => ({ request_id: requestIdField, run_id: runIdField, policy: POLICY() }),
);

export const POLICIES = answer("PolicyList", () => ({
  request_id: requestIdField,
  run_id: runIdField,
  generation: positive.nullable().describe("Of the open live session of the run; null without one"),
  policies: z.array(POLICY()),
}));

export const APPLIED_POLICY = answer("ApplicationResponse", () => ({
  request_id: requestIdField,
  run_id: runIdField,
  policy: POLICY(),
  application,
}));

export const REPLAYED_POLICY = answer("ReplayPolicyResponse", () => ({
  request_id: requestIdField,
  run_id: runIdField,
  evaluation_id: positive.describe("The sequence number of the event of the evaluation"),
  evaluation: policyReplayEvaluated,
}));
