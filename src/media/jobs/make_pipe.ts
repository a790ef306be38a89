/** JOB that makes a named pipe, where the C library does not. */

import * as z from "zod";
import { job, QUERY_CPU_SECONDS } from "./job.ts";
import { pathText } from "./parts/job_fields.ts";

export const makePipe = job({
  schema: z.strictObject({ kind: z.literal("make_pipe"), path: pathText }),
  program: ({ mkfifo }) => mkfifo,
  hasOutput: () => false,
  writes: ({ path }) => [{ path, what: "pipe", madeBy: "program" }],
  isCaged: false,
  bounds: () => ({ work: "small", cpuSeconds: QUERY_CPU_SECONDS }),
  args: ({ path }) => ["-m", "600", "--", path],
});
