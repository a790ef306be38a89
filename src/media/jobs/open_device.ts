/** JOB that opens a hardware decoder, and does nothing else. */

import * as z from "zod";
import { deviceArgs } from "./parts/hardware_args.ts";
import { job, QUERY_CPU_SECONDS } from "./job.ts";
import { hardware } from "./parts/job_fields.ts";

export const openDevice = job({
  schema: z.strictObject({ kind: z.literal("open_device"), hardware }),
  bounds: () => ({ work: "hardware", cpuSeconds: QUERY_CPU_SECONDS }),
  // One frame of no picture at all, as ffmpeg opens a device only for some work.
  args: ({ hardware }, { output, devices }) => [
    ...["-nostdin", "-v", "error", ...deviceArgs(hardware, devices)],
    ...["-f", "lavfi", "-i", "color=size=64x64:rate=1", "-frames:v", "1", "-f", "framecrc", "-y", output],
  ],
});
