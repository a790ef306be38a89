/** Which event a picture caused: known when it is written, or when nothing more is written of the picture. */

import { equal } from "node:assert/strict";
import { CauseEvents } from "../../../../src/flow/live/journal/cause_events.ts";
import type { NewEvent } from "../../../../src/model/runs/run.ts";
import { pause } from "../../../../src/base/wait.ts";
import { world } from "../../../support/media.ts";

const eventOf = (kind: string, frame_index: number): NewEvent =>
  ({ kind, runId: "run-1", payload: { frame_index } }) as unknown as NewEvent;

Deno.test("who asks before the event is written waits for it, for that of his cause only", async () => {
  const causes = new CauseEvents();
  causes.expect(7);
  let trigger: number | null | undefined;
  const asked = causes.of(7, "trigger").then((place) => trigger = place?.seq ?? null);
  const keyframe = causes.of(7, "scene_cut");
  causes.note(eventOf("keyframe_stored", 7), 41);
  equal((await keyframe)?.seq, 41);
  await pause(world(), 1);
  equal(trigger, undefined);
  causes.note(eventOf("trigger.door", 8), 42);
  causes.note(eventOf("trigger.door", 7), 43);
  await asked;
  equal(trigger, 43);
  equal((await causes.of(7, "trigger"))?.seq, 43);
});

Deno.test("who waits for an event that is never written is told when the picture is settled, forgotten, or all is over", async () => {
  const causes = new CauseEvents();
  const waitFor = (frame: number) => {
    causes.expect(frame);
    return causes.of(frame, "zone");
  };
  const [settled, forgotten] = [waitFor(1), waitFor(2)];
  causes.settle(1);
  equal(await settled, null);
  for (let frame = 3; frame < 1_100; frame++) causes.expect(frame);
  equal(await forgotten, null);
  const closed = waitFor(1_100);
  causes.close();
  equal(await closed, null);
  equal(await causes.of(9_999, "zone"), null);
});
