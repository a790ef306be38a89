/** Chunks through a bounded pipeline: pulled in order, worked on side by side, never more of them than there is room for. */

import { Gate } from "../../base/gate.ts";
import { TaskGroup } from "../../base/tasks.ts";

/** Chunks one after the other; null after the last. */
export interface ChunkSource<Chunk> {
  next(): Promise<Chunk | null>;
}

export interface PipelineOptions {
  /** Chunks that are worked on at once. */
  readonly concurrency: number;
  /** Ends the pulling and all work; what was thrown is its reason then. */
  readonly signal: AbortSignal;
}

/**
 * Waits for a free place, pulls a chunk for it and starts `work` on it:
 *
 *     free place → source.next() → at most `concurrency` × work
 *
 * Nothing is pulled while every place is taken, so the decoder is held back. `work` gets the promise of its predecessor's
 * work, for those that keep the order. The first failure ends everything; when this returns or throws, no work is under way.
 */
export async function forEachChunk<Chunk>(
  source: ChunkSource<Chunk>,
  { concurrency, signal }: PipelineOptions,
  work: (chunk: Chunk, signal: AbortSignal, predecessor: Promise<void>) => Promise<void>,
): Promise<void> {
  const tasks = new TaskGroup(signal);
  using places = new Gate({
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
  } finally {
    await tasks.close();
  }
}
