/** The pipeline of chunks: what ends it, and when. */

import assert from "node:assert/strict";
import { forEachChunk } from "../../../src/flow/reason/pipeline.ts";
import { until } from "../../support/until.ts";

/** A source of so many chunks, all at hand. */
function chunks(count: number) {
  let pulled = 0;
  return { next: () => Promise.resolve(pulled < count ? pulled++ : null) };
}

/** A promise that never resolves, and rejects with the reason of the signal. */
function aborted(signal: AbortSignal): Promise<never> {
  return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason)));
}

Deno.test("a caller who gives up once the last chunk was pulled ends it with his reason, too, and not as if all were done", async () => {
  const caller = new AbortController();
  let begun = 0;
  const all = forEachChunk(chunks(3), { concurrency: 4, signal: caller.signal }, async (_, signal) => {
    begun += 1;
    await aborted(signal);
  });
  await until("all are under way", () => begun === 3);
  caller.abort(new Error("gone"));
  await assert.rejects(all, /^Error: gone$/);
});

Deno.test("the first chunk that fails ends the others and the pulling", async () => {
  const begun: number[] = [];
  const { signal } = new AbortController();
  await assert.rejects(
    forEachChunk(chunks(9), { concurrency: 2, signal }, async (chunk, ended) => {
      begun.push(chunk);
      if (chunk === 1) throw new Error("broken");
      await aborted(ended);
    }),
    /^Error: broken$/,
  );
  assert.deepEqual(begun, [0, 1]);
});
