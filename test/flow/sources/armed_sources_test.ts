/** Which cameras are armed: schedules are followed, calls hold as long as they say, and both survive a
 * restart.
 */

import assert from "node:assert/strict";
import { Metrics } from "../../../src/contract/metrics.ts";
import { Refusal } from "../../../src/contract/refusal.ts";
import { ArmedSources } from "../../../src/flow/sources/armed_sources.ts";
import { NamedSources } from "../../../src/flow/sources/named_sources.ts";
import { type ArmedTimes, weekRange } from "../../../src/model/sources/armed_times.ts";
import type { NamedSource } from "../../../src/model/sources/source_file.ts";
import { ArmedCalls } from "../../../src/store/armed_calls.ts";
import { ManualClock, settled } from "../../support/manual_clock.ts";
import { TempFolder } from "../../support/media.ts";
import { silentWorld } from "../../support/timeline.ts";

const HOUR = 3_600_000;
/** A Tuesday. */
const NOON = Temporal.Instant.from("2026-11-24T12:00Z").epochMilliseconds;
const NIGHT: ArmedTimes = { timeZone: "UTC", ranges: [weekRange("18:00-07:00")!] };
const CALLER = { principalKey: "api-key:a", requestId: "req-1", signal: new AbortController().signal };

function camera(
  name: string,
  armed: ArmedTimes | null,
  principals: readonly string[] | null = null,
): NamedSource {
  const watch = { attach: {}, rolloverMs: 60_000, webhooks: [], armed, recording: null };
  return { name, kind: "rtsp", uri: "", credentials: null, principals, retentionHours: null, watch };
}

function open(dataDir: string, named: NamedSources, clock: ManualClock) {
  const lines: string[] = [];
  const world = {
    ...silentWorld(() => NOON + clock.monotonicMs(), lines),
    sleep: (ms: number, signal?: AbortSignal) => clock.sleep(ms, signal),
  };
  const metrics = new Metrics();
  const armed = new ArmedSources({ named, calls: ArmedCalls.open({ dataDir, world }), metrics, world });
  const told: unknown[] = [];
  armed.start((name, { isArmed, reason, principalKey, untilMs }) =>
    told.push({
      ...{ name, isArmed, reason, at: clock.monotonicMs() / HOUR },
      ...(principalKey && { principalKey }),
      untilMs: untilMs === null ? null : (untilMs - NOON) / HOUR,
    })
  );
  const call = (name: string, isArmed: boolean, for_seconds?: number, principalKey = CALLER.principalKey) => {
    const { armed_by, next_change_ms, ...look } = armed.call({ ...CALLER, principalKey } as never, name, {
      isArmed,
      body: for_seconds === undefined ? {} : { for_seconds },
    });
    return [look.armed, armed_by, next_change_ms === null ? null : (next_change_ms - NOON) / HOUR];
  };
  const count = async (state: string) =>
    Number(
      new RegExp(`^service_sources_armed\\{state="${state}"\\} (\\d+)$`, "m").exec(await metrics.text())![1],
    );
  return { armed, told, call, count, lines, [Symbol.asyncDispose]: () => armed[Symbol.asyncDispose]() };
}

/** The clock is set forward, but for a minute. */
async function pass(clock: ManualClock, hours: number): Promise<void> {
  clock.jump(hours * HOUR - 60_000);
  await clock.advance(60_000);
}

Deno.test("a schedule arms and disarms; a call counts until its next change or for its time; both are told", async () => {
  using folder = new TempFolder();
  const clock = new ManualClock();
  const named = new NamedSources([camera("dock", NIGHT), camera("gate", null)]);
  await using test = open(folder.path, named, clock);
  assert.deepEqual([await test.count("armed"), await test.count("disarmed")], [1, 1]);
  await pass(clock, 6);
  await pass(clock, 13);
  assert.deepEqual(test.told, [
    { name: "dock", isArmed: true, reason: "schedule", at: 6, untilMs: 19 },
    { name: "dock", isArmed: false, reason: "schedule", at: 19, untilMs: 30 },
  ]);
  test.told.length = 0;
  assert.deepEqual(test.call("dock", true), [true, "call", 43]);
  await pass(clock, 10);
  assert.deepEqual(test.call("gate", false, 1800), [false, "call", 29.5]);
  assert.deepEqual(test.call("dock", false, 7200), [false, "call", 31]);
  await pass(clock, 0.5);
  await pass(clock, 1.5);
  assert.deepEqual(test.told, [
    { name: "dock", isArmed: true, reason: "call", at: 19, principalKey: "api-key:a", untilMs: 43 },
    { name: "gate", isArmed: false, reason: "call", at: 29, principalKey: "api-key:a", untilMs: 29.5 },
    { name: "dock", isArmed: false, reason: "call", at: 29, principalKey: "api-key:a", untilMs: 31 },
    { name: "gate", isArmed: true, reason: "call_ended", at: 29.5, untilMs: null },
    { name: "dock", isArmed: true, reason: "call_ended", at: 31, untilMs: 43 },
  ]);
  await settled();
  assert.equal(
    Deno.readTextFileSync(`${folder.path}/armed.json`),
    '{"sources":{}}\n',
    "what is over is forgotten",
  );
});

Deno.test("the end of a call of seconds, and a time that a file brings, are told when they come, and not with the next look", async () => {
  using folder = new TempFolder();
  const clock = new ManualClock();
  const named = new NamedSources([camera("gate", null)]);
  await using test = open(folder.path, named, clock);
  await settled();
  test.call("gate", false, 5);
  await settled();
  await clock.advance(5_000);
  const told = () => test.told.splice(0).map((each) => (each as { reason: string }).reason);
  assert.deepEqual(told(), ["call", "call_ended"]);
  await clock.advance(6 * HOUR - 5_000 - 30_000);
  named.replace([camera("gate", NIGHT)]);
  test.armed.fileChanged();
  await settled();
  await clock.advance(30_000);
  assert.deepEqual(told(), ["file", "schedule"]);
});

Deno.test("what a call has said survives a restart, another schedule ends it, and a disk that takes nothing refuses it", async () => {
  using folder = new TempFolder();
  const clock = new ManualClock();
  const named = new NamedSources([camera("dock", NIGHT), camera("gate", null)]);
  {
    await using test = open(folder.path, named, clock);
    assert.deepEqual(test.call("dock", true), [true, "call", 19]);
    assert.deepEqual(test.call("gate", false), [false, "call", null]);
  }
  {
    await using test = open(folder.path, named, clock);
    assert.equal(await test.count("armed"), 1);
    const isArmed = () => named.all.map((source) => test.armed.stateOf(source as never).isArmed);
    assert.deepEqual(isArmed(), [true, false]);
    const day: ArmedTimes = { timeZone: "UTC", ranges: [weekRange("08:00-18:00")!] };
    named.replace([camera("dock", NIGHT), camera("gate", day)]);
    test.armed.fileChanged();
    assert.deepEqual(isArmed(), [true, true]);
    assert.deepEqual(
      test.told,
      [{ name: "gate", isArmed: true, reason: "file", at: 0, untilMs: 6 }] as never,
    );
    Deno.mkdirSync(`${folder.path}/armed.json.new`);
    assert.throws(
      () => test.call("dock", false),
      (error) => error instanceof Refusal && error.kind === "storage_unavailable",
    );
    assert.deepEqual(isArmed(), [true, true]);
    Deno.removeSync(`${folder.path}/armed.json.new`);
    assert.deepEqual(test.lines, ["error armed.json cannot be written"]);
  }
  Deno.writeTextFileSync(`${folder.path}/armed.json`, '{"sources":{"dock":{}}}');
  await using test = open(folder.path, named, clock);
  assert.match(test.lines.join(), /armed\.json cannot be read/);
  assert.equal(test.armed.stateOf(named.all[0] as never).by, "schedule");
});
