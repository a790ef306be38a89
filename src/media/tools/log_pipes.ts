/** The pipes through which the broker reads the logs of decoders, in a folder that no live Worker may open. */

import { dirname, join } from "node:path";
import type { Tools } from "../../base/program_paths.ts";
import type { World } from "../../base/world.ts";
import { Fifo } from "../fifo.ts";
import { run } from "../process.ts";
import { LogPipe } from "../reports/log_pipe.ts";
import type { JobPlaces } from "./job_paths.ts";
import type { ToolRunner } from "./runner.ts";
import { invocationOf } from "./templates.ts";

/**
 * Each pipe that is read takes one of the 32 threads with which the runtime reads files (Deno 2.9), whether something is in it or not.
 * Of further decodes the error output is read.
 */
const PIPES_MAX = 16;
/** Beside the temporary folder, which live Workers may write. */
const FOLDER = "log-pipes";

export interface LogPipesOptions {
  readonly tools: Tools;
  readonly places: Pick<JobPlaces, "tempDir">;
  readonly world: World;
}

/** The folder is made when it is needed, and removed at the end. */
export class LogPipes implements AsyncDisposable {
  readonly #options: LogPipesOptions;
  readonly #directory: string;
  #hasFolder = false;
  #open = 0;

  constructor(options: LogPipesOptions) {
    this.#options = options;
    this.#directory = join(dirname(options.places.tempDir), FOLDER);
  }

  /** A pipe for the log of one decode, to be disposed when that has ended; null where as many as may be are open. */
  async make(reports: SharedArrayBuffer, signal: AbortSignal): Promise<LogPipe | null> {
    if (this.#open >= PIPES_MAX) return null;
    this.#open++;
    await using made = new AsyncDisposableStack();
    made.defer(() => void this.#open--);
    this.#makeFolder();
    const { tools, world } = this.#options;
    const fifo = await Fifo.make({ runner: runnerOf(tools), directory: this.#directory, world, signal });
    const pipe = new LogPipe(made.use(fifo), reports, world, () => void this.#open--);
    made.move();
    return pipe;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#hasFolder) await Deno.remove(this.#directory, { recursive: true });
    this.#hasFolder = false;
  }

  /** Without what a killed process may have left there. */
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

function runnerOf(tools: Tools): Pick<ToolRunner, "run"> {
  return {
    run: (job, options) => {
      const { program, args, limits } = invocationOf(job, tools);
      return run(program, args, { ...options, limits });
    },
  };
}
