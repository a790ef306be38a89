import assert from "node:assert/strict";
import { withSmallDisk } from "../../support/folders.ts";
import { needing, PRLIMIT, SMALL_DISK } from "../../support/needs.ts";
import { all, Bench, created, event, prepared, range, RUN, seqs } from "../../support/timeline.ts";

Deno.test({
  ...needing(
    SMALL_DISK,
    "a full disk refuses the whole commit, and the next one succeeds when there is room",
  ),
  fn: () =>
    withSmallDisk(async (path) => {
      const bench = new Bench(path);
      Deno.writeFileSync(`${bench.dataDir}/ballast`, new Uint8Array(600_000));
      const timeline = await bench.open();
      timeline.commit(() => [created()]);
      const sizeBefore = () => Deno.statSync(bench.path(bench.segments()[0]!)).size;
      const text = "x".repeat(100_000);
      let written = 1;
      assert.throws(() => {
        for (;; written++) timeline.commit(() => [event("vlm", { text })]);
      }, { code: "storage_unavailable", status: 503 });
      assert.ok(written > 2 && written < 6);
      const size = sizeBefore();
      // A commit of several records and several pieces is also written completely or not at all.
      for (const payload of [{ text }, prepared(JSON.stringify({ text: text.repeat(3) }))]) {
        assert.throws(() => timeline.commit(() => [event("vlm"), event("vlm", payload), event("vlm")]), {
          code: "storage_unavailable",
        });
        assert.equal(sizeBefore(), size);
      }
      assert.equal(timeline.view.lastSeq, written);
      assert.equal(timeline.view.run(RUN)!.eventCount, written);
      assert.deepEqual(seqs(timeline.read(RUN)), range(1, written));
      Deno.removeSync(`${bench.dataDir}/ballast`);
      assert.equal(timeline.commit(() => [event("vlm", { text })])[0]!.seq, written + 1);
      await timeline.close();
      await using again = await bench.open();
      assert.deepEqual(seqs(again.read(RUN)), range(1, written + 1));
      assert.deepEqual(bench.damages, []);
      await again.close();
    }),
});

Deno.test({
  ...needing(PRLIMIT, "a file size limit refuses the whole commit, and the service continues"),
  async fn() {
    using bench = new Bench();
    const script = new URL("./limited_writer.ts", import.meta.url).pathname;
    await using writer = new Deno.Command(Deno.execPath(), {
      args: ["run", "-A", "--no-lock", "--no-check", "--no-code-cache", script, bench.dataDir],
      stdin: "piped",
      stdout: "piped",
    }).spawn();
    const lines = writer.stdout.pipeThrough(new TextDecoderStream()).getReader();
    assert.equal((await lines.read()).value?.trim(), "open");
    const args = [`--pid=${writer.pid}`, "--fsize=200000"];
    assert.equal((await new Deno.Command("prlimit", { args }).output()).success, true);
    await writer.stdin.close();
    const { refused, lastSeq, sizeBytes } = JSON.parse((await lines.read()).value!);
    assert.equal((await writer.status).success, true);
    await lines.cancel();
    assert.equal(refused, "storage_unavailable");
    await using timeline = await bench.open();
    assert.deepEqual(bench.damages, []);
    assert.equal(timeline.stats.bytes, sizeBytes);
    assert.deepEqual(seqs(timeline.read(RUN)), range(1, lastSeq));
    // The small event that fitted after the refusal.
    assert.equal(all(timeline.read(RUN)).at(-1)!.kind, "keepalive_refreshed");
  },
});
