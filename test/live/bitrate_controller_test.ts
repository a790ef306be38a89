/** The bitrate limit of a publisher: lowered at once, raised slowly, never outside its bounds. */

import assert from "node:assert/strict";
import { BitrateController } from "../../src/live/bitrate_controller.ts";

/**
 * The rate in kbit/s after each second: `.` nothing, `d` a unit was dropped, `w` half a second of units
 * waits.
 */
function rates(seconds: string): number[] {
  const controller = new BitrateController();
  return Array.from(seconds, (second) => {
    const changed = controller.step({ dropped: second === "d" ? 1 : 0, waiting: second === "w" ? 15 : 3 });
    if (changed !== null) assert.equal(changed, controller.bitrate);
    return Math.round(controller.bitrate / 1_000);
  });
}

function check(name: string, seconds: string, expected: readonly number[]): void {
  Deno.test(name, () => assert.deepEqual(rates(seconds), expected));
}

check("while decoding keeps up the bitrate stays at its maximum", ".....", [2500, 2500, 2500, 2500, 2500]);
check("a dropped unit lowers it at once, and so does a queue", "dw", [1500, 900]);
check("it stays for five stable seconds and then rises", "d.......", [
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

Deno.test("the bitrate stays between its minimum and its maximum", () => {
  assert.equal(rates("d".repeat(20)).at(-1), 300);
  assert.equal(rates(`${"d".repeat(20)}${".".repeat(30)}`).at(-1), 2500);
});
