/** The bitrate that a publisher is told: down at once, up slowly, never outside its bounds. */

import assert from "node:assert/strict";
import { BitrateController } from "../../src/live/bitrate_controller.ts";

/** A second each: `.` calm, `d` a unit was dropped, `w` half a second of units waits. The rates in kbit/s after each. */
function rates(seconds: string): number[] {
  const knob = new BitrateController();
  return Array.from(seconds, (second) => {
    const told = knob.step({ dropped: second === "d" ? 1 : 0, waiting: second === "w" ? 15 : 3 });
    if (told !== null) assert.equal(told, knob.bitrate);
    return Math.round(knob.bitrate / 1_000);
  });
}

function check(name: string, seconds: string, expected: readonly number[]): void {
  Deno.test(name, () => assert.deepEqual(rates(seconds), expected));
}

check("as long as decoding keeps up it stays at the most", ".....", [2500, 2500, 2500, 2500, 2500]);
check("a dropped unit lowers it at once, and so does a queue", "dw", [1500, 900]);
check("it stays for five calm seconds and then rises", "d.......", [
  1500,
  1500,
  1500,
  1500,
  1500,
  1500,
  1725,
  1984,
]);
check("falling behind while it rises lowers it again", "d......d.", [
  1500,
  1500,
  1500,
  1500,
  1500,
  1500,
  1725,
  1035,
  1035,
]);

Deno.test("it never falls below the least, and rises to the most and no further", () => {
  assert.equal(rates("d".repeat(20)).at(-1), 300);
  assert.equal(rates(`${"d".repeat(20)}${".".repeat(30)}`).at(-1), 2500);
});
