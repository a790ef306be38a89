/**
 * Opens and ends a hundred live sessions, and counts the file descriptors, processes and memory that remain.
 * Fails when descriptors or processes remain.
 *
 *     ./scripts/deno run -A bench/live/live_churn.ts [--sessions 100] [--batch 5]
 *
 * The resident memory is that of this process, with its test servers and with garbage that V8 has not
 * collected yet. Each session connects, sends one second of VP8 at four times the speed, and ends with
 * DELETE.
 */

import { parseArgs } from "node:util";
import { PublisherMedia, testVideo } from "../../test/support/live/live_publisher.ts";
import { childProcesses, descriptors, residentBytes } from "../../test/support/own_process.ts";
import { until } from "../../test/support/until.ts";
import { machine, openLiveBench } from "./live_support.ts";

const { values } = parseArgs({
  args: Deno.args,
  options: { sessions: { type: "string", default: "100" }, batch: { type: "string", default: "5" } },
});
const batch = Number(values.batch);

using media = new PublisherMedia();
const clip = media.vp8("second", testVideo("640x480", 1));
await using bench = await openLiveBench();
console.log(machine());

// The first sessions start the Workers and the connections to the model server, which stay open.
await sessions(batch);
const before = resources();
console.log(`before:               ${JSON.stringify(before)}`);
let after = before;
for (let done = batch; done <= Number(values.sessions); done += batch) {
  await sessions(batch);
  after = resources();
  if (done % (5 * batch) === 0) {
    console.log(`after ${String(done).padStart(4)} sessions:  ${JSON.stringify(after)}`);
  }
}
const removed = await bench.count("sessions_removed");
const decoded = await bench.count("frames_decoded");
console.log(`${removed} sessions ended, ${decoded} of ${removed * 30} frames decoded`);
if (after.descriptors > before.descriptors || after.programs > 0) {
  throw new Error("something was left behind");
}

async function sessions(count: number): Promise<void> {
  await Promise.all(Array.from({ length: count }, async () => {
    await using publisher = bench.publish(["--video", clip, "--fps", "120"]);
    await publisher.waitFor("sent");
    await publisher.finished();
  }));
  await until("the programs are gone", () => childProcesses("unix:").length === 0);
  bench.reports.length = 0;
}

function resources() {
  return {
    descriptors: descriptors(),
    programs: childProcesses("unix:").length,
    residentMb: Math.round(residentBytes() / 2 ** 20),
  };
}
