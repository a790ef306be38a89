import assert from "node:assert/strict";
import { Bench, created } from "../../support/timeline.ts";

Deno.test("a second process is refused with a message that names the first, and succeeds when that has ended", async () => {
  using bench = new Bench();
  const holder = new Deno.Command(Deno.execPath(), {
    args: ["run", "-A", "--no-lock", new URL("./lock_holder.ts", import.meta.url).pathname, bench.dataDir],
    stdin: "piped",
    stdout: "piped",
  }).spawn();
  const reader = holder.stdout.getReader();
  assert.equal(new TextDecoder().decode((await reader.read()).value).trim(), "open");
  await assert.rejects(
    bench.open(),
    new RegExp(`another process \\(pid ${holder.pid}\\) owns ${bench.dataDir}`),
  );
  // Killed, so that the operating system must release the lock by itself.
  holder.kill("SIGKILL");
  await holder.status;
  await reader.cancel();
  await holder.stdin.close().catch(() => {});
  await using timeline = await bench.open();
  assert.equal(timeline.view.lastSeq, 1);
});

Deno.test("a second timeline in the same process is refused too", async () => {
  using bench = new Bench();
  {
    await using timeline = await bench.open();
    await assert.rejects(bench.open(), /another process/);
    timeline.commit(() => [created()]);
  }
  await using timeline = await bench.open();
  assert.equal(timeline.view.lastSeq, 1);
});
