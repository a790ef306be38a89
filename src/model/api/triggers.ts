/** Request bodies of the trigger routes; the body of validate is the program itself. */

import * as z from "zod";
import { body } from "./described_fields.ts";
import { boundedList } from "../bounded_list.ts";
import { LIMITS } from "../limits.ts";
import { triggerProgram } from "../triggers/program.ts";
import { triggerSample } from "../triggers/samples.ts";

export const COMPILE_BODY = body("CompileTriggerRequest", { source: z.string() });

/** The number of samples is checked first, so that the faults of a million bad samples are never collected. */
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
