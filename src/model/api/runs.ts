/** Request bodies of the run routes: their shapes. The rules about values are checked by the flow. */

import * as z from "zod";
import { modelId, runMode } from "../schemas/described_fields.ts";

export const CREATE_RUN_BODY = z.strictObject({
  mode: runMode,
  model: modelId.nullish(),
});

export type CreateRunBody = z.infer<typeof CREATE_RUN_BODY>;
