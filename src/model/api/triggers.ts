/** Request bodies of the trigger routes; that of validate is the program itself. Interface 4.7. */

import { z } from "zod";
import { LIMITS } from "../limits.ts";
import { triggerProgram } from "../triggers/program.ts";
import { triggerSample } from "../triggers/samples.ts";

export const COMPILE_BODY = z.strictObject({ source: z.string() });

/** Samples are counted before any is looked at: the faults of a million bad ones are not worth gathering. */
const samples = z.array(z.unknown())
  .min(LIMITS.trigger.samples.minimum)
  .max(LIMITS.trigger.samples.maximum)
  .pipe(z.array(triggerSample));

export const EVALUATE_BODY = z.strictObject({ program: triggerProgram, samples });

export type CompileBody = z.infer<typeof COMPILE_BODY>;
export type EvaluateBody = z.infer<typeof EVALUATE_BODY>;
