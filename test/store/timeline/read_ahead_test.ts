import assert from "node:assert/strict";
import { join } from "node:path";
import { quietLog } from "../../../src/base/log.ts";
import { realWorld } from "../../../src/base/world.ts";
import { Timeline } from "../../../src/store/timeline/timeline.ts";
import type { StoredEvent } from "../../../src/store/timeline/event_reader.ts";
import { ReadAhead } from "../../../src/store/timeline/read_ahead.ts";
import { SegmentReader } from "../../../src/store/timeline/segment.ts";

const RUNS = 50;
const ROUNDS = 300;

/**
 * A clock with which every read takes `readMs`: a millisecond as from a disk, or 0 as from the file cache.
 */
function world(readMs: number) {
  let nowMs = 0;
  return { ...realWorld(quietLog()), monotonicMs: () => nowMs += readMs };
}

/**
 * Events of many runs in turn with padding between them, so that every event of a run is a range of its own.
 */
async function filled(dataDir: string, readMs: number): Promise<Timeline> {
  const timeline = await Timeline.open({
    dataDir,
    world: world(readMs),
    sync: "none",
    segmentBytes: 16 * 2 ** 20,
  });
  for (let round = 0; round < ROUNDS; round++) {
    timeline.commit(() =>
      Array.from({ length: RUNS }, (_, run) => ({
        kind: round === 0 ? "run_created" : round % 3 === 0 ? "keepalive_refreshed" : "marker_emitted",
        runId: `run-${run}`,
        payload: { round, padding: run === 7 ? "" : "x".repeat(5000) },
      }))
    );
  }
  return timeline;
}

async function gathered(batches: AsyncIterable<readonly StoredEvent[]>): Promise<StoredEvent[]> {
  const all: StoredEvent[] = [];
  for await (const batch of batches) all.push(...batch);
  return all;
}

for (const [disk, readMs] of [["a slow disk", 1], ["the file cache", 0]] as const) {
  Deno.test(`reading ahead from ${disk} gives what reading gives`, async () => {
    const dataDir = Deno.makeTempDirSync();
    try {
      await using timeline = await filled(dataDir, readMs);
      for (
        const query of [
          {},
          { fromSeq: 5_000 },
          { fromSeq: 5_000, toSeq: 9_000 },
          { kinds: new Set(["marker_emitted"]) },
          { limit: 40 },
          { limit: 0 },
          { fromSeq: 10 ** 9 },
        ]
      ) {
        const plain = [...timeline.read("run-7", query)].flat();
        assert.deepEqual(await gathered(timeline.readAhead("run-7", query)), plain, JSON.stringify(query));
      }
      assert.equal((await gathered(timeline.readAhead("run-7"))).length, ROUNDS);
      assert.deepEqual(await gathered(timeline.readAhead("run-unknown")), []);
    } finally {
      Deno.removeSync(dataDir, { recursive: true });
    }
  });
}

Deno.test("when a segment is removed while the log is open, only its own events are lost", async () => {
  const dataDir = Deno.makeTempDirSync();
  try {
    await using timeline = await filled(dataDir, 1);
    const segments = [...Deno.readDirSync(join(dataDir, "timeline"))].map(({ name }) => name)
      .filter((name) => name.endsWith(".wal")).sort();
    assert.ok(segments.length > 2);
    Deno.removeSync(join(dataDir, "timeline", segments[1]!));
    const events = await gathered(timeline.readAhead("run-7"));
    assert.ok(events.length < ROUNDS && events.length > ROUNDS / 2, `${events.length}`);
  } finally {
    Deno.removeSync(dataDir, { recursive: true });
  }
});

Deno.test("reads that one by one are quick are not done ahead, though a few of them were slow", async () => {
  const directory = Deno.makeTempDirSync();
  try {
    using segments = new SegmentReader(directory);
    Deno.writeFileSync(join(directory, "one.wal"), new Uint8Array(2 ** 20));
    const segment = segments.add("one.wal", 2 ** 20);
    const ranges = Array.from(
      { length: 128 },
      (_, at) => ({ segment, from: at * 8192, to: at * 8192 + 100 }),
    );
    const readsOf = async (slowOnes: readonly number[]) => {
      let nowMs = 0, call = 0;
      // Every second call ends a reading.
      const clock = () => nowMs += call++ % 2 === 1 && slowOnes.includes(call >> 1) ? 5 : 0;
      const before = systemReads();
      await new ReadAhead(directory, segments, clock).warm(ranges);
      return systemReads() - before;
    };
    assert.ok(await readsOf([]) < ranges.length);
    assert.ok(await readsOf([1, 2]) < ranges.length);
    assert.ok(await readsOf([1, 3, 5]) >= ranges.length);
  } finally {
    Deno.removeSync(directory, { recursive: true });
  }
});

/** How often this process has read from anything. */
function systemReads(): number {
  return Number(/^syscr: (\d+)$/m.exec(Deno.readTextFileSync("/proc/self/io"))![1]);
}
