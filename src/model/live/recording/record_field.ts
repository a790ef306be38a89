/** The field `record` of the attach configuration: its shape and its rules. See
 * docs/live/clips.md#evidence-clips.
 */

import * as z from "zod";
import type { FieldRules } from "../../field_rules.ts";
import { LIMITS } from "../../../contract/limits.ts";
import { checkNamedCauses, CLIP_CAUSES, type ClipCause } from "./causes.ts";
import type { RecordPlan } from "./record_plan.ts";
import { named, namedEnum } from "../../schemas/named_shapes.ts";

export const RECORD = named(
  "Record",
  z.strictObject({
    pre_roll_ms: z.int().nullish(),
    post_roll_ms: z.int().nullish(),
    on: z.array(namedEnum("ClipCause", CLIP_CAUSES)).min(1).max(CLIP_CAUSES.length).nullish(),
  }),
);

/** What else the session has; null for what it does not have. */
export interface RecordedBeside {
  readonly zone: object | null;
  readonly trigger: object | null;
  readonly clip: object | null;
}

/**
 * The causes where none are named, as far as the session can have them; periodic keyframes count only where
 * they are named.
 */
const CAUSES_DEFAULT: readonly ClipCause[] = ["zone", "trigger", "scene_cut"];

export function readRecord(
  rules: FieldRules,
  asked: z.infer<typeof RECORD> | null | undefined,
  { zone, trigger, clip }: RecordedBeside,
): RecordPlan | null {
  if (!asked) return null;
  const plan: RecordPlan = {
    preRollMs: asked.pre_roll_ms ?? LIMITS.evidence.preRollMsDefault,
    postRollMs: asked.post_roll_ms ?? LIMITS.evidence.postRollMsDefault,
    on: asked.on ?? CAUSES_DEFAULT,
  };
  rules.range("record.pre_roll_ms", plan.preRollMs, LIMITS.evidence.preRollMs);
  rules.range("record.post_roll_ms", plan.postRollMs, LIMITS.evidence.postRollMs);
  checkNamedCauses(rules, "record.on", asked.on ?? [], { zone, trigger });
  if (clip) rules.fault("record", "cannot run with clip_mode, which has no keyframes");
  return plan;
}
