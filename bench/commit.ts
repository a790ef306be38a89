/**
 * Commits of one small event per second with one writer, compared with bare `writeSync` calls of the same
 * number of bytes. With `--sync group` there is one fdatasync for every hundred events, in both. Prints
 * medians over the rounds.
 *
 *     ./scripts/deno run -A bench/commit.ts [--events 300000] [--rounds 5] [--sync none|group]
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { Timeline } from "../src/store/timeline/timeline.ts";
import { median, quietWorld, report, TemporaryFolder, timed } from "./support.ts";

const { values } = parseArgs({
  args: Deno.args,
  options: {
    events: { type: "string", default: "300000" },
    rounds: { type: "string", default: "5" },
    sync: { type: "string", default: "none" },
  },
});
const events = Number(values.events);
const sync = values.sync === "group" ? "group" : "none";

const commitMs: number[] = [];
const bareMs: number[] = [];
// The first round is a warm-up and is not counted.
for (let round = 0; round <= Number(values.rounds); round++) {
  using folder = new TemporaryFolder();
  const { ms, bytes } = await commits(folder.path);
  const bare = await bareWrites(folder.path, Math.round(bytes / events));
  if (round > 0) commitMs.push(ms);
  if (round > 0) bareMs.push(bare);
}
show("timeline.commit", median(commitMs));
show("bare writeSync of as many bytes", median(bareMs));
const perSecond = (ms: number) => events / ms * 1000;
report({
  ...{ name: `commit: events${sync === "group" ? ", synced in groups" : ""}`, unit: "/s", better: "more" },
  ours: commitMs.map(perSecond),
  limit: { name: "bare writeSync", values: bareMs.map(perSecond) },
});
console.log(`share of the limit          ${(median(bareMs) / median(commitMs) * 100).toFixed(0)} %`);

async function commits(dataDir: string): Promise<{ ms: number; bytes: number }> {
  await using timeline = await Timeline.open({ dataDir, world: quietWorld(), sync });
  const runs = Array.from({ length: 100 }, (_, at) => `run-${at.toString(16).padStart(32, "0")}`);
  for (const runId of runs) {
    timeline.commit(() => [{ kind: "run_created", runId, payload: { principal_key: "public" } }]);
  }
  const ms = await timed(async () => {
    for (let number = 0; number < events; number++) {
      const runId = runs[number % runs.length]!;
      const payload = { request_id: `req-${number.toString(16).padStart(16, "0")}` };
      timeline.commit(() => [{ kind: "keepalive_refreshed", runId, payload }]);
      // As if a hundred callers shared one fdatasync.
      if (sync === "group" && number % 100 === 99) await timeline.synced();
    }
  });
  return { ms, bytes: timeline.stats.bytes };
}

async function bareWrites(folder: string, recordBytes: number): Promise<number> {
  const record = new Uint8Array(recordBytes).fill(0x61);
  using file = Deno.openSync(join(folder, "bare"), { create: true, append: true });
  return await timed(async () => {
    for (let number = 0; number < events; number++) {
      file.writeSync(record);
      if (sync === "group" && number % 100 === 99) await file.syncData();
    }
  });
}

function show(what: string, ms: number): void {
  const rate = Math.round(events / ms * 1000).toLocaleString("en");
  console.log(`${what.padEnd(32)}${rate.padStart(12)} /s  ${(ms / events * 1000).toFixed(2)} µs each`);
}
