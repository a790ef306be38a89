/** What one principal may take of a fixed amount, so that something is left for the next. */

import assert from "node:assert/strict";
import { isWithinShare, SharedBudget } from "../../src/sharing/fair_share.ts";

/**
 * How many of `limit` each of so many principals gets, where each takes all that it may before the next one
 * comes.
 */
function takenInTurn(limit: number, principals: number): number[] {
  let free = limit;
  return Array.from({ length: principals }, () => {
    let held = 0;
    while (isWithinShare(held, 1, free)) {
      held++;
      free--;
    }
    return held;
  });
}

Deno.test("a principal gets three quarters of what the ones before it left, at least one, and never all", () => {
  const taken: Record<number, number[]> = {
    1: [1, 0],
    2: [1, 1, 0],
    3: [2, 1, 0],
    4: [3, 1, 0],
    8: [6, 1, 1, 0],
    16: [12, 3, 1, 0],
    64: [48, 12, 3, 1, 0],
  };
  for (const [limit, expected] of Object.entries(taken)) {
    assert.deepEqual(takenInTurn(Number(limit), expected.length), expected, limit);
  }
});

Deno.test("a budget counts what each holds, keeps a part for others, and gets back what is disposed, once", () => {
  const budget = new SharedBudget({ limit: 100, isShared: true });
  const large = budget.take("a", 70);
  assert.equal(budget.faultOf("a", 5), null);
  assert.equal(budget.faultOf("a", 6), "kept_for_others");
  assert.equal(budget.faultOf("a", 31), "exhausted");
  assert.equal(budget.faultOf("b", 30), null, "who holds nothing may take what is there");
  budget.take("b", 30);
  assert.equal(budget.faultOf("c", 1), "exhausted");
  large[Symbol.dispose]();
  large[Symbol.dispose]();
  assert.equal(budget.used, 30);
  assert.equal(budget.faultOf("a", 70), null);
});

Deno.test("the only principal may take everything", () => {
  const budget = new SharedBudget({ limit: 3, isShared: false });
  budget.take("public", 1);
  assert.equal(budget.faultOf("public", 2), null);
  budget.take("public", 2);
  assert.equal(budget.faultOf("public", 1), "exhausted");
});
