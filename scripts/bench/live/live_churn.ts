/**
 * Sessions that come and go: what is left of a hundred of them in descriptors, processes and memory.
 *
 *     deno run -A scripts/bench/live/live_churn.ts [--sessions 100] [--batch 5]
 *
 * Resident memory is that of this process with its test servers, and of what V8 has not collected yet.
 * Each session connects, sends a second of VP8 at four times the pace, and ends with DELETE.
 */

import { parseArgs } from "node:util";
import { PublisherMedia, testPicture } from "../../../test/support/live/live_publisher.ts";
import { childProcesses, descriptors, residentBytes } from "../../../test/support/own_process.ts";
import { until } from "../../../test/support/models/reason.ts";
import { machine, openLiveBench } from "./live_support.ts";

const { values } = parseArgs({
  args: Deno.args,
  options: { sessions: { type: "string", default: "100" }, batch: { type: "string", default: "5" } },
});
const batch = Number(values.batch);

using media = new PublisherMedia();
const clip = media.vp8("second", testPicture("640x480", 1));
await using bench = await openLiveBench();
console.log(machine());

// The first ones start the Workers and the connections to the model server, which stay.
await sessions(batch);
const before = held();
console.log(`before:               ${JSON.stringify(before)}`);
let after = before;
for (let done = batch; done <= Number(values.sessions); done += batch) {
  await sessions(batch);
  after = held();
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
  await until("the programs are gone", () => childProcesses("pipe:").length === 0);
  bench.reports.length = 0;
}

function held() {
  return {
    descriptors: descriptors(),
    programs: childProcesses("pipe:").length,
    residentMb: Math.round(residentBytes() / 2 ** 20),
  };
}
