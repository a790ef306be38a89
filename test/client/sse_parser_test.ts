/** The text of an event stream, cut anywhere, gives the same messages. */

import assert from "node:assert/strict";
import { ParseError } from "../../client/mod.ts";
import { type SseMessage, SseParser } from "../../client/src/events/sse_parser.ts";
import { seededRandom } from "../support/seeded_random.ts";

const TEXT = ': hello\n\nid: 1\nevent: a\ndata: {"x":1}\n\n:keepalive\n\nid:2\ndata:one\ndata: two\n\n' +
  "event: no data\n\nretry: 5\nunknown\nid: 3\ndata\n\nid: 4\ndata:  two spaces: kept\n\nid: 5\ndata: unfinished\n";
const MESSAGES: SseMessage[] = [
  { id: "1", event: "a", data: '{"x":1}' },
  { id: "2", event: "", data: "one\ntwo" },
  { id: "3", event: "", data: "" },
  { id: "4", event: "", data: " two spaces: kept" },
];

function parsed(pieces: readonly string[], limit = 1000): SseMessage[] {
  const parser = new SseParser(limit);
  return pieces.flatMap((piece) => parser.push(piece));
}

Deno.test("messages are the same for every line end and every cut", () => {
  const random = seededRandom(7);
  for (const end of ["\n", "\r\n", "\r"]) {
    const text = TEXT.replaceAll("\n", end);
    assert.deepEqual(parsed([text]), MESSAGES, JSON.stringify(end));
    assert.deepEqual(parsed([...text]), MESSAGES, JSON.stringify(end));
    for (let round = 0; round < 200; round++) {
      const pieces: string[] = [];
      for (let start = 0; start < text.length;) {
        const next = start + Math.floor(random() * 9);
        pieces.push(text.slice(start, next));
        start = next;
      }
      assert.deepEqual(parsed(pieces), MESSAGES, JSON.stringify(pieces));
    }
  }
});

Deno.test("a message that is too long is a ParseError, many short ones and comments are not", () => {
  const short = `id: 1\ndata: ${"x".repeat(50)}\n\n`;
  assert.equal(parsed([short.repeat(100)], 100).length, 100);
  assert.deepEqual(parsed([": comment\n".repeat(100)], 100), []);
  for (const long of [`data: ${"x".repeat(100)}`, "data: xxxxxxxx\n".repeat(10)]) {
    assert.throws(() => parsed([long], 100), ParseError);
    assert.throws(() => parsed([...long], 100), ParseError);
  }
});
