/** A stage of a live session: each item is worked off or lost, and its credit goes back exactly once. */

import { deepEqual, rejects } from "node:assert/strict";
import { Stage, type StageOptions } from "../../../../src/flow/live/stages/stage.ts";

/** A stage of numbers with what it did, in order; its work waits for `release`. */
function watchedStage(changes: Partial<StageOptions<number>> = {}) {
  const done: string[] = [];
  const release = Promise.withResolvers<void>();
  const stage = new Stage<number>((credit, count = 1) => done.push(`${credit} ${count}`), {
    name: "vlm",
    bound: 1,
    credit: "evidence",
    work: async (item, signal) => {
      if (!signal.aborted) await release.promise;
      signal.throwIfAborted();
      done.push(`worked ${item}`);
    },
    onLost: (item) => void done.push(`lost ${item}`),
    ...changes,
  });
  return { stage, done, release };
}

Deno.test("what finds no place is lost, and every credit goes back once", async () => {
  const { stage, done, release } = watchedStage();
  stage.offer(1);
  stage.offer(2);
  release.resolve();
  stage.end();
  await stage.run(new AbortController().signal);
  stage.offer(3);
  deepEqual(done, ["lost 2", "evidence 1", "worked 1", "evidence 1", "lost 3", "evidence 1"]);
});

Deno.test("a stage that keeps the newest loses the item that has waited longest", () => {
  const { stage, done } = watchedStage({ keepsNewest: true, credit: null });
  stage.offer(1);
  stage.offer(2);
  deepEqual(done, ["lost 1"]);
});

Deno.test("only what waits for a model is dropped, and its credit does not go back", async () => {
  for (const awaitsModel of [true, undefined]) {
    const { stage, done, release } = watchedStage({ ...(awaitsModel && { awaitsModel }) });
    stage.offer(1);
    stage.drop();
    release.resolve();
    stage.end();
    await stage.run(new AbortController().signal);
    deepEqual(done, awaitsModel ? ["lost 1"] : ["worked 1", "evidence 1"]);
  }
});

Deno.test("an abort ends the work, but not that of a stage that is never aborted; then it finishes", async () => {
  for (const isNeverAborted of [true, undefined]) {
    const aborting = new AbortController();
    const { stage, done, release } = watchedStage({
      ...(isNeverAborted && { isNeverAborted }),
      finish: () => Promise.resolve(void done.push("finished")),
    });
    stage.offer(1);
    const running = stage.run(aborting.signal);
    aborting.abort();
    if (isNeverAborted) release.resolve();
    stage.end();
    await running;
    deepEqual(done, isNeverAborted ? ["worked 1", "evidence 1", "finished"] : ["evidence 1", "finished"]);
  }
});

Deno.test("work that fails without an abort fails the stage", async () => {
  const { stage } = watchedStage({ work: () => Promise.reject(new Error("a bug")) });
  stage.offer(1);
  await rejects(stage.run(new AbortController().signal), /a bug/);
});
