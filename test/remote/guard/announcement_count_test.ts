/** Announcements before an answer, counted in the bytes of a connection. */

import assert from "node:assert/strict";
import { AnnouncementCount } from "../../../src/remote/guard/announcement_count.ts";

const HINT = "HTTP/1.1 103 Early Hints\r\nlink: </x>\r\n\r\n";
const ANSWER = "HTTP/1.1 200 OK\r\ncontent-length: 60\r\n\r\n";

function counted(text: string, pieceBytes: number): number {
  const heads = new AnnouncementCount();
  const bytes = new TextEncoder().encode(text);
  let count = 0;
  for (let at = 0; at < bytes.length; at += pieceBytes) {
    count = heads.add(bytes.subarray(at, at + pieceBytes));
  }
  return count;
}

Deno.test("announcements are counted, in whole pieces and cut ones, and what follows the answer is not", () => {
  for (const pieceBytes of [1000, 37, 20, 3, 1]) {
    assert.equal(counted(HINT.repeat(3), pieceBytes), 3, String(pieceBytes));
  }
  assert.equal(counted(HINT + ANSWER + HINT.repeat(20), 10_000), 1);
  assert.equal(counted(ANSWER + HINT.repeat(20), 10_000), 0);
  assert.equal(counted(HINT.repeat(5000), 65_536), 5000);
});
