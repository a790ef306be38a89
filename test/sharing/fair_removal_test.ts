/** Who loses something where several store too much together. */

import assert from "node:assert/strict";
import { FairRemoval, type StoredPart } from "../../src/sharing/fair_removal.ts";

interface Owner extends StoredPart {
  readonly name: string;
  /** What may go, the oldest first. */
  readonly going: number[];
}

/** An owner of what may go; `kept` is what cannot. */
function owner(name: string, going: readonly number[], kept = 0): Owner {
  return { name, going: [...going], bytes: going.reduce((sum, bytes) => sum + bytes, kept) };
}

/** Who loses something, in order. */
function losses(owners: readonly Owner[], bytesMax: number): string {
  const removal = new FairRemoval(owners, bytesMax);
  let lost = "";
  for (let next = removal.next(); next !== null; next = removal.next()) {
    const bytes = next.going.shift() ?? null;
    removal.took(bytes);
    if (bytes !== null) lost += next.name;
  }
  return lost;
}

Deno.test("the one with the most loses until all fits, and nobody below an equal share loses anything", () => {
  const ones = (count: number) => Array<number>(count).fill(1);
  assert.equal(losses([owner("a", ones(6)), owner("b", ones(4))], 10), "", "all fits");
  assert.equal(losses([owner("a", ones(11)), owner("b", ones(3))], 10), "aaaa");
  assert.equal(losses([owner("a", ones(9)), owner("b", ones(7)), owner("c", ones(1))], 9), "aaabbaab");
  assert.equal(
    losses([owner("a", [], 20), owner("b", ones(5))], 10),
    "",
    "what cannot go costs the others nothing",
  );
  assert.equal(losses([owner("a", ones(2), 20), owner("b", ones(7))], 10), "aabb", "down to the share");
  assert.equal(losses([owner("a", ones(2)), owner("b", ones(1))], -5), "aab", "everything");
  assert.equal(losses([owner("a", ones(3)), owner("b", [])], 2), "a", "who stores nothing has no share");
  assert.equal(losses([owner("a", [5, 1])], 3), "a");
  assert.equal(losses([], 0), "");
});

Deno.test("whatever is stored, it fits afterwards unless what is left cannot go or is within a share", () => {
  for (let round = 0; round < 500; round++) {
    const some = () => Array.from({ length: Math.random() * 6 }, () => Math.ceil(Math.random() * 9));
    const owners = Array.from(
      { length: 1 + Math.random() * 5 },
      (_, at) => owner(`${at}`, some(), Math.random() * 9 | 0),
    );
    const before = owners.map(({ bytes }) => bytes);
    const count = before.filter((bytes) => bytes > 0).length;
    const bytesMax = Math.ceil(Math.random() * 60);
    losses(owners, bytesMax);
    const total = owners.reduce((sum, { bytes }) => sum + bytes, 0);
    for (const [at, { bytes, going }] of owners.entries()) {
      if (before[at]! * count <= bytesMax) assert.equal(bytes, before[at]);
      if (total > bytesMax) assert.ok(going.length === 0 || bytes * count <= bytesMax);
    }
  }
});
