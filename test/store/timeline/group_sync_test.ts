import assert from "node:assert/strict";
import { yieldToEventLoop } from "../../../src/base/wait.ts";
import { Bench, created, event, range, RUN, seqs } from "../../support/timeline.ts";

/** An fdatasync that ends when the test resolves it. */
function heldSync() {
  const held: PromiseWithResolvers<void>[] = [];
  const syncData = () => {
    held.push(Promise.withResolvers());
    return held.at(-1)!.promise;
  };
  return { held, syncData };
}

Deno.test("all waiting callers share one fdatasync, and one that started earlier does not cover a later commit", async () => {
  using bench = new Bench();
  const { held, syncData } = heldSync();
  await using timeline = await bench.open({ sync: "group", syncData });
  const done: string[] = [];
  const commit = (name: string) => {
    timeline.commit(() => [event("vlm")]);
    return timeline.synced().then(() => done.push(name));
  };
  const first = commit("first");
  await yieldToEventLoop();
  const others = [commit("second"), commit("third"), commit("fourth")];
  await yieldToEventLoop();
  assert.equal(held.length, 1);
  held[0]!.resolve();
  await first;
  await yieldToEventLoop();
  assert.deepEqual(done, ["first"]);
  assert.equal(held.length, 2);
  held[1]!.resolve();
  await Promise.all(others);
  assert.deepEqual(done, ["first", "second", "third", "fourth"]);
  await timeline.synced();
  assert.equal(held.length, 2);
});

Deno.test("after a failed fdatasync the waiting callers are refused, and so is every commit until a restart", async () => {
  using bench = new Bench();
  let fails = false;
  const syncData = () => fails ? Promise.reject(new Error("I/O error")) : Promise.resolve();
  {
    await using timeline = await bench.open({ sync: "group", syncData });
    timeline.commit(() => [created()]);
    await timeline.synced();
    fails = true;
    timeline.commit(() => [event("vlm")]);
    const waits = [timeline.synced(), timeline.synced()];
    for (const wait of waits) await assert.rejects(wait, { code: "storage_unavailable" });
    fails = false;
    await assert.rejects(timeline.synced(), { code: "storage_unavailable" });
    assert.throws(() => timeline.commit(() => [event("vlm")]), {
      code: "storage_unavailable",
      message: /restart.*I\/O/,
    });
    assert.deepEqual(seqs(timeline.read(RUN)), [1, 2]);
  }
  await using timeline = await bench.open({ sync: "group", syncData });
  assert.equal(timeline.commit(() => [event("vlm")])[0]!.seq, 3);
  await timeline.synced();
});

Deno.test("segments that fill up between two syncs are covered by the next one", async () => {
  using bench = new Bench();
  const synced = new Set<Deno.FsFile>();
  const syncData = (file: Deno.FsFile) => (synced.add(file), file.syncData());
  await using timeline = await bench.open({ sync: "group", syncData, segmentBytes: 500 });
  for (const _ of range(1, 5)) {
    timeline.commit(() => range(1, 3).map(() => event("vlm", { text: "x".repeat(60) })));
    timeline.commit(() => range(1, 3).map(() => event("vlm", { text: "x".repeat(60) })));
    await timeline.synced();
  }
  assert.equal(synced.size, timeline.stats.segments);
  assert.ok(synced.size >= 10);
});

Deno.test("without group sync nothing is synced for a commit", async () => {
  using bench = new Bench();
  let syncs = 0;
  await using timeline = await bench.open({ syncData: () => (syncs++, Promise.resolve()) });
  timeline.commit(() => [created()]);
  await timeline.synced();
  assert.equal(syncs, 0);
});
