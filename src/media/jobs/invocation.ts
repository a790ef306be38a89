/** What is started for a job: the program, its arguments, its limits, and all that it opens. */

import { dirname } from "node:path";
import type { Tools } from "../../base/program_paths.ts";
import type { MediaInput } from "../input.ts";
import type { ResourceLimits } from "../process.ts";
import { DecoderLog, REPORTING, REPORTING_TO_FILE, reportsTo } from "./decoder_log.ts";
import { ReportWriter } from "../frame_reports.ts";
import { toolLimits } from "../tool_limits.ts";
import { type Ends, SOCKET, type Written } from "./job.ts";
import { kindOf, type ToolJob } from "./jobs.ts";

/**
 * One program to start. Everything that the program needs of the machine is here: what starts it can take the
 * rest away.
 */
export interface Invocation {
  readonly program: string;
  readonly args: readonly string[];
  readonly limits: ResourceLimits;
  readonly touches: Touches;
  readonly hasStdin: boolean;
  readonly hasStdout: boolean;
  /** Variables of its environment, besides what every program gets. */
  readonly environment?: Readonly<Record<string, string>>;
  /** What reads its error output; absent where that has errors only. */
  readonly log?: DecoderLog;
}

/** Where a decode tells of its frames. */
export interface Reporting {
  readonly reports: SharedArrayBuffer;
  /** A pipe that takes the log, which is read there; null where its error output is read. */
  readonly logPipe: string | null;
}

/** What a program opens, besides itself, its libraries and its standard streams. All paths are real paths. */
export interface Touches {
  /** The files that it reads. */
  readonly reads: readonly string[];
  /**
   * The files, pipes and sockets into which it writes; a socket is read from as well. Each exists before the
   * start.
   */
  readonly writes: readonly string[];
  /** The device files that it uses. */
  readonly devices: readonly string[];
  /** Whether the program is caged; false for one that reads nothing that comes from others. */
  readonly isCaged: boolean;
  /** The folder in which it makes a new pipe; null for all programs but mkfifo. */
  readonly makesIn: string | null;
  /** Whether it connects to a relay on 127.0.0.1. */
  readonly usesLoopback: boolean;
}

/** The standard streams. */
export const STANDARD_ENDS: Ends = { input: "pipe:0", output: "pipe:1" };

/** Whether a job has an input and an output besides the files and pipes that it names. */
export function endsOf(job: ToolJob): { hasInput: boolean; hasOutput: boolean } {
  const kind = kindOf(job);
  return { hasInput: kind.hasInput ?? false, hasOutput: kind.hasOutput?.(job) ?? true };
}

/** What a job reads; null for one that names no input. */
export function inputOf(job: ToolJob): MediaInput | null {
  if ("subject" in job) return job.subject.input;
  return "input" in job ? job.input : null;
}

/** The pipes, files and sockets that a job writes into. */
export function writesOf(job: ToolJob): readonly Written[] {
  return kindOf(job).writes?.(job) ?? [];
}

/** What is started for a job. */
export function invocationOf(
  job: ToolJob,
  tools: Tools,
  { ends = STANDARD_ENDS, reporting = null }: {
    readonly ends?: Ends;
    /** Where the job tells of its frames, for jobs that `saysOfFrames`; ignored for others. */
    readonly reporting?: Reporting | null;
  } = {},
): Invocation {
  const kind = kindOf(job);
  const told = kind.saysOfFrames ? reporting : null;
  const log = told && (told.logPipe === null ? REPORTING : REPORTING_TO_FILE);
  const { hasInput, hasOutput } = endsOf(job);
  const bounds = kind.bounds(job);
  return {
    program: kind.program?.(tools) ?? tools.ffmpeg,
    args: kind.args(job, { ...ends, log, devices: tools.devices ?? {} }),
    limits: toolLimits(bounds.work, { ...bounds, prlimit: tools.prlimit }),
    touches: touchesOf(job, ends, told, tools),
    hasStdin: hasInput && ends === STANDARD_ENDS,
    hasStdout: hasOutput && ends === STANDARD_ENDS,
    ...(told?.logPipe && { environment: reportsTo(told.logPipe) }),
    ...(told && { log: logOf(told, kind.saysOfFrames === "live") }),
  };
}

function logOf({ reports, logPipe }: Reporting, keepsInfo: boolean): DecoderLog {
  return new DecoderLog(logPipe === null ? new ReportWriter(reports) : null, { keepsInfo });
}

/** The ends of a job whose input and output are sockets. */
export function socketEnds(input: string | null, output: string | null): Ends {
  return { input: `${SOCKET}${input}`, output: `${SOCKET}${output}` };
}

function touchesOf(job: ToolJob, ends: Ends, told: Reporting | null, { devices }: Tools): Touches {
  const { hasInput, hasOutput } = endsOf(job);
  const used = [...(hasInput ? [ends.input] : []), ...(hasOutput ? [ends.output] : [])];
  const sockets = used.filter((end) => end.startsWith(SOCKET)).map((end) => end.slice(SOCKET.length));
  const input = inputOf(job);
  const written = writesOf(job);
  const made = written.find(({ madeBy }) => madeBy === "program");
  const files = written.filter((each) => each !== made).map(({ path }) => path);
  return {
    reads: input?.path ? [input.path] : [],
    writes: [...sockets, ...files, ...(told?.logPipe ? [told.logPipe] : [])],
    devices: ("hardware" in job && job.hardware !== null && devices?.[job.hardware]) || [],
    isCaged: kindOf(job).isCaged ?? true,
    makesIn: made ? dirname(made.path) : null,
    usesLoopback: input !== null && input.path === null,
  };
}
