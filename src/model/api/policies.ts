/** What the policy routes take and answer: shapes. See docs/triggers-policies.md#policies. */

import * as z from "zod";
import { LIMITS } from "../../contract/limits.ts";
import { count, jsonObject, positive, text } from "../events/payload_shapes.ts";
import {
  application,
  policyParameters,
  policyReplayEvaluated,
  policyStatus,
} from "../events/policy_payloads.ts";
import { POLICY_STAGES } from "../policies/policy.ts";
import { ZONE_BODY } from "../policies/zone.ts";
import { answer, requestIdField, runIdField } from "./answer_fields.ts";
import { body, textWithin } from "../schemas/described_fields.ts";

const SEQ = z.int().nonnegative();

export const CREATE_POLICY_BODY = body("PolicyRequest", {
  parent_revision: SEQ.nullish(),
  prompt: textWithin(
    { minimum: 0, maximum: LIMITS.policy.promptBytesMax },
    `At most ${LIMITS.policy.promptBytesMax} bytes`,
  ).nullish(),
  /**
   * The schema of the answers: any JSON value, as one that is no object is refused together with the faults
   * of the other fields.
   */
  output_schema: z.unknown().optional(),
  parameters: z.strictObject({ restricted_zone: ZONE_BODY.nullish() }).nullish(),
});
export type CreatePolicyBody = z.infer<typeof CREATE_POLICY_BODY>;

export const ACTIVATE_POLICY_BODY = body("ActivatePolicyRequest", {
  stage: z.string().meta({ enum: [...POLICY_STAGES] }),
  expected_generation: SEQ.nullish(),
});
export type ActivatePolicyBody = z.infer<typeof ACTIVATE_POLICY_BODY>;

export const ROLLBACK_POLICY_BODY = body("RollbackPolicyRequest", { expected_generation: SEQ.nullish() });
export type RollbackPolicyBody = z.infer<typeof ROLLBACK_POLICY_BODY>;

export const REPLAY_POLICY_BODY = body("ReplayPolicyRequest", {
  from_seq: SEQ.nullish(),
  to_seq: SEQ.nullish(),
  source: z.string().nullish(),
});
export type ReplayPolicyBody = z.infer<typeof REPLAY_POLICY_BODY>;

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
