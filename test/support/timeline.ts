/** A timeline in a folder of its own, under a clock that a test moves and a log that a test reads. */

import { join } from "node:path";
import type { Log } from "../../src/base/log.ts";
import { NO_TRACING } from "../../src/base/tracing.ts";
import type { World } from "../../src/base/world.ts";
import { type NewEvent, PreparedPayload } from "../../src/model/runs/run.ts";
import { Timeline, type TimelineOptions } from "../../src/store/timeline/timeline.ts";
import type { Damage } from "../../src/store/timeline/damage.ts";
import type { StoredEvent } from "../../src/store/timeline/event_reader.ts";

export class Bench implements Disposable {
  readonly lines: string[] = [];
  readonly damages: Damage[] = [];
  nowMs = 1_700_000_000_000;
  readonly world: World;

  constructor(readonly dataDir = Deno.makeTempDirSync({ prefix: "timeline-test-" })) {
    this.world = silentWorld(() => this.nowMs, this.lines);
  }

  get directory(): string {
    return join(this.dataDir, "timeline");
  }

  /** Forgets the damage and the lines of earlier openings. */
  open(options: Partial<TimelineOptions> = {}): Promise<Timeline> {
    this.damages.length = 0;
    this.lines.length = 0;
    return Timeline.open({
      dataDir: this.dataDir,
      world: this.world,
      sync: "none",
      onDamage: (damage) => void this.damages.push(damage),
      ...options,
    });
  }

  /** Names of the segments, in order. */
  segments(): string[] {
    return [...Deno.readDirSync(this.directory)].map((entry) => entry.name).filter((name) =>
      name.endsWith(".wal")
    )
      .sort();
  }

  path(name: string): string {
    return join(this.directory, name);
  }

  dropSnapshot(): void {
    Deno.removeSync(this.path("snapshot"));
  }

  /** Replaces the bytes of a segment, by default the first one. */
  edit(change: (bytes: Uint8Array) => Uint8Array, name = this.segments()[0]!): void {
    Deno.writeFileSync(this.path(name), change(Deno.readFileSync(this.path(name))));
  }

  /** A copy of the folder as a crash at this moment would leave it. */
  crashCopy(): Bench {
    const copy = new Bench();
    Deno.mkdirSync(copy.directory);
    try {
      for (const { name, isFile } of Deno.readDirSync(this.directory)) {
        if (isFile) Deno.copyFileSync(this.path(name), copy.path(name));
      }
      return copy;
    } catch (error) {
      copy[Symbol.dispose]();
      if (!(error instanceof Deno.errors.NotFound)) throw error;
      return this.crashCopy(); // a thread of the file system has renamed a file meanwhile
    }
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.dataDir, { recursive: true });
  }
}

/** A world whose log collects warnings and errors in `lines` and prints nothing. */
export function silentWorld(now: () => number, lines: string[] = []): World {
  const log: Log = {
    trace: () => {},
    debug: () => {},
    info: () => {},
    warn: (message) => void lines.push(`warn ${message}`),
    error: (message) => void lines.push(`error ${message}`),
    child: () => log,
  };
  return {
    now,
    monotonicMs: () => 0,
    randomBytes: (length) => new Uint8Array(length),
    sleep: () => Promise.resolve(),
    log,
    tracing: NO_TRACING,
  };
}

export const RUN = "run-00000000000000000000000000000001";

export function event(kind: string, payload: unknown = {}, runId = RUN): NewEvent {
  return { kind, runId, payload };
}

export function created(runId = RUN, principalKey = "api-key:a"): NewEvent {
  return event("run_created", { principal_key: principalKey, mode: "balanced", model: null }, runId);
}

export function prepared(json: string): PreparedPayload {
  return new PreparedPayload(new TextEncoder().encode(json));
}

/** Everything that `read` gives, in one array. */
export function all(batches: Iterable<readonly StoredEvent[]>): StoredEvent[] {
  return [...batches].flat();
}

export function seqs(batches: Iterable<readonly StoredEvent[]>): number[] {
  return all(batches).map((stored) => stored.seq);
}

export function range(from: number, to: number): number[] {
  return Array.from({ length: to - from + 1 }, (_, at) => from + at);
}

/** A log of `count` events of one run, the first its creation, each record about 150 bytes; closed again. */
export async function fill(
  bench: Bench,
  count: number,
  options: Partial<TimelineOptions> = {},
): Promise<void> {
  await using timeline = await bench.open(options);
  for (let number = 1; number <= count; number++) {
    timeline.commit(
      () => [number === 1 ? created() : event("marker_emitted", { number, text: `event ${number}` })],
    );
  }
}

/** Pseudo-random numbers from a seed, so that a failing test can be run again. */
export function randomFrom(seed: number): (below: number) => number {
  let state = seed >>> 0;
  return (below) => {
    state = (Math.imul(state, 1664525) + 1013904223) >>> 0;
    return Math.floor(state / 0x1_0000_0000 * below);
  };
}
