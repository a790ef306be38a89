/**
 * The time to open a timeline of a million events, with and without its snapshot, the resident memory of the
 * process after it, and the time to read one run then. Compared with reading the same files, and with reading
 * them and computing their CRC-32. Each opening is a process of its own. Prints medians and all figures.
 *
 *     ./scripts/deno run -A bench/restart.ts [--events 1000000] [--runs 2000] [--rounds 3] [--drop-caches]
 *
 * `--drop-caches` (as root, on Linux) empties the file cache before each round, so that the reads go to the
 * disk.
 */

import { join } from "node:path";
import { parseArgs } from "node:util";
import { crc32 } from "node:zlib";
import { Timeline } from "../src/store/timeline/timeline.ts";
import { fillTimeline, runId } from "./filled_timeline.ts";
import { measureInChild, median, quietWorld, report, TemporaryFolder, timed } from "./support.ts";

const { values } = parseArgs({
  args: Deno.args,
  options: {
    events: { type: "string", default: "1000000" },
    runs: { type: "string", default: "2000" },
    rounds: { type: "string", default: "3" },
    "drop-caches": { type: "boolean", default: false },
    // For the child process: opens the timeline of this folder and prints the times.
    open: { type: "string", default: "" },
  },
});
if (values.open !== "") await openOnly(values.open);
else await main();

async function dropCaches(): Promise<void> {
  if (!values["drop-caches"]) return;
  await new Deno.Command("sync").output();
  Deno.writeTextFileSync("/proc/sys/vm/drop_caches", "3");
}

async function main(): Promise<void> {
  using folder = new TemporaryFolder();
  const events = Number(values.events);
  const bytes = await fillTimeline({
    ...{ dataDir: folder.path, events, runs: Number(values.runs) },
    principalOf: (run) => `api-key:${run % 20}`,
  });
  console.log(`${events} events of ${values.runs} runs, ${(bytes / 1e6).toFixed(0)} MB`);
  const figures: Record<string, number[]> = {};
  const add = (name: string, value: number) => (figures[name] ??= []).push(value);
  for (let round = 0; round < Number(values.rounds); round++) {
    await dropCaches();
    const withSnapshot = await child(folder.path);
    add("open with snapshot, ms", withSnapshot.openMs);
    add("memory after it, MB", withSnapshot.rssMb);
    add(
      `then ${Math.min(1000, Math.floor(events / Number(values.runs)))} events of one run, ms`,
      withSnapshot.readMs,
    );
    Deno.removeSync(join(folder.path, "timeline", "snapshot"));
    const without = await child(folder.path);
    add("open without snapshot, ms", without.openMs);
    add("memory after it, MB ", without.rssMb);
    add("limit: read the segments, ms", await timed(() => readLog(folder.path, () => {})));
    add("limit: read and CRC, ms", await timed(() => readLog(folder.path, (chunk) => void crc32(chunk))));
  }
  add("an idle process, MB", (await child("idle")).rssMb);
  const readMs = figures["limit: read the segments, ms"]!;
  for (const [what, unit] of [["open with snapshot", "ms"], ["open without snapshot", "ms"]] as const) {
    report({
      ...{ name: `restart: ${what}, ${events} events`, unit, better: "less", ours: figures[`${what}, ms`]! },
      limit: { name: "reading the segments", values: readMs },
    });
  }
  report({
    ...{
      name: "restart: memory of the timeline",
      unit: "MB",
      better: "less",
      ours: figures["memory after it, MB"]!,
    },
    limit: {
      name: "an idle process",
      values: figures["memory after it, MB"]!.map(() => figures["an idle process, MB"]![0]!),
    },
  });
  for (const [name, all] of Object.entries(figures)) {
    console.log(
      `${name.padEnd(34)}${median(all).toFixed(1).padStart(9)}   of ${
        all.map((n) => n.toFixed(1)).join(" ")
      }`,
    );
  }
}

interface Opened {
  readonly openMs: number;
  readonly readMs: number;
  readonly rssMb: number;
}

function child(dataDir: string): Promise<Opened> {
  return measureInChild(import.meta.url, ["--open", dataDir]);
}

async function openOnly(dataDir: string): Promise<void> {
  if (dataDir === "idle") {
    console.log(JSON.stringify({ openMs: 0, readMs: 0 }));
    await Deno.stdin.read(new Uint8Array(1));
    return;
  }
  const startedMs = performance.now();
  await using timeline = await Timeline.open({ dataDir, world: quietWorld(), sync: "none" });
  const openMs = performance.now() - startedMs;
  const run = runId(7);
  const readMs = await timed(async () => {
    let count = 0;
    for await (const batch of timeline.readAhead(run, { limit: 1000 })) count += batch.length;
    if (count === 0) throw new Error("nothing was read");
  });
  console.log(JSON.stringify({ openMs, readMs }));
  await Deno.stdin.read(new Uint8Array(1));
}

function readLog(dataDir: string, each: (chunk: Uint8Array) => void): void {
  const directory = join(dataDir, "timeline");
  const chunk = new Uint8Array(1024 * 1024);
  for (const { name } of Deno.readDirSync(directory)) {
    if (!name.endsWith(".wal")) continue;
    using file = Deno.openSync(join(directory, name), { read: true });
    for (let read = file.readSync(chunk); read; read = file.readSync(chunk)) each(chunk.subarray(0, read));
  }
}
