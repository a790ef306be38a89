import assert from "node:assert/strict";
import { LoopDetector } from "../../../src/model/live/loop.ts";
import { seededRandom } from "../../support/seeded_random.ts";

const ONES = 2n ** 64n - 1n;

function step(detector: LoopDetector, hash: bigint): boolean {
  return detector.step(Number(hash & 0xffffffffn), Number(hash >> 32n));
}

/** Checks the detector: one letter for each frame, E on entering, L inside, a dot outside. */
function check(hashes: readonly bigint[], expected: string): void {
  const detector = new LoopDetector();
  const got = hashes.map((hash) => step(detector, hash) ? "E" : detector.isLooping ? "L" : ".").join("");
  assert.equal(got, expected, hashes.map((hash) => hash.toString(16)).join(" "));
}

/** Hashes that have half of their bits in common with each other. */
const A = 0x00000000ffffffffn;
const B = 0x0000ffff0000ffffn;
const C = 0x00ff00ff00ff00ffn;
const D = 0x0f0f0f0f0f0f0f0fn;

Deno.test("a loop begins with the frame that looks like three of the eight before it, and is reported once", () => {
  check([], "");
  check([A], ".");
  check([A, A, A], "...");
  check([A, A, A, A], "...E");
  check([A, A, A, A, A, A], "...ELL");
  check([A, B, A, B, A, B, A, B, A, B], "......ELLL");
  // Three of eight only as long as they are among the last eight.
  check([A, A, A, B, C, D, A, A], "......EL");
  check([A, A, A, B, C, D, B, C, D, A], "..........");
});

Deno.test("a loop ends without an event and may begin again", () => {
  check([A, A, A, A, B, A], "...E.E");
  check([A, A, A, A, B, B, B, B], "...E...E");
});

Deno.test("frames look the same up to five bits apart, in whichever half they are", () => {
  const flipped = (...bits: number[]) => bits.reduce((hash, bit) => hash ^ (1n << BigInt(bit)), A);
  check([A, A, A, flipped(0, 1, 2, 3, 4)], "...E");
  check([A, A, A, flipped(0, 1, 2, 3, 4, 5)], "....");
  check([A, A, A, flipped(0, 31, 32, 62, 63)], "...E");
  check([A, A, A, flipped(0, 31, 32, 61, 62, 63)], "....");
});

Deno.test("the ring begins as all ones, so a stream of such hashes loops from its first frame", () => {
  check([ONES, ONES], "EL");
  check([ONES - 31n, ONES], "EL");
  check([ONES - 63n], ".");
  check([0n, 0n, 0n, 0n], "...E");
});

Deno.test("the detector agrees with counting bits of big integers on random streams", () => {
  const random = seededRandom(35);
  const detector = new LoopDetector();
  let ring = Array.from({ length: 8 }, () => ONES);
  let entered = 0;
  const seen = [A, B, C, D];
  for (let frame = 0; frame < 20_000; frame++) {
    const noise = Array.from({ length: 5 }, () => BigInt(Math.floor(random() * 64)));
    const base = seen[Math.floor(random() * seen.length)]!;
    const hash = random() < 0.1
      ? BigInt(Math.floor(random() * 2 ** 32)) << 32n | BigInt(Math.floor(random() * 2 ** 32))
      : noise.slice(0, Math.floor(random() * 6)).reduce((hash, bit) => hash ^ (1n << bit), base);
    const similar = ring.filter((other) => (other ^ hash).toString(2).replaceAll("0", "").length < 6).length;
    ring = [...ring.slice(1), hash];
    const was = detector.isLooping;
    const isEntered = step(detector, hash);
    assert.equal(detector.isLooping, similar >= 3, `frame ${frame}`);
    assert.equal(isEntered, detector.isLooping && !was, `frame ${frame}`);
    if (isEntered) entered++;
  }
  assert.ok(entered > 500, `${entered} loops`);
});
