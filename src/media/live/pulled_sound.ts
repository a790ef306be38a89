/** The sound of a pulled live source: ffmpeg writes samples into a named pipe, and they are given on in blocks of 20 ms. */

import type { World } from "../../base/world.ts";
import { SAMPLE_BYTES, SIDECAR_SAMPLE_RATE_HZ } from "../../model/sidecars/wav.ts";
import { Fifo } from "../fifo.ts";
import type { ToolRunner } from "../tools/runner.ts";

export interface PulledSoundOptions {
  /** The folder for the named pipe. */
  readonly tempDir: string;
  /** Called with each block in order; the first one begins where the source begins, and silence fills gaps. */
  readonly onBlock: (block: Uint8Array<ArrayBuffer>) => void;
}

export const BLOCK_MS = 20;
/** Mono, 16 kHz, 16 bits. */
const BLOCK_BYTES = BLOCK_MS * SIDECAR_SAMPLE_RATE_HZ / 1000 * SAMPLE_BYTES;
const READ_BYTES = 64 << 10;

export class PulledSound implements AsyncDisposable {
  readonly #fifo: Fifo;
  readonly #reading: Promise<void>;

  private constructor(fifo: Fifo, pipe: Deno.FsFile, { onBlock }: PulledSoundOptions) {
    this.#fifo = fifo;
    this.#reading = read(pipe, onBlock);
  }

  /** Rejects when the pipe cannot be made, or with the reason of the signal. */
  static async open(
    options: PulledSoundOptions,
    { runner, world, signal }: {
      readonly runner: ToolRunner;
      readonly world: World;
      readonly signal: AbortSignal;
    },
  ): Promise<PulledSound> {
    const { tempDir: directory } = options;
    await using opening = new AsyncDisposableStack();
    const fifo = opening.use(await Fifo.make({ runner, directory, world, signal }));
    const pipe = await Deno.open(fifo.path, { read: true });
    opening.move();
    return new PulledSound(fifo, pipe, options);
  }

  /** The path of the pipe, which ffmpeg fills. */
  get pipe(): string {
    return this.#fifo.path;
  }

  /** Gives on what is left in the pipe. Call it when ffmpeg has ended, as reading ends only then. */
  async [Symbol.asyncDispose](): Promise<void> {
    this.#fifo.closeGuard();
    await this.#reading;
    await this.#fifo[Symbol.asyncDispose]();
  }
}

/** Reads as fast as the samples come, so that ffmpeg never waits here while it should decode video. */
async function read(pipe: Deno.FsFile, onBlock: PulledSoundOptions["onBlock"]): Promise<void> {
  using _pipe = pipe;
  const buffer = new Uint8Array(READ_BYTES);
  let kept = 0;
  for (;;) {
    const count = await pipe.read(buffer.subarray(kept)).catch(() => null);
    if (count === null) return;
    const end = kept + count;
    const whole = end - end % BLOCK_BYTES;
    for (let at = 0; at < whole; at += BLOCK_BYTES) onBlock(buffer.slice(at, at + BLOCK_BYTES));
    buffer.copyWithin(0, whole, end);
    kept = end - whole;
  }
}
