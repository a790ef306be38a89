/** Which runs go: order, shares and counts, for more runs than a sort key of 53 bits holds with their
 * seconds.
 */

import assert from "node:assert/strict";
import {
  NO_ROOM_WANTED,
  RemovalPlan,
  type RunFacts,
  type RunLimits,
} from "../../../src/model/runs/removal.ts";

const NOW_MS = 1_700_000_000_000;
const HOUR_MS = 3_600_000;
const NONE: RunLimits = {
  nowMs: NOW_MS,
  deletedLimitMs: undefined,
  endedMax: undefined,
  bytesMax: undefined,
  room: NO_ROOM_WANTED,
};

function run(runId: string, ageMs: number, facts: Partial<RunFacts> = {}): RunFacts {
  return {
    ...{ runId, principalKey: runId[0]!, endedMs: NOW_MS - ageMs, bytes: 10 },
    ...{ hasEnded: true, deleted: false, stays: null, ageLimitMs: undefined },
    ...facts,
  };
}

/** The runs that go, the oldest first, with the reason. */
function going(runs: readonly RunFacts[], limits: Partial<RunLimits>): string {
  const plan = new RemovalPlan({ ...NONE, ...limits });
  for (const each of runs) plan.add(each);
  for (const _ of plan.decide());
  const choices = [...plan.choices()];
  assert.equal(choices.length, runs.length);
  return choices.filter(({ goes }) => goes !== null).map(({ runId, goes }) => `${runId} ${goes}`).join(", ");
}

Deno.test("runs are taken by their age to the millisecond, whatever the order in which they were made", () => {
  const runs = [run("a1", 1), run("a2", 3), run("a3", 2), run("a4", 4)];
  assert.equal(going(runs, { bytesMax: 20 }), "a4 bytes, a2 bytes");
});

Deno.test("size, room and number count one after the other, and what goes for one reason counts for the next", () => {
  const runs = [
    run("a1", 9 * HOUR_MS, { ageLimitMs: HOUR_MS }),
    run("a2", 8 * HOUR_MS),
    run("a3", 7 * HOUR_MS),
    run("a4", 6 * HOUR_MS),
    run("b1", 20 * HOUR_MS),
  ];
  assert.equal(going(runs, { endedMax: 3 }), "a1 age", "the old one is not counted");
  assert.equal(going(runs, { endedMax: 2 }), "a1 age, a2 count");
  assert.equal(going(runs, { endedMax: 2, bytesMax: 20 }), "a1 age, a2 count, a3 bytes");
  const room = { ...NO_ROOM_WANTED, bytes: 30 };
  assert.equal(going(runs, { room }), "a1 age, a2 free_space, a3 free_space");
  assert.equal(going(runs, { room: { ...room, runsMax: 1 } }), "a1 age, a2 free_space");
  const blobBytes = new Map([["b1", 100]]);
  assert.equal(going(runs, { room: { ...room, blobBytes } }), "b1 free_space, a1 age");
});

Deno.test("of a principal, what is deleted goes before the oldest, and a run that stays counts", () => {
  const runs = [
    run("a1", 9, { stays: "on_hold" }),
    run("a2", 8),
    run("a3", 7),
    run("a4", 6, { stays: "not_ended", hasEnded: false }),
    run("a5", 5, { deleted: true }),
    run("a6", 4, { stays: "webhook_behind" }),
  ];
  assert.equal(going(runs, { endedMax: 5 }), "");
  assert.equal(going(runs, { endedMax: 4 }), "a5 count");
  assert.equal(going(runs, { endedMax: 3 }), "a2 count, a5 count");
  assert.equal(going(runs, { endedMax: 1 }), "a2 count, a3 count, a5 count");
});

Deno.test("more than two million runs are told apart: each is there once, and the oldest goes", () => {
  const count = 2 ** 21 + 1000;
  const plan = new RemovalPlan({ ...NONE, bytesMax: (count - 3) * 10 });
  const [oldest, newest] = [count - 2, 5];
  const any = run("a", 0);
  for (let at = 0; at < count; at++) {
    const ageMs = at === oldest ? 900 * HOUR_MS : at === newest ? 1 : HOUR_MS + at % 7 * 1000 * 60;
    plan.add({ ...any, runId: String(at), endedMs: NOW_MS - ageMs });
  }
  for (const _ of plan.decide());
  const seen = new Uint8Array(count);
  const gone: string[] = [];
  let last = "";
  let [beforeMs, isOrdered] = [0, true];
  for (const { runId, goes, endedMs } of plan.choices()) {
    seen[Number(runId)]!++;
    isOrdered &&= endedMs >= beforeMs - 1000;
    beforeMs = endedMs;
    last = runId;
    if (goes !== null) gone.push(runId);
  }
  assert.ok(isOrdered);
  assert.equal(seen.indexOf(0), -1);
  assert.deepEqual([gone.length, gone[0], last], [3, String(oldest), String(newest)]);
});
