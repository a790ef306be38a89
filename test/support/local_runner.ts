/** Runs the jobs of media code in the test's own isolate, through the standard streams: the broker without
 * its checks.
 */

import type { Tools } from "../../src/base/program_paths.ts";
import { run, type RunningTool, start } from "../../src/media/process.ts";
import { invocationOf, type Reporting } from "../../src/media/jobs/invocation.ts";
import type { ToolRunner } from "../../src/media/jobs/runner.ts";

export function localRunner(tools: Tools): ToolRunner {
  return {
    run: (job, options) => {
      const { program, args, limits, log } = invocationOf(job, tools, reportingOf(options));
      return run(program, args, { ...options, limits, ...(log && { log }) });
    },
    start: (job, options): RunningTool => {
      const { program, args, limits, hasStdin, hasStdout, log } = invocationOf(
        job,
        tools,
        reportingOf(options),
      );
      return start(program, args, { ...options, limits, hasStdin, hasStdout, ...(log && { log }) });
    },
  };
}

/** The log is read from the error output. */
function reportingOf({ reports }: { readonly reports?: SharedArrayBuffer }): { reporting: Reporting | null } {
  return { reporting: reports ? { reports, logPipe: null } : null };
}
