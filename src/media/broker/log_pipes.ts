/** The pipes through which the broker reads the logs of decoders, in a folder that no live Worker may open.
 */

import { dirname, join } from "node:path";
import type { Tools } from "../../base/program_paths.ts";
import type { World } from "../../base/world.ts";
import { Fifo } from "../jobs/fifo.ts";
import { type Outcome, run } from "../process.ts";
import { LogPipe } from "./log_pipe.ts";
import type { JobOf } from "../jobs/jobs.ts";
import type { JobPlaces } from "./job_paths.ts";
import type { NativePipes } from "./native_pipes.ts";
import type { ToolRunner } from "../jobs/runner.ts";
import { invocationOf } from "../jobs/invocation.ts";

/**
 * Pipes that are read at the same time. Each takes one of the 32 threads with which the runtime reads files
 * (Deno 2.9), whether something is in it or not. Of further decodes the error output is read.
 */
const PIPES_MAX = 16;
/** Name of the folder. It is beside the temporary folder, which live Workers may write. */
const FOLDER = "log-pipes";

export interface LogPipesOptions {
  readonly tools: Tools;
  readonly places: Pick<JobPlaces, "tempDir">;
  /** What makes the pipes; null where a program does. */
  readonly pipes: NativePipes | null;
  readonly world: World;
}

/** The pipes for logs. Their folder is made when it is needed, and removed at the end. */
export class LogPipes implements AsyncDisposable {
  readonly #options: LogPipesOptions;
  readonly #directory: string;
  #hasFolder = false;
  #open = 0;

  constructor(options: LogPipesOptions) {
    this.#options = options;
    this.#directory = join(dirname(options.places.tempDir), FOLDER);
  }

  /**
   * A pipe for the log of one decode, to be disposed when that has ended; null where as many as may be are
   * open.
   */
  async make(reports: SharedArrayBuffer, signal: AbortSignal): Promise<LogPipe | null> {
    if (this.#open >= PIPES_MAX) return null;
    this.#open++;
    await using made = new AsyncDisposableStack();
    made.defer(() => void this.#open--);
    this.#makeFolder();
    const { world } = this.#options;
    const fifo = await Fifo.make({
      runner: runnerOf(this.#options),
      directory: this.#directory,
      world,
      signal,
    });
    const pipe = new LogPipe(made.use(fifo), reports, world, () => void this.#open--);
    made.move();
    return pipe;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#hasFolder) await Deno.remove(this.#directory, { recursive: true });
    this.#hasFolder = false;
  }

  /** Makes the folder, without what a killed process may have left there. */
  #makeFolder(): void {
    if (this.#hasFolder) return;
    try {
      Deno.removeSync(this.#directory, { recursive: true });
    } catch (error) {
      if (!(error instanceof Deno.errors.NotFound)) throw error;
    }
    Deno.mkdirSync(this.#directory, { mode: 0o700 });
    this.#hasFolder = true;
  }
}

function runnerOf({ tools, pipes }: LogPipesOptions): Pick<ToolRunner, "run"> {
  return {
    run: async (job, options) => {
      if (pipes && job.kind === "make_pipe") return madeBy(pipes, job);
      const { program, args, limits } = invocationOf(job, tools);
      return await run(program, args, { ...options, limits });
    },
  };
}

/** The outcome of the program that would have made the pipe. */
export function madeBy(pipes: NativePipes, { path }: JobOf<"make_pipe">): Outcome {
  pipes.make(path);
  return { end: "exited", code: 0, stdout: new Uint8Array(), stderr: "" };
}
