/** Armed times: how they are written, and what they say at the turns of the day, the week and daylight
 * saving.
 */

import assert from "node:assert/strict";
import { causeOf, CLIP_CAUSES } from "../../../src/model/live/recording/causes.ts";
import { scheduledAt, weekRange } from "../../../src/model/sources/armed_times.ts";
import { armedAt, calledAt } from "../../../src/model/sources/arming.ts";

const BERLIN = "Europe/Berlin";

function times(...texts: string[]) {
  return { timeZone: BERLIN, ranges: texts.map((text) => weekRange(text)!) };
}

const ms = (text: string) => Temporal.Instant.from(text).epochMilliseconds;
const shown = (at: number | null) =>
  at === null ? null : Temporal.Instant.fromEpochMilliseconds(at).toZonedDateTimeISO(BERLIN).toString({
    timeZoneName: "never",
    smallestUnit: "minute",
  });

Deno.test("times are days, as lists and ranges, and a time of day, which may go over midnight", () => {
  const check = (text: string, days: string, from: number, to: number) => {
    const range = weekRange(text);
    assert.deepEqual([range?.days.join(""), range?.from, range?.to], [days, from, to], text);
  };
  check("mon-fri 18:00-07:00", "12345", 1080, 1440 + 420);
  check("sat,sun 00:00-24:00", "67", 0, 1440);
  check(" Sat, Sun ", "67", 0, 1440);
  check("22:00-06:30", "1234567", 1320, 1440 + 390);
  check("mon,wed-fri 09:00 - 17:30", "1345", 540, 1050);
  check("sat-mon 23:59-00:00", "167", 1439, 1440);
  check("sun", "7", 0, 1440);
  for (
    const text of [
      ...["", "mon-", "mo", "mon-wed-fri", "mon fri", "8:00-9:00", "08:00", "08:00-08:00", "24:00-01:00"],
      ...["08:60-09:00", "08:00-24:01", "weekdays 08:00-09:00", "mon-fri 08:00-09:00 10:00-11:00", "mon;tue"],
    ]
  ) assert.equal(weekRange(text), null, text);
});

Deno.test("a schedule says at each time whether it is armed and when that changes", () => {
  const check = (of: ReturnType<typeof times>, at: string, isArmed: boolean, change: string | null) => {
    const { isArmed: is, changeMs } = scheduledAt(of, ms(at));
    assert.deepEqual([is, shown(changeMs)], [isArmed, change], at);
  };
  const office = times("mon-fri 18:00-07:00", "sat-sun");
  check(office, "2026-11-24T17:59:59+01:00", false, "2026-11-24T18:00+01:00");
  check(office, "2026-11-24T18:00+01:00", true, "2026-11-25T07:00+01:00");
  check(office, "2026-11-25T06:59:59.999+01:00", true, "2026-11-25T07:00+01:00");
  check(office, "2026-11-25T07:00+01:00", false, "2026-11-25T18:00+01:00");
  // Friday's night, Saturday and Sunday follow each other; after Sunday nothing begins before Monday evening.
  check(office, "2026-11-27T23:00+01:00", true, "2026-11-30T00:00+01:00");
  check(office, "2026-11-30T03:00+01:00", false, "2026-11-30T18:00+01:00");
  check(times("sun 23:00-01:00"), "2026-11-30T00:30+01:00", true, "2026-11-30T01:00+01:00");
  check(times("mon 00:00-24:00"), "2026-12-01T00:00+01:00", false, "2026-12-07T00:00+01:00");
  check(times("00:00-24:00"), "2026-11-24T12:00+01:00", true, null);
  check(times("12:00-13:00", "12:30-14:00"), "2026-11-24T12:15+01:00", true, "2026-11-24T14:00+01:00");
  check(times("12:00-13:00", "13:00-14:00"), "2026-11-24T12:15+01:00", true, "2026-11-24T14:00+01:00");
  check(times(), "2026-11-24T12:15+01:00", false, null);

  // 29 March: 02:00 to 03:00 is skipped.
  check(times("02:30-06:00"), "2026-03-29T01:59+01:00", false, "2026-03-29T03:00+02:00");
  check(times("02:30-06:00"), "2026-03-29T03:00+02:00", true, "2026-03-29T06:00+02:00");
  check(times("22:00-02:30"), "2026-03-29T01:00+01:00", true, "2026-03-29T03:00+02:00");
  check(times("02:10-02:50"), "2026-03-29T03:00+02:00", false, "2026-03-30T02:10+02:00");
  // A time that is skipped as a whole changes nothing.
  check(times("02:10-02:50"), "2026-03-29T01:00+01:00", false, "2026-03-30T02:10+02:00");
  check(times("sun 02:10-02:50"), "2026-03-28T12:00+01:00", false, "2026-04-05T02:10+02:00");
  check(times("sun 02:10-02:50"), "2026-03-22T12:00+01:00", false, "2026-04-05T02:10+02:00");
  // And where it is the only gap of a week, the next one changes something.
  const gap = times("mon-sat", "sun 00:00-02:10", "sun 02:50-24:00");
  check(gap, "2026-03-28T12:00+01:00", true, "2026-04-05T02:10+02:00");
  check(gap, "2026-03-22T12:00+01:00", true, "2026-04-05T02:10+02:00");
  check(gap, "2026-03-21T12:00+01:00", true, "2026-03-22T02:10+01:00");
  check(times("sun"), "2026-03-29T12:00+02:00", true, "2026-03-30T00:00+02:00");
  // 25 October: 02:00 to 03:00 comes twice.
  check(times("02:30-06:00"), "2026-10-25T02:29+02:00", false, "2026-10-25T02:30+02:00");
  check(times("02:30-06:00"), "2026-10-25T02:10+01:00", true, "2026-10-25T06:00+01:00");
  check(times("22:00-02:30"), "2026-10-25T02:45+02:00", true, "2026-10-25T02:30+01:00");
  check(times("22:00-02:30"), "2026-10-25T02:30+01:00", false, "2026-10-25T22:00+01:00");
});

Deno.test("what a schedule says does not depend on the times that it was asked for before", () => {
  for (const texts of [["mon-fri 18:00-07:00", "sat-sun"], ["sun 02:10-02:50"], ["00:00-24:00"], []]) {
    const asked = times(...texts);
    const first = ms("2026-03-20T00:00+01:00");
    // Steps that go forward and back, by minutes and by days, over the change to summer time.
    let step = 7;
    for (let count = 0; count < 400; count++) {
      step = (step * 48_271) % 2_147_483_647;
      const at = first + (count % 3 === 0 ? step % 1_000_000_000 : count * 2_160_000 + step % 60_000);
      assert.deepEqual(scheduledAt(asked, at), scheduledAt(times(...texts), at), `${texts} ${shown(at)}`);
    }
  }
});

Deno.test("a call holds until the schedule changes, for so long, or until the next call, and not with another schedule", () => {
  const night = times("18:00-07:00");
  const noon = ms("2026-11-24T12:00+01:00");
  const at = (hours: number) => noon + hours * 3_600_000;
  const check = (
    of: typeof night | null,
    call: ReturnType<typeof calledAt>,
    hours: number,
    expected: [boolean, "schedule" | "call", number | null],
  ) => {
    const { isArmed, by, changeMs } = armedAt(of, call, at(hours));
    const change = changeMs === null ? null : (changeMs - noon) / 3_600_000;
    assert.deepEqual([isArmed, by, change], expected, String(hours));
  };
  const called = (armed: boolean, hours = 0, forMs: number | null = null, of: typeof night | null = night) =>
    calledAt(of, { armed, forMs }, at(hours));
  check(night, null, 0, [false, "schedule", 6]);
  check(night, called(true), 1, [true, "call", 19]);
  check(night, called(true), 7, [true, "schedule", 19]);
  check(night, called(false, 7), 8, [false, "call", 30]);
  check(night, called(false, 7), 19, [false, "schedule", 30]);
  assert.equal(called(false), null, "as the schedule says");
  const half = 1_800_000;
  check(night, called(true, 0, half), 0, [true, "call", 0.5]);
  check(night, called(true, 0, half), 0.5, [false, "schedule", 6]);
  check(night, called(false, 5, 4 * half), 6.5, [false, "call", 7]);
  check(night, called(false, 5, 4 * half), 7, [true, "schedule", 19]);
  check(null, null, 0, [true, "schedule", null]);
  check(null, called(false, 0, null, null), 1000, [false, "call", null]);
  check(night, called(false, 0, null, null), 1, [false, "schedule", 6]);
  check(night, called(false, 0, null, null), 7, [true, "schedule", 19]);
  check(null, called(false, 0, half, null), 1, [true, "schedule", null]);
});

Deno.test("what zone and trigger find while a camera is disarmed causes no clip, and a cut still does", () => {
  const reasons = { zone: {}, trigger: {}, isKeyframe: true, isCut: true };
  const causes = (isArmed: boolean | null) =>
    [CLIP_CAUSES, ["zone"] as const, ["trigger"] as const].map((on) => causeOf({ ...reasons, isArmed }, on));
  assert.deepEqual(causes(true), ["zone", "zone", "trigger"]);
  assert.deepEqual(causes(null), ["zone", "zone", "trigger"]);
  assert.deepEqual(causes(false), ["scene_cut", null, null]);
});
