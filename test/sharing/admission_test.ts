/** The admission queue holds every limit, lets further calls wait by its rules for a bounded time, and names
 * its reasons.
 */

import assert from "node:assert/strict";
import {
  type AdmissionCall,
  type AdmissionLimits,
  type AdmissionPermit,
  AdmissionQueue,
  AdmissionRefused,
  LATENCY_CLASSES,
} from "../../src/sharing/admission.ts";
import { ManualClock, settled } from "../support/manual_clock.ts";
import { seededRandom } from "../support/seeded_random.ts";

const LIMITS: AdmissionLimits = {
  globalLimit: 4,
  perPrincipalLimit: 2,
  waiterLimit: 3,
  waitTimeoutMs: 5000,
  tokenBudget: 1000,
  byteBudget: 10_000,
};

const CALL: AdmissionCall = {
  principalKey: "a",
  streamKey: "s",
  latencyClass: "live",
  tokens: 10,
  bytes: 100,
  deadlineMs: 20_000,
  estimateMs: 1000,
  signal: new AbortController().signal,
};

/** A queue under a clock of the test, with a log of the result of each call by name. */
class Scene {
  readonly clock = new ManualClock();
  readonly queue: AdmissionQueue;
  /** What happened, in order: `x` for admitted, `x!saturated/global` for refused. */
  readonly log: string[] = [];
  readonly permits = new Map<string, AdmissionPermit>();

  constructor(limits: Partial<AdmissionLimits> = {}) {
    this.queue = new AdmissionQueue({ ...LIMITS, ...limits }, this.clock);
  }

  async ask(name: string, call: Partial<AdmissionCall> = {}): Promise<void> {
    this.queue.acquire({ ...CALL, ...call }).then(
      (permit) => {
        this.permits.set(name, permit);
        this.log.push(name);
      },
      (reason) => this.log.push(`${name}!${outcomeOf(reason)}`),
    );
    await settled();
  }

  async release(name: string): Promise<void> {
    this.permits.get(name)![Symbol.dispose]();
    this.permits.delete(name);
    await settled();
  }

  /** Releases all permits, oldest first. */
  async drain(): Promise<void> {
    for (const name of this.permits.keys()) await this.release(name);
    assert.deepEqual(
      [
        this.queue.active,
        this.queue.waiting,
        this.queue.activeTokens,
        this.queue.activeBytes,
        this.clock.sleeping,
      ],
      [0, 0, 0, 0, 0],
    );
  }
}

function outcomeOf(reason: unknown): string {
  if (!(reason instanceof AdmissionRefused)) return String(reason);
  return reason.limit ? `${reason.reason}/${reason.limit}` : reason.reason;
}

Deno.test("as many calls as the limits allow are admitted at once, the next one waits for its turn", async () => {
  const scene = new Scene();
  for (const name of ["a1", "a2", "a3"]) await scene.ask(name);
  for (const name of ["b1", "b2", "b3"]) await scene.ask(name, { principalKey: "b" });
  assert.deepEqual(scene.log, ["a1", "a2", "b1", "b2"]);
  assert.deepEqual([scene.queue.active, scene.queue.waiting], [4, 2]);
  assert.deepEqual([scene.queue.activeTokens, scene.queue.activeBytes], [40, 400]);
  await scene.release("b1");
  await scene.release("a1");
  assert.deepEqual(scene.log, ["a1", "a2", "b1", "b2", "b3", "a3"]);
  await scene.drain();
});

Deno.test("a permit that is released twice frees one place only", async () => {
  const scene = new Scene();
  const permit = await scene.queue.acquire(CALL);
  await scene.ask("other");
  permit[Symbol.dispose]();
  permit[Symbol.dispose]();
  assert.deepEqual([scene.queue.active, scene.queue.activeTokens, scene.queue.activeBytes], [1, 10, 100]);
  await scene.drain();
});

/** One call `x` after the `earlier` ones, and its result `afterMs` later. */
interface Refusal {
  readonly name: string;
  readonly limits?: Partial<AdmissionLimits>;
  readonly earlier?: readonly Partial<AdmissionCall>[];
  readonly call?: Partial<AdmissionCall>;
  /** Milliseconds after which the result is logged; a millisecond before nothing of `x` is. */
  readonly afterMs?: number;
  readonly expected: string;
}

const twoOfA = [{}, {}];
const twoOfEach = [{}, {}, { principalKey: "b" }, { principalKey: "b" }];

const REFUSALS: readonly Refusal[] = [
  {
    name: "more tokens than the whole budget",
    call: { tokens: 1001 },
    expected: "x!budget_exceeded",
  },
  { name: "all tokens of the budget", call: { tokens: 1000 }, expected: "x" },
  { name: "more bytes than the whole budget", call: { bytes: 10_001 }, expected: "x!budget_exceeded" },
  { name: "all bytes of the budget", call: { bytes: 10_000 }, expected: "x" },
  {
    name: "too large while no slot is free: trying again would not help, so the reason is the budget",
    limits: { globalLimit: 2, waiterLimit: 1 },
    earlier: [{}, {}, {}],
    call: { tokens: 1001 },
    expected: "x!budget_exceeded",
  },
  {
    name: "no slot is free",
    limits: { globalLimit: 2, waiterLimit: 1 },
    earlier: [{}, {}, {}],
    expected: "x!saturated",
  },
  {
    name: "slots are counted together: free calls of others leave room to wait",
    limits: { waiterLimit: 1 },
    earlier: [{}, {}, {}, {}, {}],
    expected: "x!saturated",
  },
  {
    name: "many calls of another principal do not refuse one that can start immediately",
    limits: { waiterLimit: 1 },
    earlier: [{}, {}, {}, {}, {}],
    call: { principalKey: "b" },
    expected: "x",
  },
  {
    name: "an estimate longer than the deadline, though calls are free",
    call: { deadlineMs: 500, estimateMs: 501 },
    expected: "x!deadline_missed",
  },
  {
    name: "an estimate as long as the deadline, when it can start at once",
    call: { deadlineMs: 500, estimateMs: 500 },
    expected: "x",
  },
  {
    name: "a wait for the own principal's limit",
    earlier: twoOfA,
    afterMs: 5000,
    expected: "x!saturated/principal",
  },
  {
    name: "a wait for the global limit",
    earlier: twoOfEach,
    call: { principalKey: "c" },
    afterMs: 5000,
    expected: "x!saturated/global",
  },
  {
    name: "a wait for tokens",
    earlier: [{ tokens: 995 }],
    call: { principalKey: "b", tokens: 6 },
    afterMs: 5000,
    expected: "x!saturated/global",
  },
  {
    name: "a wait for bytes",
    earlier: [{ bytes: 9995 }],
    call: { principalKey: "b", bytes: 6 },
    afterMs: 5000,
    expected: "x!saturated/global",
  },
  {
    name: "a wait past the latest start",
    earlier: twoOfA,
    call: { deadlineMs: 2000, estimateMs: 1000 },
    afterMs: 1000,
    expected: "x!deadline_missed",
  },
  {
    name: "a latest start past the wait timeout",
    earlier: twoOfA,
    call: { deadlineMs: 6001, estimateMs: 1000 },
    afterMs: 5000,
    expected: "x!saturated/principal",
  },
  {
    name: "the latest start together with the wait timeout",
    earlier: twoOfA,
    call: { deadlineMs: 6000, estimateMs: 1000 },
    afterMs: 5000,
    expected: "x!deadline_missed",
  },
];

for (const { name, limits, earlier = [], call, afterMs, expected } of REFUSALS) {
  Deno.test(`one call and its result: ${name}`, async () => {
    const scene = new Scene(limits);
    for (const [index, other] of earlier.entries()) {
      await scene.ask(`other${index}`, { deadlineMs: 100_000, ...other });
    }
    await scene.ask("x", call);
    const ofX = () => scene.log.filter((entry) => entry.startsWith("x"));
    if (afterMs !== undefined) {
      await scene.clock.advance(afterMs - 1);
      assert.deepEqual(ofX(), []);
      await scene.clock.advance(1);
    }
    assert.deepEqual(ofX(), [expected]);
    await scene.drain();
  });
}

Deno.test("a waiter whose signal aborts leaves at once, and the next one has its place", async () => {
  const scene = new Scene({ globalLimit: 1, perPrincipalLimit: 1, waiterLimit: 1 });
  const leaving = new AbortController();
  await scene.ask("first");
  await scene.ask("leaving", { signal: leaving.signal });
  leaving.abort("hung up");
  assert.deepEqual([scene.queue.active, scene.queue.waiting], [1, 0]);
  await scene.ask("next");
  await scene.release("first");
  assert.deepEqual(scene.log, ["first", "leaving!hung up", "next"]);
  await scene.drain();
});

Deno.test("a signal that has aborted already is refused, even when calls are free", async () => {
  const scene = new Scene();
  await scene.ask("x", { signal: AbortSignal.abort("gone") });
  assert.deepEqual(scene.log, ["x!gone"]);
  await scene.drain();
});

Deno.test("closing refuses waiting and later calls, and permits that are out stay valid", async () => {
  const scene = new Scene({ globalLimit: 1, perPrincipalLimit: 1 });
  await scene.ask("out");
  await scene.ask("w1");
  await scene.ask("w2", { principalKey: "b" });
  scene.queue.close();
  await scene.ask("late");
  assert.deepEqual(scene.log, ["out", "w1!saturated", "w2!saturated", "late!saturated"]);
  assert.deepEqual([scene.queue.active, scene.clock.sleeping], [1, 0]);
  await scene.drain();
});

Deno.test("a waiter whose time is up is not admitted any more, even when its timer is late", async () => {
  const scene = new Scene({ globalLimit: 1, perPrincipalLimit: 1 });
  await scene.ask("held");
  await scene.ask("late", { deadlineMs: 1500, estimateMs: 1000 });
  await scene.ask("patient");
  scene.clock.jump(501);
  await scene.release("held");
  await scene.clock.advance(0);
  assert.deepEqual(scene.log, ["held", "patient", "late!deadline_missed"]);
  await scene.drain();
});

/**
 * Calls that arrive while principal `z`, stream `z`, holds the only place, and the order in which they get
 * it.
 */
interface Selection {
  readonly name: string;
  readonly limits?: Partial<AdmissionLimits>;
  /** Name, the milliseconds before it comes, what it asks. */
  readonly waiters: readonly (readonly [string, number, Partial<AdmissionCall>])[];
  /** Milliseconds before the place is released. */
  readonly waitMs?: number;
  readonly expected: string;
}

const p = (principalKey: string, streamKey = principalKey) => ({ principalKey, streamKey });

const SELECTIONS: readonly Selection[] = [
  {
    name: "the lowest class first",
    waiters: [
      ["offline", 0, { ...p("a"), latencyClass: "offline" }],
      ["live", 0, { ...p("b"), latencyClass: "live" }],
      ["urgent", 0, { ...p("c"), latencyClass: "urgent_live" }],
    ],
    expected: "urgent live offline",
  },
  {
    name: "a class weighs more than turns",
    waiters: [["live", 0, { ...p("b") }], ["urgent", 0, { ...p("z"), latencyClass: "urgent_live" }]],
    expected: "urgent live",
  },
  {
    name: "249 ms are not enough to gain a rank",
    waiters: [["offline", 0, { ...p("a"), latencyClass: "offline" }], ["live", 249, p("b")]],
    expected: "live offline",
  },
  {
    name: "250 ms gain a rank, and the earlier latest start decides",
    waiters: [["offline", 0, { ...p("a"), latencyClass: "offline" }], ["live", 250, p("b")]],
    expected: "offline live",
  },
  {
    name: "500 ms make an offline call as urgent as any",
    waiters: [
      ["offline", 0, { ...p("a"), latencyClass: "offline" }],
      ["urgent", 500, { ...p("b"), latencyClass: "urgent_live" }],
    ],
    expected: "offline urgent",
  },
  {
    name: "ranks end at the most urgent: many old calls do not outrank another principal's turn",
    waiters: [["a1", 0, p("a")], ["a2", 0, p("a")], ["a3", 0, p("a")], ["b", 2000, p("b")]],
    waitMs: 500,
    expected: "a1 b a2 a3",
  },
  {
    name: "not the principal served last",
    waiters: [["z", 0, p("z", "y")], ["a", 0, { ...p("a", "z"), deadlineMs: 30_000 }]],
    expected: "a z",
  },
  {
    name: "two principals take turns",
    waiters: [["a1", 0, p("a")], ["a2", 0, p("a")], ["a3", 0, p("a")], ["b1", 0, p("b")], ["b2", 0, p("b")]],
    expected: "a1 b1 a2 b2 a3",
  },
  {
    name: "not the stream served last, of one principal",
    waiters: [["s1", 0, p("z", "z")], ["s2", 0, { ...p("z", "y"), deadlineMs: 30_000 }]],
    expected: "s2 s1",
  },
  {
    name: "two streams of one principal take turns",
    waiters: [["s1", 0, p("a", "s")], ["s2", 0, p("a", "s")], ["t1", 0, p("a", "t")], ["t2", 0, p("a", "t")]],
    expected: "s1 t1 s2 t2",
  },
  {
    name: "the earliest latest start",
    waiters: [
      ["later", 0, { ...p("a", "s1"), deadlineMs: 9000 }],
      ["sooner", 0, { ...p("a", "s2"), deadlineMs: 8000 }],
      ["soonest", 0, { ...p("a", "s3"), deadlineMs: 8500, estimateMs: 2000 }],
    ],
    expected: "soonest sooner later",
  },
  {
    name: "else the first that came",
    waiters: [["1", 0, p("a", "s1")], ["2", 0, p("a", "s2")], ["3", 0, p("a", "s3")]],
    expected: "1 2 3",
  },
  {
    name: "one that does not fit is passed by one that does",
    limits: { globalLimit: 2, tokenBudget: 30 },
    waiters: [
      ["large", 0, { ...p("a"), tokens: 21 }],
      ["small", 0, { ...p("b"), tokens: 20, deadlineMs: 30_000 }],
    ],
    expected: "small large",
  },
];

for (const { name, limits, waiters, waitMs = 0, expected } of SELECTIONS) {
  Deno.test(`of the waiters that fit, the first is: ${name}`, async () => {
    const scene = new Scene({
      globalLimit: 1,
      perPrincipalLimit: 1,
      waiterLimit: 10,
      waitTimeoutMs: 60_000,
      ...limits,
    });
    if (limits?.globalLimit === 2) await scene.ask("busy", p("y", "y"));
    await scene.ask("held", p("z", "z"));
    for (const [who, afterMs, call] of waiters) {
      await scene.clock.advance(afterMs);
      await scene.ask(who, call);
    }
    await scene.clock.advance(waitMs);
    await scene.release("held");
    for (const who of expected.split(" ")) {
      assert.equal(scene.log.at(-1), who, scene.log.join(" "));
      if (scene.permits.has("busy")) await scene.release("busy");
      await scene.release(who);
    }
    await scene.drain();
  });
}

Deno.test("one release may admit several waiting calls", async () => {
  const scene = new Scene({ perPrincipalLimit: 4 });
  await scene.ask("large", { tokens: 1000 });
  for (const name of ["w1", "w2", "w3"]) await scene.ask(name, { tokens: 500 });
  await scene.release("large");
  assert.deepEqual(scene.log, ["large", "w1", "w2"]);
  await scene.drain();
});

Deno.test("every outcome is counted", async () => {
  const scene = new Scene({ globalLimit: 2, perPrincipalLimit: 1, waiterLimit: 2 });
  await scene.ask("a1", { latencyClass: "urgent_live" });
  await scene.ask("b1", { principalKey: "b", latencyClass: "offline" });
  await scene.ask("a2");
  await scene.ask("a3", { deadlineMs: 2000, estimateMs: 1000 });
  await scene.ask("full");
  await scene.ask("large", { tokens: 5000 });
  await scene.ask("hopeless", { deadlineMs: 1, estimateMs: 2 });
  await scene.clock.advance(1000);
  await scene.ask("c1", { principalKey: "c" });
  await scene.release("b1");
  await scene.clock.advance(4000);
  assert.deepEqual(scene.queue.stats, {
    acquired: { urgent_live: 1, live: 1, offline: 1 },
    timeouts: { global: 0, principal: 1 },
    waiterRejections: 1,
    deadlineMissed: 2,
    budgetRejections: 1,
    waits: 5,
    waitedMs: 6000,
  });
  await scene.drain();
});

Deno.test("4096 waiting calls leave nothing behind when they are done", async () => {
  const scene = new Scene({
    globalLimit: 1024,
    perPrincipalLimit: 1024,
    waiterLimit: 4096,
    tokenBudget: 1e8,
    byteBudget: 1e8,
  });
  const acquired = Array.from(
    { length: 1024 + 4096 },
    (_, index) =>
      scene.queue.acquire({ ...CALL, ...p(`p${index % 7}`, `s${index % 31}`) }).then((permit) =>
        permit[Symbol.dispose]()
      ),
  );
  assert.deepEqual([scene.queue.active, scene.queue.waiting], [1024, 4096]);
  await assert.rejects(scene.queue.acquire(CALL), AdmissionRefused);
  await Promise.all(acquired);
  await scene.drain();
});

for (const seed of [1, 2, 3, 4, 5, 6, 7, 8]) {
  Deno.test(`no schedule breaks a limit, keeps one waiting that fits, or forgets one: seed ${seed}`, async () => {
    await new RandomSchedule(seed).run();
  });
}

/** Random arrivals, ends, departures and passing time, with every rule checked after each. */
class RandomSchedule {
  readonly #random: () => number;
  readonly #limits: AdmissionLimits = {
    globalLimit: 5,
    perPrincipalLimit: 2,
    waiterLimit: 12,
    waitTimeoutMs: 800,
    tokenBudget: 60,
    byteBudget: 600,
  };
  readonly #scene = new Scene(this.#limits);
  readonly #waiting = new Map<AdmissionCall, { endMs: number; controller: AbortController }>();
  readonly #out = new Map<AdmissionCall, AdmissionPermit>();
  #settledCalls = 0;

  constructor(seed: number) {
    this.#random = seededRandom(seed);
  }

  async run(): Promise<void> {
    const { queue, clock } = this.#scene;
    let asked = 0;
    for (let step = 0; step < 1500; step++) {
      const dice = this.#random();
      if (dice < 0.5) {
        this.#ask();
        asked += 1;
      } else if (dice < 0.8) this.#releaseOne();
      else if (dice < 0.85) this.#pick([...this.#waiting.values()])?.controller.abort(new Error("left"));
      else await clock.advance(this.#below(120));
      await Promise.resolve();
      await Promise.resolve();
      this.#check();
    }
    while (this.#out.size > 0) {
      this.#releaseOne();
      await settled();
    }
    await clock.advance(1000);
    assert.equal(this.#settledCalls, asked);
    assert.deepEqual(
      [queue.active, queue.waiting, queue.activeTokens, queue.activeBytes, clock.sleeping],
      [0, 0, 0, 0, 0],
    );
  }

  #ask(): void {
    const { queue, clock } = this.#scene;
    const controller = new AbortController();
    const call: AdmissionCall = {
      principalKey: `p${this.#below(4)}`,
      streamKey: `s${this.#below(3)}`,
      latencyClass: LATENCY_CLASSES[this.#below(3)]!,
      tokens: this.#below(65),
      bytes: this.#below(650),
      deadlineMs: this.#below(1500),
      estimateMs: this.#below(300),
      signal: controller.signal,
    };
    const latestStartMs = clock.monotonicMs() + call.deadlineMs - call.estimateMs;
    const endMs = Math.min(latestStartMs, clock.monotonicMs() + this.#limits.waitTimeoutMs);
    this.#waiting.set(call, { endMs, controller });
    queue.acquire(call).then(
      (permit) => {
        assert.ok(clock.monotonicMs() <= endMs, "admitted past its bound");
        this.#out.set(call, permit);
      },
      (reason) => {
        const isExpected = reason instanceof AdmissionRefused || reason.message === "left";
        assert.ok(isExpected, String(reason));
      },
    ).finally(() => {
      this.#settledCalls += 1;
      this.#waiting.delete(call);
    });
  }

  #check(): void {
    const { queue, clock } = this.#scene;
    const { globalLimit, perPrincipalLimit, waiterLimit, tokenBudget, byteBudget } = this.#limits;
    const out = [...this.#out.keys()];
    const sum = (of: (call: AdmissionCall) => number) => out.reduce((total, call) => total + of(call), 0);
    const ofPrincipal = (key: string) => out.filter(({ principalKey }) => principalKey === key).length;
    assert.deepEqual(
      [queue.active, queue.activeTokens, queue.activeBytes],
      [out.length, sum(({ tokens }) => tokens), sum(({ bytes }) => bytes)],
    );
    assert.ok(queue.active <= globalLimit);
    assert.ok(queue.activeTokens <= tokenBudget && queue.activeBytes <= byteBudget);
    assert.ok(out.every(({ principalKey }) => ofPrincipal(principalKey) <= perPrincipalLimit));
    assert.ok(queue.waiting <= globalLimit + waiterLimit);
    assert.ok(clock.sleeping <= queue.waiting, "a timer is left behind");
    for (const [call, { endMs }] of this.#waiting) {
      assert.ok(clock.monotonicMs() <= endMs, "waits past its bound");
      const fits = queue.active < globalLimit && ofPrincipal(call.principalKey) < perPrincipalLimit &&
        queue.activeTokens + call.tokens <= tokenBudget && queue.activeBytes + call.bytes <= byteBudget;
      assert.ok(!fits, "waits although it fits");
    }
  }

  #releaseOne(): void {
    const call = this.#pick([...this.#out.keys()]);
    if (!call) return;
    const permit = this.#out.get(call)!;
    this.#out.delete(call);
    permit[Symbol.dispose]();
  }

  #pick<T>(all: readonly T[]): T | undefined {
    return all[this.#below(all.length)];
  }

  #below(end: number): number {
    return Math.floor(this.#random() * end);
  }
}
