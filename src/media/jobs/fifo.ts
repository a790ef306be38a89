/** A named pipe between ffmpeg and a decode worker, kept open by a third descriptor so that neither end can
 * block for ever.
 */

import { join } from "node:path";
import type { World } from "../../base/world.ts";
import type { ToolRunner } from "./runner.ts";

const MKFIFO_DEADLINE_MS = 30_000;

/**
 * The guard is a file descriptor of this process, open for reading and writing:
 *
 * ```
 * ffmpeg --write--> FIFO --read--> worker       opening never blocks: the guard is the other end,
 *             guard (both)                      ffmpeg gets no SIGPIPE while there is no worker,
 *                                               the worker gets end of file once ffmpeg and the guard are closed
 * ```
 */
export class Fifo implements AsyncDisposable {
  #guard: Deno.FsFile | null;

  private constructor(readonly path: string, guard: Deno.FsFile) {
    this.#guard = guard;
  }

  /** Makes a pipe that only this user may open, under a random name. */
  static async make(
    options: { runner: Pick<ToolRunner, "run">; directory: string; world: World; signal: AbortSignal },
  ): Promise<Fifo> {
    const name = `media-${options.world.randomBytes(12).toHex()}.fifo`;
    const path = join(options.directory, name);
    try {
      const outcome = await options.runner.run({ kind: "make_pipe", path }, {
        world: options.world,
        signal: options.signal,
        deadlineMs: MKFIFO_DEADLINE_MS,
        maxStdoutBytes: 0,
        maxStderrBytes: 512,
      });
      if (outcome.end !== "exited" || outcome.code !== 0) {
        throw new Error(`Cannot make a named pipe: ${outcome.stderr.trim() || outcome.end}`);
      }
      return new Fifo(path, await Deno.open(path, { read: true, write: true }));
    } catch (error) {
      await removeIfThere(path);
      throw error;
    }
  }

  /** Call it when the writer has ended. The reader then gets the remaining bytes, and end of file. */
  closeGuard(): void {
    this.#guard?.close();
    this.#guard = null;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.closeGuard();
    await removeIfThere(this.path);
  }
}

async function removeIfThere(path: string): Promise<void> {
  try {
    await Deno.remove(path);
  } catch (error) {
    if (!(error instanceof Deno.errors.NotFound)) throw error;
  }
}
