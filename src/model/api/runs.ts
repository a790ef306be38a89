/** Request bodies of the run routes: their shapes. The rules about values are checked by the flow. */

import * as z from "zod";
import { body, modelId, runMode } from "./described_fields.ts";

export const CREATE_RUN_BODY = body("CreateRunRequest", {
  mode: runMode,
  model: modelId.nullish(),
});

export type CreateRunBody = z.infer<typeof CREATE_RUN_BODY>;
