/** Request bodies of the policy routes: their shapes. The rules about values are checked by the flow. */

import * as z from "zod";
import { ZONE_BODY } from "../policies/zone.ts";
import { POLICY_STAGES } from "../policies/policy.ts";
import { LIMITS } from "../../contract/limits.ts";
import { textWithin } from "../schemas/described_fields.ts";

const SEQ = z.int().nonnegative();

export const CREATE_POLICY_BODY = z.strictObject({
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

export const ACTIVATE_POLICY_BODY = z.strictObject({
  stage: z.string().meta({ enum: [...POLICY_STAGES] }),
  expected_generation: SEQ.nullish(),
});
export type ActivatePolicyBody = z.infer<typeof ACTIVATE_POLICY_BODY>;

export const ROLLBACK_POLICY_BODY = z.strictObject({ expected_generation: SEQ.nullish() });
export type RollbackPolicyBody = z.infer<typeof ROLLBACK_POLICY_BODY>;

export const REPLAY_POLICY_BODY = z.strictObject({
  from_seq: SEQ.nullish(),
  to_seq: SEQ.nullish(),
  source: z.string().nullish(),
});
export type ReplayPolicyBody = z.infer<typeof REPLAY_POLICY_BODY>;
