/** PORT through which media code has programs run: it says what for, not which program with which arguments.
 */

import type { World } from "../../base/world.ts";
import type { Outcome, RunningTool } from "../process.ts";
import type { RunJob, StreamJob } from "./jobs.ts";

export interface JobOptions {
  readonly world: World;
  /** Aborting kills the process; `run` then rejects with the signal's reason. */
  readonly signal: AbortSignal;
  readonly deadlineMs: number;
  /** More output than this kills the process; 0 discards it. */
  readonly maxStdoutBytes: number;
  /** Error output after this many bytes is read and dropped. */
  readonly maxStderrBytes: number;
  /** The bytes of its input; absent is none. */
  readonly input?: Uint8Array<ArrayBuffer>;
  /**
   * Where the reports of a decode's frames go; see `frame_reports.ts`. Absent for none; other jobs have none.
   */
  readonly reports?: SharedArrayBuffer;
  /** How much the program leaves the processors to others: from 0, the default, to 19. */
  readonly nice?: number;
}

export interface StreamOptions {
  /** Aborting kills the process. */
  readonly signal: AbortSignal;
  readonly maxStderrBytes: number;
  /** Called with each part of the error output as soon as it comes, also with what is dropped. */
  readonly onStderr?: (part: Uint8Array) => void;
  /** Where the reports of a decode's frames go, as in {@link JobOptions}. */
  readonly reports?: SharedArrayBuffer;
  /** How much the program leaves the processors to others, as in {@link JobOptions}. */
  readonly nice?: number;
}

/**
 * Runs jobs: in the service the client of the broker, in tests of the media code a runner in the same
 * isolate.
 */
export interface ToolRunner {
  /** Runs a job to its end. Rejects only when the program cannot be started or `signal` aborts. */
  run(job: RunJob, options: JobOptions): Promise<Outcome>;
  /**
   * Starts a job whose output is read while it runs; only `signal`, `kill` and its resource limits end it.
   * The caller reads the output to its end or cancels it, and closes the input. Throws, or ends at once, when
   * the program cannot be started.
   */
  start(job: StreamJob, options: StreamOptions): RunningTool;
}

/** A runner whose programs have a lower priority. */
export function niced(runner: ToolRunner, nice: number): ToolRunner {
  if (nice === 0) return runner;
  return {
    run: (job, options) => runner.run(job, { ...options, nice }),
    start: (job, options) => runner.start(job, { ...options, nice }),
  };
}
