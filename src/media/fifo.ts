/** A named pipe between a tool and a media worker, held open by a guard so that neither end can hang. */

import { join } from "node:path";
import type { World } from "../base/world.ts";
import { run } from "./process.ts";

const MKFIFO_DEADLINE_MS = 5_000;

/**
 * The guard is a third party that has both ends open:
 *
 * ```
 * ffmpeg --write--> FIFO --read--> worker       the worker's open never waits for ffmpeg to start,
 *          guard --both ends--/                 ffmpeg never dies of a pipe without a reader,
 *                                               and the worker's end of file comes when the guard closes
 * ```
 */
export class Fifo implements AsyncDisposable {
  #guard: Deno.FsFile | null;

  private constructor(readonly path: string, guard: Deno.FsFile) {
    this.#guard = guard;
  }

  /** Makes a pipe that only this user may open, under a name that nobody can guess. */
  static async make(
    options: { mkfifo: string; directory: string; world: World; signal: AbortSignal },
  ): Promise<Fifo> {
    const name = `media-${options.world.randomBytes(12).toHex()}.fifo`;
    const path = join(options.directory, name);
    try {
      const outcome = await run(options.mkfifo, ["-m", "600", path], {
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

  /** Call when the writer has ended: the reader gets what is still in the pipe, then end of file. */
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
