/**
 * A pass of retention over a million events, of which it removes a half: how long it takes, and the longest
 * time for which it keeps the thread that answers requests. Runs are mixed event by event, which is the worst
 * case: every segment is written again. Compared with the same thread at rest. On a busy machine only the
 * processor time of the thread says something.
 *
 *     ./scripts/deno run -A bench/retention.ts [--events 1000000] [--runs 100] [--rounds 3]
 */

import { parseArgs } from "node:util";
import { Metrics } from "../src/contract/metrics.ts";
import { RecordingRemoval } from "../src/flow/retention/recording_removal.ts";
import { Retention } from "../src/flow/retention/retention.ts";
import { RunStanding } from "../src/flow/retention/run_standing.ts";
import { BlobSweep } from "../src/store/media/blob_sweep.ts";
import { diskRoom } from "../src/store/space/disk_room.ts";
import { Recordings } from "../src/store/recordings/recordings.ts";
import { Timeline } from "../src/store/timeline/timeline.ts";
import { fillTimeline, runId } from "./filled_timeline.ts";
import { median, percentile, quietWorld, report, TemporaryFolder } from "./support.ts";

const { values } = parseArgs({
  args: Deno.args,
  options: {
    events: { type: "string", default: "1000000" },
    runs: { type: "string", default: "100" },
    rounds: { type: "string", default: "3" },
  },
});
const [events, runs, rounds] = [values.events, values.runs, values.rounds].map(Number) as [
  number,
  number,
  number,
];

const stalls: number[] = [];
const rests: number[] = [];
const busy: number[] = [];
for (let round = 0; round < rounds; round++) {
  using folder = new TemporaryFolder();
  await fillTimeline({ dataDir: folder.path, events, runs, principalOf: () => "public" });
  // Two hours later.
  const world = { ...quietWorld(), now: () => Date.now() + 2 * 3_600_000 };
  await using timeline = await Timeline.open({ dataDir: folder.path, world: quietWorld(), sync: "none" });
  for (let run = 0; run < runs; run += 2) {
    timeline.commit(() => [{ kind: "run_completed", runId: runId(run), payload: {} }]);
  }
  const bytes = timeline.stats.bytes;
  const off = {
    ...{
      runBytes: undefined,
      endedRuns: undefined,
      uploadHours: undefined,
      uploadBytes: undefined,
      freeBytes: undefined,
    },
    ...{ pictureHours: undefined, clipHours: undefined, soundHours: undefined },
    ...{ pictureBytes: undefined, clipBytes: undefined, soundBytes: undefined },
  };
  const rules = { ...off, runHours: 1 };
  const standing = new RunStanding({
    ...{
      work: { isUnderWay: () => false },
      webhooks: { isBehind: () => false },
      mirror: null,
      named: { all: [] },
    },
    ...{ streamTtlMs: 1e9, runHours: 1, world },
  });
  const metrics = new Metrics();
  await using retention = new Retention({
    ...{ timeline, rules, standing, world, metrics },
    recordings: new RecordingRemoval({
      recordings: Recordings.open(folder.path, world),
      named: { all: [] },
      ...{ metrics, world, log: world.log },
    }),
    ...{
      dataDir: folder.path,
      uploadRoot: folder.path,
      room: diskRoom,
      stored: { recountBlobs: async () => {}, blobBytesOfRuns: () => Promise.resolve(new Map()) },
    },
    sweep: (onRemoval) => new BlobSweep({ dataDir: folder.path, timeline, world, log: world.log, onRemoval }),
  });
  const passed = await gapsDuring(() => retention.pass());
  const rested = await gapsDuring(() => world.sleep(passed.tookMs));
  stalls.push(Math.max(...passed.gapsMs));
  rests.push(Math.max(...rested.gapsMs));
  busy.push(Math.max(...passed.busyMs));
  console.log(
    `round ${round + 1}: ${((bytes - timeline.stats.bytes) / 1e6).toFixed(0)} of ${
      (bytes / 1e6).toFixed(0)
    } MB in ` +
      `${(passed.tookMs / 1000).toFixed(1)} s; turns p99 ${percentile(passed.gapsMs, 0.99).toFixed(1)} ms, ` +
      `longest ${stalls.at(-1)!.toFixed(1)} ms; at rest ${rests.at(-1)!.toFixed(1)} ms; processor time of ` +
      `a turn: p99 ${percentile(passed.busyMs, 0.99).toFixed(1)} ms, longest ${
        busy.at(-1)!.toFixed(1)
      } ms; ` +
      `load ${Deno.loadavg()[0]!.toFixed(1)}`,
  );
}
report({
  name: `retention: longest stall in a pass over ${events} events`,
  ...{ unit: "ms", better: "less", ours: stalls },
  limit: { name: "the same thread at rest", values: rests },
});
console.log(
  `medians: longest stall ${median(stalls).toFixed(1)} ms, longest turn ${
    median(busy).toFixed(1)
  } ms of processor time`,
);

interface Gaps {
  readonly gapsMs: readonly number[];
  /** Processor time of this thread alone in each gap, milliseconds. */
  readonly busyMs: readonly number[];
  readonly tookMs: number;
}

/** How long a timer of no time took each time while the work went on. */
async function gapsDuring(work: () => Promise<void>): Promise<Gaps> {
  const gapsMs: number[] = [];
  const busyMs: number[] = [];
  const startedMs = performance.now();
  let isDone = false;
  const working = work().finally(() => isDone = true);
  while (!isDone) {
    const beforeMs = performance.now();
    const beforeBusyMs = threadMs();
    await new Promise((resolve) => setTimeout(resolve, 0));
    gapsMs.push(performance.now() - beforeMs);
    busyMs.push(threadMs() - beforeBusyMs);
  }
  await working;
  return { gapsMs, busyMs, tookMs: performance.now() - startedMs };
}

/** The processor time of the main thread, as Linux counts it. */
function threadMs(): number {
  return Number(Deno.readTextFileSync(`/proc/self/task/${Deno.pid}/schedstat`).split(" ")[0]) / 1e6;
}
