/** The child process of disk_full_test.ts: commits until the file size limit refuses it, then a small event.
 */

import { Refusal } from "../../../src/contract/refusal.ts";
import { Timeline } from "../../../src/store/timeline/timeline.ts";
import { created, event, silentWorld } from "../../support/timeline.ts";

// Without a handler the kernel ends the process; with one, the write fails with EFBIG.
try {
  Deno.addSignalListener("SIGXFSZ" as Deno.Signal, () => {});
} catch {
  // Then the runtime ignores the signal itself.
}
const timeline = await Timeline.open({ dataDir: Deno.args[0]!, world: silentWorld(() => 1), sync: "none" });
timeline.commit(() => [created()]);
// The parent sets the limit only now, so that it does not apply to the runtime's own cache files.
console.log("open");
await Deno.stdin.read(new Uint8Array(1));
let refused = "";
try {
  for (;;) timeline.commit(() => [event("vlm", { text: "x".repeat(30_000) })]);
} catch (error) {
  refused = error instanceof Refusal ? error.code : String(error);
}
timeline.commit(() => [event("keepalive_refreshed")]);
console.log(JSON.stringify({ refused, lastSeq: timeline.view.lastSeq, sizeBytes: timeline.stats.bytes }));
await timeline.close();
Deno.exit(0);
