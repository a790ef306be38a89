import assert from "node:assert/strict";
import { Metrics } from "../../../src/contract/metrics.ts";
import { realWorld } from "../../../src/base/world.ts";
import { quietLog } from "../../../src/base/log.ts";
import type { Caller } from "../../../src/flow/caller.ts";
import { Follower, type FollowWire } from "../../../src/flow/events/follower.ts";
import { KeepaliveTimer } from "../../../src/flow/events/keepalive_timer.ts";
import type { EncodedPieces, Listener, Receiver } from "../../../src/flow/events/listener.ts";
import { PUBLIC_PRINCIPAL } from "../../../src/model/identifiers.ts";
import { LIMITS } from "../../../src/contract/limits.ts";
import { Timeline } from "../../../src/store/timeline/timeline.ts";
import { ManualClock } from "../../support/manual_clock.ts";
import { seededRandom } from "../../support/seeded_random.ts";

const RUNS = [`run-${"a".repeat(32)}`, `run-${"b".repeat(32)}`];
const KINDS = ["vlm", "clip_vlm", "loop_detected"];
const CALLER: Caller = {
  principalKey: PUBLIC_PRINCIPAL,
  tenantId: null,
  requestId: "req-0",
  isOnLoopback: true,
  holdUntilAnswered: () => {},
  signal: new AbortController().signal,
};

let piecesSeen = 0;

/** Encodes events as their sequence numbers, so that a receiver knows which events it got. */
const SEQS_WIRE: FollowWire = {
  keepalive: new Uint8Array(0),
  expired: (_runId, cursor, firstSeq) => new Uint8Array(Uint32Array.from([cursor, firstSeq]).buffer),
  messages: (events) => [new Uint8Array(Uint32Array.from(events, ({ seq }) => seq).buffer)],
  async *longMessage({ seq, pieces }) {
    for await (const piece of pieces) {
      assert.ok(piece.length <= 256 * 1024, "a long event is read in pieces");
      piecesSeen += 1;
      yield new Uint8Array(0);
    }
    yield new Uint8Array(Uint32Array.from([seq]).buffer);
  },
};

/** A receiver that requests bytes when the test says so. */
class Reader implements Receiver {
  readonly seqs: number[] = [];
  readonly listener: Listener;
  isWaiting = false;
  isEnded = false;

  constructor(follower: Follower, readonly runId: string, readonly after: number, readonly kind?: string) {
    this.listener = follower.follow(CALLER, runId, { after, filter: { kind } }, this);
  }

  request(): void {
    if (this.isWaiting) return;
    this.isWaiting = true;
    this.listener.request();
  }

  send(pieces: EncodedPieces): void {
    assert.ok(this.isWaiting, "sent without a request");
    this.isWaiting = false;
    for (const { buffer } of pieces) this.seqs.push(...new Uint32Array(buffer));
  }

  end(): void {
    this.isEnded = true;
  }

  /** How many batches are kept for the follower. */
  get waitingBatches(): number {
    let batches = 0;
    for (let at = this.listener.position; at?.next !== undefined; at = at.next.end) batches++;
    return batches;
  }
}

const turn = () => new Promise<void>((resolve) => setTimeout(resolve, 0));

Deno.test("readers of every speed, kind and cursor get exactly their events, and none has more than a full queue waiting", async () => {
  const dataDir = Deno.makeTempDirSync({ prefix: "follow-test-" });
  try {
    const world = { ...realWorld(quietLog()), sleep: turn };
    await using timeline = await Timeline.open({ dataDir, world, sync: "none" });
    const metrics = new Metrics();
    await using follower = new Follower({ timeline, world, metrics, wire: SEQS_WIRE });
    for (const runId of RUNS) {
      const payload = { principal_key: PUBLIC_PRINCIPAL };
      timeline.commit(() => [{ kind: "run_created", runId, payload }]);
    }
    const random = seededRandom(5);
    const below = (count: number) => Math.floor(random() * count);
    const log: { seq: number; runId: string; kind: string }[] = [];
    const readers: Reader[] = [];
    const expected = ({ runId, after, kind }: Reader) =>
      log.filter((event) => event.runId === runId && event.seq > after && event.kind === (kind ?? event.kind))
        .map(({ seq }) => seq);

    for (let step = 0; step < 600; step++) {
      const count = below(60) === 0 ? LIMITS.sse.ringEvents + below(2000) : 1 + below(4);
      const events = Array.from({ length: count }, (_, index) => ({
        kind: KINDS[below(below(3) + 1)]!,
        runId: RUNS[below(2)]!,
        payload: step % 200 === 7 && index === 0 ? { text: "x".repeat(1_200_000) } : {},
      }));
      log.push(...timeline.commit(() => events));
      if (step % 20 === 0) {
        const after = 2 + below(log.length + 50); // some start past the end
        const reader = new Reader(follower, RUNS[below(2)]!, after, below(2) ? undefined : KINDS[below(3)]);
        readers.push(reader);
      }
      if (step % 90 === 89) {
        const [gone] = readers.splice(below(readers.length), 1);
        gone!.listener.leave();
        gone!.listener.request();
        const got = gone!.seqs.length;
        assert.deepEqual(gone!.seqs, expected(gone!).slice(0, got));
      }
      // The first readers hardly ever request, the last ones do so at once.
      readers.forEach((reader, index) => below(readers.length) <= index && reader.request());
      if (below(3) === 0) await turn();
      for (const reader of readers) assert.ok(reader.waitingBatches <= LIMITS.sse.queueEvents);
    }
    for (const reader of readers) {
      while (reader.seqs.length < expected(reader).length) {
        reader.request();
        await turn();
      }
      assert.deepEqual(reader.seqs, expected(reader));
    }
    assert.ok(piecesSeen > 4, "the test met no long event");
    const text = await metrics.text();
    for (const name of ["notification_lag_total", "output_queue_stalls_total"]) {
      assert.match(text, new RegExp(`^service_sse_${name} [1-9]`, "m"), `the test met no ${name}`);
    }
    await follower[Symbol.asyncDispose]();
    const started = readers.filter((reader) => reader.seqs.length > 0 || reader.isWaiting);
    assert.ok(started.every((reader) => reader.isEnded));
    assert.match(await metrics.text(), /^service_sse_subscribers_active 0$/m);
  } finally {
    Deno.removeSync(dataDir, { recursive: true });
  }
});

Deno.test("a member is called each time that it was idle, an active one is not, and one timer serves all", async () => {
  const clock = new ManualClock();
  const calls: [name: string, atMs: number][] = [];
  const timer = new KeepaliveTimer<{ readonly name: string; activeMs: number }>(
    {
      ...realWorld(quietLog()),
      monotonicMs: () => clock.monotonicMs(),
      sleep: (ms, end) => clock.sleep(ms, end),
    },
    15_000,
    (member) => {
      calls.push([member.name, clock.monotonicMs()]);
      if (calls.length === 4) timer.remove(member);
      else timer.restart(member);
    },
  );
  const [idle, busy, late] = ["idle", "busy", "late"].map((name) => ({ name, activeMs: 0 }));
  timer.add(idle!);
  timer.add(busy!);
  await clock.advance(5_000);
  timer.add(late!);
  for (let second = 5; second < 60; second++) {
    timer.restart(busy!);
    await clock.advance(1_000);
  }
  assert.deepEqual(calls, [["idle", 15_000], ["late", 20_000], ["idle", 30_000], ["late", 35_000], [
    "idle",
    45_000,
  ], ["idle", 60_000]], "the fourth call removes its member");
  assert.equal(clock.sleeping, 1);
  for (const member of [idle, busy]) timer.remove(member!);
  await clock.advance(60_000);
  assert.equal(clock.sleeping, 0);
  assert.equal(calls.length, 6);
});
