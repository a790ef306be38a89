import assert from "node:assert/strict";
import { Turns } from "../../src/sharing/turns.ts";

Deno.test("each round of the event loop has one turn, in the order in which they were asked for", async () => {
  const turns = new Turns();
  const rounds: number[] = [];
  const taken: string[] = [];
  let round = 0;
  const counting = setInterval(() => round++, 0);
  const work = async (name: string) => {
    for (let piece = 0; piece < 3; piece++) {
      await turns.next();
      taken.push(`${name}${piece}`);
      rounds.push(round);
    }
  };
  await Promise.all(["a", "b", "c"].map(work));
  clearInterval(counting);
  assert.deepEqual(taken, ["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2", "c2"]);
  assert.ok(rounds.at(-1)! - rounds[0]! >= 4, `others ran in between: ${rounds}`);
});

Deno.test("a turn that is asked for when nobody waits comes in the next round", async () => {
  const turns = new Turns();
  await turns.next();
  await turns.next();
});
