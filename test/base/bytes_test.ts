/** A stream of bytes becomes lines, however it is cut. */

import assert from "node:assert/strict";
import { linesOf } from "../../src/base/bytes.ts";

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
