/** What a kind of job is, for which ffmpeg or another program runs: the form of its orders, and the start. */

import type * as z from "zod";
import type { DecodeDevices, Tools } from "../../base/program_paths.ts";
import type { MediaSize } from "../media_memory.ts";
import { processors, type ToolWork } from "../tool_limits.ts";

/** A strict object of zod with a `kind`. */
export type JobSchema = z.ZodObject<{ kind: z.ZodLiteral<string> }, z.core.$strict>;

/** One row of the table in `jobs.ts`. */
export interface JobKind<Schema extends JobSchema> {
  /** The exact form of an order: the broker refuses all others. */
  readonly schema: Schema;
  /** The program; ffmpeg unless given. */
  readonly program?: (tools: Tools) => string;
  /** Whether it reads something besides the files and pipes that it names; false unless given. */
  readonly hasInput?: true;
  /** Whether it writes something besides the files and pipes that it names; true unless given. */
  hasOutput?(job: z.infer<Schema>): boolean;
  /** The pipes, files and sockets that it writes into; none unless given. */
  writes?(job: z.infer<Schema>): readonly Written[];
  bounds(job: z.infer<Schema>): Bounds;
  /** Every argument is a constant of this project, a number, or a path or address of the job. */
  args(job: z.infer<Schema>, around: Around): string[];
  /** The media of which its decoder tells something of each frame; none unless given. */
  readonly saysOfFrames?: "recorded" | "live";
  /**
   * Whether a Worker of live sessions may order it; never unless given. One that was taken over cannot read
   * recorded media: it gets streams of the relays only.
   */
  isLive?(job: z.infer<Schema>): boolean;
  /** False for a program that reads nothing that comes from others: it is not caged. */
  readonly isCaged?: false;
}

/** A kind of job as a value, so that its functions know the fields of its schema. */
export function job<Schema extends JobSchema>(kind: JobKind<Schema>): JobKind<Schema> {
  return kind;
}

/** A path that a job writes into. */
export interface Written {
  readonly path: string;
  /** In which folder it must be, and under what kind of name. */
  readonly what: "pipe" | "clip" | "socket";
  /** Who makes it: the caller before the order, the broker as an empty file, or what is started. */
  readonly madeBy: "caller" | "broker" | "program";
}

/** What a program may take of the machine. */
export interface Bounds {
  readonly work: ToolWork;
  readonly cpuSeconds: number;
  readonly fileBytes?: number;
  /** The size of what it decodes; absent where that is not known. */
  readonly size?: MediaSize | null;
}

/** Where ffmpeg reads the input of a job and writes its output, as it names it. */
export interface Ends {
  readonly input: string;
  readonly output: string;
}

/** What arguments follow from besides the job. */
export interface Around extends Ends {
  /** What ffmpeg logs of its frames; null for no reports. */
  readonly log: readonly string[] | null;
  readonly devices: DecodeDevices;
}

/** How ffmpeg names a socket. */
export const SOCKET = "unix:";

/** Bounds of programs that say something about themselves or the machine. */
export const QUERY_CPU_SECONDS = 5;

/** Bounds of a job on a window of a source. */
export function windowBounds(deadlineMs: number, size: MediaSize | null): Bounds {
  return { work: "window", cpuSeconds: deadlineMs / 1000 * processors(), size };
}
