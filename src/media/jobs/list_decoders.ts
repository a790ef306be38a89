/** JOB that lists what ffmpeg can decode. */

import * as z from "zod";
import { job, QUERY_CPU_SECONDS } from "./job.ts";

export const listDecoders = job({
  schema: z.strictObject({ kind: z.literal("list_decoders") }),
  bounds: () => ({ work: "small", cpuSeconds: QUERY_CPU_SECONDS }),
  // Without `-v error` it tells its version.
  args: () => ["-nostdin", "-decoders"],
});
