import assert from "node:assert/strict";
import { TokenRate, tokensOf } from "../../../src/model/live/token_rate.ts";

Deno.test("four bytes are a token, and every answer is one at least", () => {
  const check = (answer: string, tokens: number) => assert.equal(tokensOf(answer), tokens, answer);
  check("", 1);
  check("abc", 1);
  check("abcdefg", 1);
  check("abcdefgh", 2);
  check("é".repeat(4), 2);
  check("x".repeat(4_003), 1_000);
});

/** Questions at the given times, each answered at once with `tokens` tokens; which of them were asked. */
function asked(perSecond: number, tokens: number, times: readonly number[]): number[] {
  const rate = new TokenRate(perSecond);
  return times.filter((nowMs) => {
    const admits = rate.admits(nowMs);
    if (admits) rate.spend(nowMs, "word".repeat(tokens));
    return admits;
  });
}

Deno.test("a model is asked as long as the answers of the last second have cost less than the cap", () => {
  const every100 = [0, 100, 200, 300, 400, 500, 600, 700, 800, 900, 1000, 1100, 1200];
  assert.deepEqual(asked(0, 1_000, every100), every100);
  assert.deepEqual(asked(1, 1, every100), [0, 1000]);
  assert.deepEqual(asked(100, 40, every100), [0, 100, 200, 1000, 1100, 1200]);
  // Answers that fit exactly fill the second; one that is longer than the cap is still one answer.
  assert.deepEqual(asked(100, 50, every100), [0, 100, 1000, 1100]);
  assert.deepEqual(asked(100, 1_000_000, every100), [0, 1000]);
  // The second moves with the time and does not begin at whole ones.
  assert.deepEqual(asked(100, 50, [900, 950, 1100, 1899, 1900, 1949, 1950]), [900, 950, 1900, 1950]);
  assert.deepEqual(asked(2 ** 32 - 1, 1, every100), every100);
});

Deno.test("however fast answers come, what is remembered of them has a bound", () => {
  const rate = new TokenRate(2 ** 32 - 1);
  let admitted = 0;
  while (rate.admits(0)) {
    rate.spend(0, "");
    admitted++;
  }
  assert.equal(admitted, 4_096);
  assert.ok(rate.admits(1_000));
});
