import assert from "node:assert/strict";
import { reconnectWaitMs } from "../../../src/flow/live/reconnect.ts";

Deno.test("the wait before a camera is asked again grows with its absence, has bounds, and is up to a quarter shorter at random", () => {
  const waitMs = (lostMs: number, random: number) =>
    reconnectWaitMs({ randomBytes: (length) => new Uint8Array(length).fill(random) }, lostMs);
  const second = 1_000;
  const longest: [lostMs: number, waitMs: number][] = [
    ...[[-60 * second, 250], [0, 250], [1 * second, 250], [8 * second, 2 * second]] as [number, number][],
    ...[[120 * second, 30 * second], [30 * 86_400 * second, 30 * second]] as [number, number][],
  ];
  for (const [lostMs, expected] of longest) {
    assert.equal(waitMs(lostMs, 0), expected);
    const shortest = waitMs(lostMs, 255);
    assert.ok(shortest >= expected * 0.75 && shortest < expected * 0.76, `${lostMs}: ${shortest}`);
  }
});
