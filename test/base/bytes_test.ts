/** Bytes become lines, and give their memory back. */

import assert from "node:assert/strict";
import { freeMemory, linesOf } from "../../src/base/bytes.ts";

Deno.test("lines come whole, with characters and line breaks at any place between two parts", async () => {
  const text = 'é{"id":1}\n\n€ two\nthe last line has no end';
  const bytes = new TextEncoder().encode(text);
  for (const size of [1, 2, 3, 7, bytes.length]) {
    const parts = Array.from(
      { length: Math.ceil(bytes.length / size) },
      (_, part) => bytes.subarray(part * size, (part + 1) * size),
    );
    assert.deepEqual(await Array.fromAsync(linesOf(ReadableStream.from(parts))), ['é{"id":1}', "", "€ two"]);
  }
});

Deno.test("memory that is given back is that of all arrays on it", () => {
  const [one, other, kept] = [new Uint8Array(8), new Float64Array(4), new Uint8Array([1, 2])];
  const view = one.subarray(2);
  freeMemory([view, other]);
  assert.deepEqual([one.length, view.length, other.length, [...kept]], [0, 0, 0, [1, 2]]);
});
