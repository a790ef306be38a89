/** A permit queue admits a bounded number, lets the rest wait in order, and refuses what it cannot hold. */

import assert from "node:assert/strict";
import { type Permit, PermitQueue } from "../../src/sharing/permit_queue.ts";
import { Refusal } from "../../src/contract/refusal.ts";
import { ManualClock } from "../support/manual_clock.ts";
import { seededRandom } from "../support/seeded_random.ts";

Deno.test("as many as the limit pass at once, the next one waits for a release", async () => {
  const queue = queueOf(2);
  const first = await queue.acquire();
  await queue.acquire();
  const third = queue.acquire();
  assert.deepEqual([queue.active, queue.waiting], [2, 1]);
  first.release();
  await third;
  assert.deepEqual([queue.active, queue.waiting], [2, 0]);
});

Deno.test("waiters are admitted in the order in which they came", async () => {
  const queue = queueOf(1);
  const order: number[] = [];
  const held = await queue.acquire();
  const waiters = [1, 2, 3].map(async (name) => {
    using _permit = await queue.acquire();
    order.push(name);
  });
  held.release();
  await Promise.all(waiters);
  assert.deepEqual(order, [1, 2, 3]);
  assert.deepEqual([queue.active, queue.waiting], [0, 0]);
});

Deno.test("a new caller does not overtake one that was just given the permit", async () => {
  const queue = queueOf(1);
  const held = await queue.acquire();
  const waiter = queue.acquire();
  held.release();
  const newcomer = queue.acquire();
  assert.deepEqual([queue.active, queue.waiting], [1, 1]);
  (await waiter).release();
  (await newcomer).release();
  assert.equal(queue.active, 0);
});

Deno.test("a permit that is released twice frees one place only", async () => {
  const queue = queueOf(2);
  const permit = await queue.acquire();
  await queue.acquire();
  permit.release();
  permit[Symbol.dispose]();
  assert.equal(queue.active, 1);
});

Deno.test("a full queue refuses at once", async () => {
  const queue = queueOf(1, 1);
  await queue.acquire();
  const waiting = queue.acquire();
  await assert.rejects(queue.acquire(), isRefusal);
  assert.equal(queue.waiting, 1);
  queue.close();
  await assert.rejects(waiting, isRefusal);
});

Deno.test("a queue without room for waiters refuses instead of letting wait", async () => {
  const queue = queueOf(1, 0);
  const permit = await queue.acquire();
  await assert.rejects(queue.acquire(), isRefusal);
  permit.release();
  (await queue.acquire()).release();
});

Deno.test("a waiter whose signal aborts leaves the queue at once, and its place goes to the next", async () => {
  const queue = queueOf(1);
  const held = await queue.acquire();
  const controller = new AbortController();
  const reason = new Error("the client went away");
  const leaving = queue.acquire({ signal: controller.signal });
  const staying = queue.acquire();
  controller.abort(reason);
  assert.equal(queue.waiting, 1);
  await assert.rejects(leaving, reason);
  held.release();
  (await staying).release();
  assert.equal(queue.active, 0);
});

Deno.test("an abort after admission takes nothing away", async () => {
  const queue = queueOf(1);
  const controller = new AbortController();
  const held = await queue.acquire();
  const next = queue.acquire({ signal: controller.signal });
  held.release();
  controller.abort();
  const permit: Permit = await next;
  assert.equal(queue.active, 1);
  permit.release();
  assert.equal(queue.active, 0);
});

Deno.test("a signal that has aborted already is not even queued", async () => {
  const queue = queueOf(1);
  await assert.rejects(queue.acquire({ signal: AbortSignal.abort(new Error("too late")) }), /too late/);
  assert.deepEqual([queue.active, queue.waiting], [0, 0]);
});

Deno.test("a wait that runs out is refused and leaves the queue, by the world's clock alone", async () => {
  const world = new ManualClock();
  const queue = queueOf(1);
  const held = await queue.acquire();
  let outcome = "waiting";
  queue.acquire({ within: { world, timeoutMs: 60_000 } }).catch((error) => outcome = error.message);
  await world.advance(59_999);
  assert.deepEqual([outcome, queue.waiting, world.sleeping], ["waiting", 1, 1]);
  await world.advance(1);
  assert.equal(outcome, "Cannot admit more than 1 decodes at once within 60000 ms");
  assert.deepEqual([queue.active, queue.waiting, world.sleeping], [1, 0, 0]);
  held.release();
  assert.equal(queue.active, 0);
});

Deno.test("a wait that ends before its time stops its timer", async () => {
  const world = new ManualClock();
  const queue = queueOf(1);
  const held = await queue.acquire({ within: { world, timeoutMs: 10 } });
  assert.equal(world.sleeping, 0, "no wait, no timer");
  const controller = new AbortController();
  const aborted = queue.acquire({ signal: controller.signal, within: { world, timeoutMs: 10 } });
  const admitted = queue.acquire({ within: { world, timeoutMs: 10 } });
  assert.equal(world.sleeping, 2);
  controller.abort(new Error("the client went away"));
  await assert.rejects(aborted, /went away/);
  held.release();
  const permit = await admitted;
  assert.equal(world.sleeping, 0);
  const closed = queue.acquire({ within: { world, timeoutMs: 10 } });
  queue.close();
  await assert.rejects(closed, isRefusal);
  assert.equal(world.sleeping, 0);
  permit.release();
});

Deno.test("closing refuses waiting and later callers; permits that are out stay valid", async () => {
  const queue = queueOf(1);
  const held = await queue.acquire();
  const waiters = [
    queue.acquire(),
    queue.acquire({ within: { world: new ManualClock(), timeoutMs: 60_000 } }),
  ];
  queue.close();
  for (const waiter of waiters) await assert.rejects(waiter, isRefusal);
  await assert.rejects(queue.acquire(), isRefusal);
  assert.deepEqual([queue.active, queue.waiting], [1, 0]);
  held.release();
  assert.equal(queue.active, 0);
});

Deno.test("a queue needs a limit of at least one", () => {
  for (const limit of [0, -1, 1.5, NaN, Infinity]) assert.throws(() => queueOf(limit), RangeError);
});

function queueOf(limit: number, waiterLimit = 8, isShared = false): PermitQueue {
  return new PermitQueue({ limit, waiterLimit, what: "decodes", refusal: "provider_saturated", isShared });
}

function isRefusal(error: unknown): boolean {
  return error instanceof Refusal && error.kind === "provider_saturated" && error.status === 503;
}

Deno.test("principals take turns, however many callers each has waiting", async () => {
  const queue = queueOf(1, 64);
  const order: string[] = [];
  const held = await queue.acquire({ principalKey: "a" });
  const come = async (principalKey: string) => {
    using _permit = await queue.acquire({ principalKey });
    order.push(principalKey);
  };
  const waiters = [..."aaaaabbc"].map(come);
  held.release();
  await Promise.all(waiters);
  assert.equal(order.join(""), "bcabaaaa", "b and c have waited longer since their last turn than a");
});

Deno.test("the next permit goes to the waiting principal that holds the fewest", async () => {
  const queue = queueOf(4, 64);
  const [first] = await Promise.all(["a", "a", "a", "b"].map((key) => queue.acquire({ principalKey: key })));
  const admitted: string[] = [];
  const wait = (principalKey: string) =>
    queue.acquire({ principalKey }).then((permit) => {
      admitted.push(principalKey);
      return permit;
    });
  const waiting = [wait("a"), wait("a"), wait("b"), wait("c")];
  first!.release(); // a 2, b 1
  const fromC = await waiting[3]!;
  fromC.release(); // a 2, b 1
  const fromB = await waiting[2]!;
  assert.deepEqual(admitted, ["c", "b"]);
  fromB.release();
  await waiting[0];
  assert.deepEqual(admitted, ["c", "b", "a"]);
});

Deno.test("a principal that could take every permit leaves one, but not where it is the only one", async () => {
  for (const [limit, most] of [[2, 1], [4, 3], [16, 12]] as const) {
    const shared = queueOf(limit, 64, true);
    const greedy = Array.from({ length: limit }, () => shared.acquire({ principalKey: "greedy" }));
    assert.deepEqual([shared.active, shared.waiting], [most, limit - most]);
    using _permit = await shared.acquire({ principalKey: "other" });
    assert.equal(shared.active, most + 1);
    (await greedy[0]!).release();
    if (limit > 2) assert.equal(shared.active, most, "again one is left for whoever comes next");

    const alone = queueOf(limit, 64);
    for (let taken = 0; taken < limit; taken++) await alone.acquire({ principalKey: "greedy" });
    assert.equal(alone.active, limit);
  }
});

Deno.test("one principal cannot fill the waiting room: others take the places of its newest callers", async () => {
  const queue = queueOf(1, 4);
  await queue.acquire({ principalKey: "greedy" });
  const outcomes = new Map<string, string>();
  const come = (principalKey: string, name: string) => {
    queue.acquire({ principalKey }).then(
      () => outcomes.set(name, "admitted"),
      () => outcomes.set(name, "refused"),
    );
  };
  for (const name of ["g1", "g2", "g3", "g4", "g5"]) come("greedy", name);
  come("other", "o1");
  come("other", "o2");
  come("other", "o3");
  come("third", "t1");
  await Promise.resolve();
  assert.deepEqual([...outcomes].sort().join(" "), "g2,refused g3,refused g4,refused g5,refused o3,refused");
  assert.equal(queue.waiting, 4);
});

/** The rule in the plainest words: lists, and a search through all of them. */
class ModelQueue {
  readonly held: { name: number; key: string }[] = [];
  waiting: { name: number; key: string; since: number }[] = [];
  readonly #returned = new Map<string, number>();
  #time = 0;

  constructor(readonly limit: number, readonly isShared: boolean) {}

  come(name: number, key: string): void {
    if (this.#mayTake(key)) this.held.push({ name, key });
    else this.waiting.push({ name, key, since: ++this.#time });
  }

  leave(name: number): void {
    this.waiting = this.waiting.filter((each) => each.name !== name);
  }

  release(name: number): void {
    const at = this.held.findIndex((each) => each.name === name);
    const { key } = this.held.splice(at, 1)[0]!;
    this.#returned.set(key, ++this.#time);
    for (let next = this.#next(); next; next = this.#next()) {
      this.leave(next.name);
      this.held.push(next);
    }
  }

  #next() {
    const heads = this.waiting.filter(({ key, since }) =>
      this.waiting.every((other) => other.key !== key || other.since >= since)
    ).filter(({ key }) => this.#mayTake(key));
    const rank = (head: { key: string; since: number }) =>
      [this.#heldBy(head.key), Math.max(head.since, this.#returned.get(head.key) ?? 0)] as const;
    return heads.sort((one, other) => rank(one)[0] - rank(other)[0] || rank(one)[1] - rank(other)[1])[0];
  }

  #mayTake(key: string): boolean {
    const held = this.#heldBy(key);
    const left = this.limit - this.held.length - 1;
    return left >= 0 && (!this.isShared || held === 0 || held + 1 <= 3 * left);
  }

  #heldBy(key: string): number {
    return this.held.filter((each) => each.key === key).length;
  }
}

Deno.test("10,000 random steps in queues of all sizes follow the rule", async () => {
  const random = seededRandom(7);
  const pick = (count: number) => Math.floor(random() * count);
  for (let round = 0; round < 100; round++) {
    const [limit, isShared] = [1 + pick(8), random() < 0.5] as const;
    const queue = queueOf(limit, 1_000, isShared);
    const model = new ModelQueue(limit, isShared);
    const permits = new Map<number, Permit>();
    const leaving = new Map<number, AbortController>();
    for (let name = 0; name < 100; name++) {
      const kind = random();
      if (kind < 0.55) {
        const key = "abcd"[Math.min(pick(4), pick(4))]!;
        const controller = new AbortController();
        leaving.set(name, controller);
        queue.acquire({ principalKey: key, signal: controller.signal })
          .then((permit) => permits.set(name, permit), () => {});
        model.come(name, key);
      } else if (kind < 0.65 && model.waiting.length > 0) {
        const gone = model.waiting[pick(model.waiting.length)]!.name;
        leaving.get(gone)!.abort();
        model.leave(gone);
      } else if (model.held.length > 0) {
        const done = model.held[pick(model.held.length)]!.name;
        permits.get(done)!.release();
        permits.delete(done);
        model.release(done);
      }
      await Promise.resolve();
      await Promise.resolve();
      assert.deepEqual([...permits.keys()].sort(), model.held.map((each) => each.name).sort());
      assert.equal(queue.waiting, model.waiting.length);
    }
  }
});
