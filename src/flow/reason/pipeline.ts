/** A bounded pipeline of chunks: pulls them in order and processes several at once, up to a bound. */

import { PermitQueue } from "../../sharing/permit_queue.ts";
import { TaskGroup } from "../../base/tasks.ts";

/** The chunks in order; null after the last. */
export interface ChunkSource<Chunk> {
  next(): Promise<Chunk | null>;
}

export interface PipelineOptions {
  /** Chunks that are processed at once. */
  readonly concurrency: number;
  /** Ends the pulling and all work; the error is then its reason. */
  readonly signal: AbortSignal;
}

/**
 * Waits for a free place, pulls a chunk for it and starts `work` on it:
 *
 *     free place → source.next() → at most `concurrency` × work
 *
 * Pulls nothing while every place is taken, which also stops the decoder. `work` gets the promise of the work
 * on the chunk before, for work that must keep the order. The first failure ends everything. When this
 * returns or throws, no work is under way.
 */
export async function forEachChunk<Chunk>(
  source: ChunkSource<Chunk>,
  { concurrency, signal }: PipelineOptions,
  work: (chunk: Chunk, signal: AbortSignal, predecessor: Promise<void>) => Promise<void>,
): Promise<void> {
  const tasks = new TaskGroup(signal);
  using places = new PermitQueue({
    limit: concurrency,
    waiterLimit: 1,
    what: "chunks",
    refusal: "provider_saturated",
  });
  let predecessor = Promise.resolve();
  try {
    for (;;) {
      const place = await places.acquire({ signal: tasks.signal });
      const chunk = await source.next();
      if (chunk === null) break;
      const { promise: finished, resolve: finish } = Promise.withResolvers<void>();
      const before = predecessor;
      predecessor = finished;
      tasks.start(async (ended) => {
        try {
          await work(chunk, ended, before);
        } finally {
          finish();
          place.release();
        }
      });
    }
    await tasks.join();
    signal.throwIfAborted(); // for the group it is a normal end
  } finally {
    await tasks.close();
  }
}
