/** JOB that lists the NVIDIA graphics cards, a line each. */

import * as z from "zod";
import { job, QUERY_CPU_SECONDS } from "./job.ts";

export const listGpus = job({
  schema: z.strictObject({ kind: z.literal("list_gpus") }),
  // By its name, which is not found, it fails with a reason.
  program: ({ nvidiaSmi }) => nvidiaSmi ?? "nvidia-smi",
  isCaged: false,
  bounds: () => ({ work: "small", cpuSeconds: QUERY_CPU_SECONDS }),
  args: () => ["--list-gpus"],
});
