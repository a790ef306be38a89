import assert from "node:assert/strict";
import { join } from "node:path";
import { LIMITS } from "../../src/contract/limits.ts";
import type { DeliveryRecord } from "../../src/model/webhooks/delivery.ts";
import { DeliveryLog } from "../../src/store/webhook_deliveries.ts";
import { randomFrom, RUN, silentWorld } from "../support/timeline.ts";

const HOOK = "wh_000000000000000000000001";
const OTHER = "wh_000000000000000000000002";

/** A delivery log in a folder of its own. */
class Place implements Disposable {
  readonly dataDir = Deno.makeTempDirSync({ prefix: "deliveries-test-" });
  readonly path = join(this.dataDir, "webhook-delivery.wal");
  readonly lines: string[] = [];

  open(compactBytes?: number): DeliveryLog {
    this.lines.length = 0;
    const world = silentWorld(() => 1_700_000_000_000, this.lines);
    return DeliveryLog.open({ dataDir: this.dataDir, world, ...(compactBytes && { compactBytes }) });
  }

  get text(): string {
    return Deno.readTextFileSync(this.path);
  }

  edit(change: (bytes: Uint8Array) => Uint8Array): void {
    Deno.writeFileSync(this.path, change(Deno.readFileSync(this.path)));
  }

  /** The log as a new process reads it. */
  async state(webhookId = HOOK) {
    await using log = this.open();
    return { ...log.stateOf(RUN, webhookId) };
  }

  [Symbol.dispose](): void {
    Deno.removeSync(this.dataDir, { recursive: true });
  }
}

function record(
  state: DeliveryRecord["state"],
  seq: number,
  more: Partial<DeliveryRecord> = {},
): DeliveryRecord {
  return { webhook_id: HOOK, seq, state, error: null, ...more };
}

Deno.test("a record is a line with a checksum, and its payload is the JSON of the delivery record", async () => {
  using place = new Place();
  {
    await using log = place.open();
    log.append(RUN, record("delivered", 40));
    log.append(
      RUN,
      record("dead_letter", 41, { error: "webhook returned HTTP 500\n", attempts: [1, 2, 3, 4] }),
    );
  }
  const [first, second, end] = place.text.split("\n");
  assert.match(first!, /^1 [0-9a-f]{8} \d{9} 0 1\t/);
  const columns = first!.split("\t");
  assert.deepEqual(columns.slice(1, 5), [RUN, HOOK, "1700000000000", "delivered"]);
  assert.equal(columns[5], `{"webhook_id":"${HOOK}","seq":40,"state":"delivered","error":null}`);
  assert.equal(JSON.parse(second!.split("\t")[5]!).error, "webhook returned HTTP 500\n");
  assert.equal(end, "");
  assert.equal(Deno.statSync(place.path).mode! & 0o777, 0o600);
});

Deno.test("counters, cursor, errors and unfinished deliveries are rebuilt from the records", async () => {
  const empty = {
    runId: RUN,
    cursorSeq: 0,
    delivered: 0,
    deadLetters: 0,
    lastError: null,
    recentDeadLetters: [],
    retry: undefined,
    redelivery: undefined,
    gone: null,
    withheld: 0,
  };
  const check = async (records: DeliveryRecord[], expected: object) => {
    using place = new Place();
    {
      await using log = place.open();
      for (const each of records) log.append(RUN, each);
      const { recentDeliveries: _, failingSinceMs: __, cooldowns: ___, ...state } = log.stateOf(RUN, HOOK);
      assert.deepEqual(state, { ...empty, ...expected });
    }
    const { recentDeliveries: _, failingSinceMs: __, cooldowns: ___, ...state } = await place.state();
    assert.deepEqual(state, { ...empty, ...expected });
    assert.deepEqual(place.lines, []);
  };
  const letter = (seq: number) => ({ seq, error: "e", attempts: [seq] });
  const dead = (seq: number) => record("dead_letter", seq, { error: "e", attempts: [seq] });
  await check([], {});
  await check([record("checkpoint", 7)], { cursorSeq: 7 });
  await check([record("checkpoint", 7), record("checkpoint", 5)], { cursorSeq: 7 });
  await check([record("retry", 5, { error: "e", attempts: [1] })], {
    lastError: "e",
    retry: { seq: 5, attempts: [1], withheld: 0 },
  });
  await check([record("retry", 5, { error: "e", attempts: [1] }), record("delivered", 5)], {
    cursorSeq: 5,
    delivered: 1,
  });
  await check([dead(5), dead(6), record("checkpoint", 9)], {
    cursorSeq: 9,
    deadLetters: 2,
    lastError: "e",
    recentDeadLetters: [letter(5), letter(6)],
  });
  await check([dead(5), record("delivered", 6), record("redeliver", 5, { to_seq: 6 })], {
    cursorSeq: 6,
    delivered: 1,
    deadLetters: 1,
    recentDeadLetters: [letter(5)],
    redelivery: { fromSeq: 5, toSeq: 6 },
  });
  await check([
    dead(5),
    record("delivered", 6),
    record("redeliver", 5, { to_seq: 6 }),
    record("delivered", 5),
  ], {
    cursorSeq: 6,
    delivered: 2,
    deadLetters: 1,
    redelivery: { fromSeq: 6, toSeq: 6 },
  });
  await check([dead(5), record("redeliver", 5, { to_seq: 5 }), dead(5)], {
    cursorSeq: 5,
    deadLetters: 2,
    lastError: "e",
    recentDeadLetters: [letter(5)],
  });
  await check([record("delivered", 5), record("redeliver", 5, { to_seq: 9 })], {
    cursorSeq: 5,
    delivered: 1,
  });
  await check([
    record("delivered", 9),
    record("checkpoint", 5, { error: "e", delivered: 3, dead_letters: 2 }),
  ], {
    cursorSeq: 5,
    delivered: 3,
    deadLetters: 2,
    lastError: "e",
  });
  const gone = { since_ms: 50, receiver: null };
  const ended = record("gone", 6, { error: "410", attempts: [40], gone });
  const scheduled = record("redeliver", 5, { to_seq: 5 });
  const atEnd = { cursorSeq: 6, deadLetters: 1, lastError: "410", recentDeadLetters: [letter(5)], gone };
  await check([dead(5), scheduled, ended], atEnd);
  await check([dead(5), ended, record("checkpoint", 9)], { ...atEnd, cursorSeq: 9 });
  await check([dead(5), ended, record("resume", 6)], { ...atEnd, gone: null });
  await check([dead(5), ended, record("delivered", 7)], {
    ...{ ...atEnd, cursorSeq: 7, delivered: 1, lastError: null, gone: null },
  });
  await check([record("checkpoint", 9, { gone })], { cursorSeq: 9, gone });
  const many = Array.from({ length: 20 }, (_, at) => at + 1);
  await check(many.map(dead), {
    cursorSeq: 20,
    deadLetters: 20,
    lastError: "e",
    recentDeadLetters: many.slice(4).map(letter),
  });
});

Deno.test("the last outcomes are kept with their attempts, and since when deliveries fail", async () => {
  const check = async (records: DeliveryRecord[], failingSinceMs: number | null, outcomes: object[]) => {
    using place = new Place();
    {
      await using log = place.open();
      for (const each of records) log.append(RUN, each);
    }
    const state = await place.state();
    assert.equal(state.failingSinceMs, failingSinceMs);
    assert.deepEqual(state.recentDeliveries, outcomes);
  };
  const dead = record("dead_letter", 5, { error: "e", attempts: [10, 20], took_ms: 3, kind: "vlm" });
  const gone = {
    ...{
      seq: 5,
      outcome: "dead_letter",
      kind: "vlm",
      error: "e",
      attempts: [10, 20],
      tookMs: 3,
      withheld: 0,
    },
  };
  const again = record("delivered", 5, { attempts: [90], took_ms: 4, kind: "vlm" });
  const home = {
    ...{ seq: 5, outcome: "delivered", kind: "vlm", error: null, attempts: [90], tookMs: 4, withheld: 0 },
  };
  await check([], null, []);
  await check([record("delivered", 4)], null, [{
    ...{ seq: 4, outcome: "delivered", kind: null, error: null, attempts: [], tookMs: null, withheld: 0 },
  }]);
  await check([record("retry", 5, { error: "e", attempts: [10] })], 10, []);
  await check([record("retry", 5, { error: "e", attempts: [10] }), dead], 10, [gone]);
  await check([dead, record("retry", 6, { error: "e", attempts: [50] })], 10, [gone]);
  await check([dead, record("redeliver", 5, { to_seq: 5 }), again], null, [gone, home]);
  const many = Array.from({ length: LIMITS.webhook.recentDeliveriesMax + 3 }, (_, at) => at + 1);
  await check(
    many.map((seq) => record("delivered", seq, { attempts: [seq], took_ms: 1, kind: "vlm" })),
    null,
    many.slice(3).map((seq) => ({
      ...{ seq, outcome: "delivered", kind: "vlm", error: null, attempts: [seq], tookMs: 1, withheld: 0 },
    })),
  );
});

Deno.test("wherever the end of the log is cut, it opens with the whole records before, and appends after them", async () => {
  using place = new Place();
  {
    await using log = place.open();
    for (let seq = 1; seq <= 3; seq++) log.append(RUN, record("delivered", seq));
  }
  const whole = Deno.readFileSync(place.path);
  const ends = [...whole.entries()].filter(([, byte]) => byte === 0x0a).map(([at]) => at + 1);
  for (let size = 0; size <= whole.length; size += 1) {
    Deno.writeFileSync(place.path, whole.slice(0, size));
    // A record that lacks only its line break is whole.
    const delivered = ends.filter((end) => end - 1 <= size).length;
    {
      await using log = place.open();
      assert.equal(log.stateOf(RUN, HOOK).delivered, delivered, `cut to ${size}`);
      log.append(RUN, record("delivered", 9));
    }
    assert.equal((await place.state()).delivered, delivered + 1, `cut to ${size}, appended`);
    assert.deepEqual(place.lines.filter((line) => line.startsWith("error")), []);
  }
});

Deno.test("a damaged record is copied and reported, and all others are read", async () => {
  const damage = async (
    change: (bytes: Uint8Array, starts: number[]) => Uint8Array,
    lost: number,
    copies: number,
  ) => {
    using place = new Place();
    {
      await using log = place.open();
      for (let seq = 1; seq <= 5; seq++) log.append(RUN, record("delivered", seq));
    }
    place.edit((bytes) => {
      const starts = [0, ...[...bytes.entries()].filter(([, byte]) => byte === 0x0a).map(([at]) => at + 1)];
      return change(bytes, starts);
    });
    const state = await place.state();
    assert.equal(state.delivered, 5 - lost);
    const errors = place.lines.filter((line) => line.startsWith("error damaged webhook delivery log"));
    assert.equal(errors.length, copies);
    const names = copies === 0 ? [] : [...Deno.readDirSync(join(place.dataDir, "damaged"))];
    assert.equal(names.length, copies);
    // Records that are appended after the damage are read at the next start.
    {
      await using log = place.open();
      log.append(RUN, record("delivered", 6));
    }
    assert.equal((await place.state()).cursorSeq, 6);
  };
  const flip = (at: (starts: number[]) => number) => (bytes: Uint8Array, starts: number[]) => {
    bytes[at(starts)]! ^= 0x20;
    return bytes;
  };
  await damage((bytes) => bytes, 0, 0);
  await damage(flip((starts) => starts[2]! + 60), 1, 1);
  await damage(flip((starts) => starts[0]!), 1, 1);
  await damage(flip((starts) => starts[4]! + 100), 1, 1);
  await damage(flip((starts) => starts[3]! - 1), 0, 1);
  await damage((bytes, starts) => bytes.fill(0, starts[1], starts[3]), 2, 1);
  await damage(
    (bytes, starts) => new Uint8Array([...bytes.slice(0, starts[2]), ...bytes.slice(starts[1])]),
    0,
    1,
  );
  await damage((bytes) => new Uint8Array([...bytes, ...new TextEncoder().encode("garbage")]), 0, 1);
  await damage((bytes) => new Uint8Array([...bytes, ...new TextEncoder().encode("garbage\n")]), 0, 1);
});

Deno.test("a valid record that this version does not understand is skipped", async () => {
  using place = new Place();
  {
    await using log = place.open();
    for (const odd of [{ state: "paused" }, { seq: "7" }, { error: 7 }, { attempts: "now" }]) {
      log.append(RUN, { ...record("retry", 7), ...odd } as never);
    }
  }
  {
    await using log = place.open();
    log.append(RUN, record("delivered", 8));
  }
  const { cursorSeq, delivered, retry } = await place.state();
  assert.deepEqual([cursorSeq, delivered, retry], [8, 1, undefined]);
});

Deno.test("the log is compacted when it has outgrown its content, and nothing is lost", async () => {
  using place = new Place();
  const random = randomFrom(7);
  const log = place.open(4096);
  const compacted: number[] = [];
  let sizeBytes = 0;
  for (let seq = 1; seq <= 3000; seq++) {
    const state = (["delivered", "delivered", "dead_letter", "retry"] as const)[random(4)]!;
    const more = state === "delivered" ? {} : { error: `error ${seq}`, attempts: [seq] };
    log.append(RUN, { ...record(state, seq, more), webhook_id: random(2) ? HOOK : OTHER });
    if (seq % 500 === 0) {
      log.append(RUN, record("redeliver", 1, { to_seq: log.stateOf(RUN, HOOK).cursorSeq }));
      await log.compacted();
    }
    if (log.sizeBytes < sizeBytes) compacted.push(seq);
    sizeBytes = log.sizeBytes;
  }
  await log.compacted();
  assert.ok(compacted.length >= 3, `${compacted}`);
  assert.ok(log.sizeBytes < 200_000, `${log.sizeBytes}`);
  const states = [HOOK, OTHER].map((hook) => ({ ...log.stateOf(RUN, hook) }));
  assert.ok(states[0]!.redelivery !== undefined && states[0]!.delivered > 500);
  await log.close();
  assert.deepEqual(await Promise.all([place.state(HOOK), place.state(OTHER)].map((each) => each)), states);
  assert.equal(Deno.statSync(place.path).mode! & 0o777, 0o600);
  assert.deepEqual([...Deno.readDirSync(place.dataDir)].map(({ name }) => name), ["webhook-delivery.wal"]);
});

Deno.test("records that come during a compaction are in the new log, and a failed compaction loses nothing", async () => {
  using place = new Place();
  const log = place.open(1000);
  for (let at = 1; at <= 20; at++) log.append(RUN, record("retry", 1, { error: "e", attempts: [at] }));
  for (let seq = 1; seq <= 20; seq++) log.append(RUN, record("delivered", seq));
  await log.compacted();
  assert.deepEqual([log.stateOf(RUN, HOOK).delivered, log.stateOf(RUN, HOOK).cursorSeq], [20, 20]);
  assert.ok(place.text.split("\n").length < 40);
  for (let seq = 21; seq <= 23; seq++) log.append(RUN, record("delivered", seq));
  await log.close();
  Deno.writeTextFileSync(`${place.path}.new`, "half of a rewritten log");
  assert.deepEqual(await place.state().then(({ delivered, cursorSeq }) => [delivered, cursorSeq]), [23, 23]);
  assert.throws(() => Deno.statSync(`${place.path}.new`), Deno.errors.NotFound);
});

Deno.test("the next compaction removes forgotten webhooks and keeps the others", async () => {
  using place = new Place();
  const log = place.open(2000);
  log.append(RUN, { ...record("delivered", 1), webhook_id: OTHER });
  log.append(RUN, { ...record("delivered", 2), webhook_id: "wh_gone" });
  log.retain((webhookId) => webhookId !== "wh_gone");
  for (let seq = 3; seq <= 30; seq++) log.append(RUN, record("delivered", seq));
  await log.close();
  assert.ok(!place.text.includes("wh_gone"));
  assert.equal((await place.state(OTHER)).delivered, 1);
  assert.equal((await place.state(HOOK)).delivered, 28);
});

Deno.test("a log that cannot be opened throws, and a closed one takes no records", async () => {
  using place = new Place();
  Deno.mkdirSync(place.path);
  assert.throws(() => place.open());
  Deno.removeSync(place.path);
  const log = place.open();
  await log.close();
  await log.close();
  assert.throws(() => log.append(RUN, record("delivered", 1)), /closed/);
});
