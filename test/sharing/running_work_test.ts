/** The priority of work: the first piece of a principal before what others have on top of theirs. */

import assert from "node:assert/strict";
import { RunningWork } from "../../src/sharing/running_work.ts";

Deno.test("the only piece of a principal has full priority, those on top of it less, whatever others do", () => {
  const work = new RunningWork();
  const pieces = Array.from({ length: 4 }, () => work.begin("greedy"));
  assert.deepEqual(pieces.map(({ nice }) => nice), [0, 10, 15, 15]);
  assert.equal(work.begin("other").nice, 0);
  pieces[0]![Symbol.dispose]();
  pieces[0]![Symbol.dispose]();
  assert.equal(work.begin("greedy").nice, 15, "three are left");
  pieces.forEach((piece) => piece[Symbol.dispose]());
  assert.equal(work.begin("greedy").nice, 10);
});
