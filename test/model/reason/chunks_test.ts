import assert from "node:assert/strict";
import {
  chosenPositions,
  chunkLag,
  momentId,
  percentile,
  sumTokens,
} from "../../../src/model/reason/chunks.ts";

Deno.test("pictures are chosen by position: all, the middle one, or evenly from the first to the last", () => {
  const rows: [number, number, number[]][] = [
    [25, 1, [12]],
    [25, 2, [0, 24]],
    [25, 3, [0, 12, 24]],
    [25, 4, [0, 8, 16, 24]],
    [6, 4, [0, 1, 3, 5]],
    [5, 4, [0, 1, 2, 4]],
    [4, 4, [0, 1, 2, 3]],
    [3, 4, [0, 1, 2]],
    [2, 1, [1]],
    [1, 1, [0]],
    [1, 4, [0]],
    [0, 2, []],
    [500, 2, [0, 499]],
  ];
  for (const [frames, wanted, expected] of rows) {
    assert.deepEqual(chosenPositions(frames, wanted), expected, `${wanted} of ${frames}`);
  }
});

Deno.test("a percentile is the value at the rounded rank, and lag is never negative", () => {
  const rows: [number[], number, number][] = [
    [[], 95, 0],
    [[7], 99, 7],
    [[30, 10, 20], 95, 30],
    [[1, 2], 50, 2],
    [[10, 9, 8, 7, 6, 5, 4, 3, 2, 1], 95, 10],
    [Array.from({ length: 101 }, (_, index) => 100 - index), 95, 95],
    [Array.from({ length: 101 }, (_, index) => index), 99, 99],
    [[100, 20, 3], 0, 3],
  ];
  for (const [values, p, expected] of rows) {
    assert.equal(percentile(values, p), expected, `p${p} of ${values}`);
  }
  const span = { firstPtsMs: 1000, lastPtsMs: 1960 };
  assert.deepEqual(chunkLag({ processMs: 400.5, ...span }), {
    process_ms: 400.5,
    source_span_ms: 960,
    lag_ms: 0,
  });
  assert.deepEqual(chunkLag({ processMs: 1000, ...span }), {
    process_ms: 1000,
    source_span_ms: 960,
    lag_ms: 40,
  });
});

Deno.test("tokens add up, and the id of a moment is made of its request, its chunk and its index", () => {
  const one = { prompt_tokens: 1, completion_tokens: 2, thinking_tokens: 3, total_tokens: 6 };
  assert.deepEqual(sumTokens([one, one]), {
    prompt_tokens: 2,
    completion_tokens: 4,
    thinking_tokens: 6,
    total_tokens: 12,
  });
  assert.equal(sumTokens([]).total_tokens, 0);
  assert.equal(momentId("req-0000000000000007", 0, 2), "req-0000000000000007:0:2");
});
