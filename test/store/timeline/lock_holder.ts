/** The child process of lock_test.ts: opens the timeline of the given folder and keeps it open until it is
 * killed.
 */

import { Timeline } from "../../../src/store/timeline/timeline.ts";
import { created, silentWorld } from "../../support/timeline.ts";

const timeline = await Timeline.open({ dataDir: Deno.args[0]!, world: silentWorld(() => 1), sync: "none" });
timeline.commit(() => [created()]);
console.log("open");
await Deno.stdin.read(new Uint8Array(1));
