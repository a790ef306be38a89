/** What the trigger routes take and answer: shapes; the body of validate is the program itself. */

import * as z from "zod";
import { LIMITS } from "../../contract/limits.ts";
import { boundedList } from "../schemas/bounded_list.ts";
import { count, open, positive, text, unit } from "../events/payload_shapes.ts";
import { triggerProgram } from "../triggers/program.ts";
import { triggerSample } from "../triggers/samples.ts";
import { answer, requestIdField, runIdField } from "./answer_fields.ts";
import { body } from "../schemas/described_fields.ts";

export const COMPILE_BODY = body("CompileTriggerRequest", { source: z.string() });

/**
 * The samples of an evaluation. Their number is checked first, so that the faults of a million bad samples
 * are never collected.
 */
const samples = z.array(z.unknown())
  .min(LIMITS.trigger.samples.minimum)
  .max(LIMITS.trigger.samples.maximum)
  .pipe(boundedList(triggerSample, LIMITS.trigger.samples.maximum));

export const EVALUATE_BODY = body("EvaluateTriggerRequest", { program: triggerProgram, samples });

const WHOLE = z.int().nonnegative();

export const EVALUATE_ON_RUN_BODY = body("EvaluateTriggerOnRunRequest", {
  program: triggerProgram,
  from_ms: WHOLE.nullish(),
  to_ms: WHOLE.nullish(),
  source_seq: WHOLE.nullish(),
});

export type EvaluateOnRunBody = z.infer<typeof EVALUATE_ON_RUN_BODY>;
export type CompileBody = z.infer<typeof COMPILE_BODY>;
export type EvaluateBody = z.infer<typeof EVALUATE_BODY>;

export const COMPILED_TRIGGER = answer("CompileTriggerResponse", () => ({
  request_id: requestIdField,
  program: triggerProgram,
  instruction_count: positive,
  state_slots: count,
}));

export const VALID_TRIGGER = answer("ValidateTriggerResponse", () => ({
  request_id: requestIdField,
  valid: z.literal(true),
  isa_version: positive,
  program_id: text,
  program_version: positive,
  instruction_count: positive,
  state_slots: count,
}));

const TRIGGER_ACTION = answer("TriggerAction", () => ({ op: z.enum(["emit", "capture", "notify"]) }));

export const EVALUATED_TRIGGER = answer("EvaluateTriggerResponse", () => ({
  request_id: requestIdField,
  program_id: text,
  program_version: positive,
  results: z.array(open({
    pts_ms: count,
    fired: z.boolean(),
    missing_signal: z.boolean().describe("Whether a signal of the program was not in the sample"),
    actions: z.array(TRIGGER_ACTION()),
  })),
}));

export const EVALUATED_ON_RUN = answer("EvaluateTriggerOnRunResponse", () => ({
  request_id: requestIdField,
  run_id: runIdField,
  program_id: text,
  program_version: positive,
  source_seq: positive.nullable().describe(
    "The `frames_decoded` event; null for a run that has decoded nothing",
  ),
  frames: count.describe("Frames that were stepped"),
  missing_signal_frames: count.describe("Frames that have not all signals of the program"),
  fired_total: count,
  fired: z.array(open({
    frame_index: count,
    pts_ms: count,
    motion_score: unit,
    novelty_score: unit,
    confidence: unit,
  })).describe("The first firings, in the order of time"),
  actions: z.array(TRIGGER_ACTION()).describe("What each firing does"),
}));
