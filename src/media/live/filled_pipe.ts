/** A named pipe that ffmpeg fills beside its output, and what reads it here until ffmpeg has ended. */

import type { World } from "../../base/world.ts";
import { Fifo } from "../fifo.ts";
import type { ToolRunner } from "../tools/runner.ts";

export interface FilledPipeOptions {
  readonly runner: ToolRunner;
  readonly world: World;
  /** The folder for the pipe. */
  readonly tempDir: string;
  readonly signal: AbortSignal;
  /** Reads and closes `pipe`. It must go on to the end, also where it takes nothing more, as ffmpeg must never wait here. */
  readonly read: (pipe: Deno.FsFile) => Promise<void>;
}

export class FilledPipe implements AsyncDisposable {
  readonly #fifo: Fifo;
  readonly #reading: Promise<void>;

  private constructor(fifo: Fifo, reading: Promise<void>) {
    this.#fifo = fifo;
    this.#reading = reading;
  }

  /** Rejects when the pipe cannot be made, or with the reason of the signal. */
  static async open({ runner, world, tempDir, signal, read }: FilledPipeOptions): Promise<FilledPipe> {
    await using opening = new AsyncDisposableStack();
    const fifo = opening.use(await Fifo.make({ runner, directory: tempDir, world, signal }));
    const pipe = await Deno.open(fifo.path, { read: true });
    opening.move();
    return new FilledPipe(fifo, read(pipe));
  }

  /** What ffmpeg fills. */
  get path(): string {
    return this.#fifo.path;
  }

  /** Gives on what is left in the pipe. Call it when ffmpeg has ended, as reading ends only then. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#fifo.closeGuard();
    await this.#reading;
    await this.#fifo[Symbol.asyncDispose]();
  }
}
