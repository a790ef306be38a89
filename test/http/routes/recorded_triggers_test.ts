/** Trigger programs over what a run's decode has measured: of a real clip, over a part of it, and what is
 * refused.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { CLIPS, KEY_B, newRun, startService, type TestService } from "../../support/service.ts";

const CLIP = join(CLIPS, "bbb480.mp4");

// deno-lint-ignore no-explicit-any -- a program as it was answered
async function compiled(test: TestService, source: string): Promise<any> {
  const { status, json, text } = await test.call("POST", "/v1/triggers/compile", { source });
  assert.equal(status, 200, text);
  return json.program;
}

Deno.test("a program fires over a run where it fires over the run's signals as samples", async () => {
  await using test = await startService();
  const run = `/v1/runs/${await newRun(test)}`;
  const program = await compiled(
    test,
    "trigger dock version 3\nwhen motion_score >= 0.2\nand confidence > 0.1\nedge rising\ncooldown 500ms\nemit dock\nend",
  );
  const empty = (await test.call("POST", `${run}/triggers/evaluate`, { program })).json;
  assert.deepEqual([empty.source_seq, empty.frames, empty.fired_total, empty.fired], [null, 0, 0, []]);

  const ingested = await test.call("POST", `${run}/ingest`, { source_uri: CLIP, max_frames: 600 });
  assert.equal(ingested.status, 200, ingested.text);
  const { json: { signals, pts_ms, source_seq } } = await test.call("GET", `${run}/signals?points=4096`);
  const samples = pts_ms.map((ms: number, frame: number) => ({
    pts_ms: ms,
    motion_score: signals.motion_score.mean[frame],
    novelty_score: signals.novelty_score.mean[frame],
    confidence: signals.confidence.mean[frame],
  }));
  const { json: { results } } = await test.call("POST", "/v1/triggers/evaluate", { program, samples });
  // deno-lint-ignore no-explicit-any -- results as they come
  const expected = results.filter(({ fired }: any) => fired).map(({ pts_ms }: any) => pts_ms);
  assert.ok(expected.length > 1, `fires ${expected.length} times`);

  const answer = (await test.call("POST", `${run}/triggers/evaluate`, { program })).json;
  assert.deepEqual([answer.program_id, answer.program_version, answer.source_seq], ["dock", 3, source_seq]);
  assert.deepEqual([answer.frames, answer.missing_signal_frames, answer.fired_total], [
    600,
    0,
    expected.length,
  ]);
  assert.deepEqual(answer.fired.map((firing: { pts_ms: number }) => firing.pts_ms), expected);
  assert.deepEqual(answer.actions, [{ op: "emit", event_type: "dock" }]);
  const [first] = answer.fired;
  assert.equal(pts_ms[first.frame_index], first.pts_ms);
  assert.ok(Math.abs(first.motion_score - signals.motion_score.mean[first.frame_index]) < 1e-4);

  // Of a part the state is fresh: a frame that the cooldown held back fires.
  const part = { program, from_ms: expected[0] + 1, to_ms: expected[1], source_seq };
  const inPart = (await test.call("POST", `${run}/triggers/evaluate`, part)).json;
  assert.equal(inPart.frames, pts_ms.filter((ms: number) => ms > expected[0] && ms <= expected[1]).length);
  assert.ok(inPart.fired_total >= 1);

  const person = await compiled(test, "trigger a version 1\nwhen object_count:person >= 1\nemit b\nend");
  const blind = (await test.call("POST", `${run}/triggers/evaluate`, { program: person })).json;
  assert.deepEqual([blind.fired_total, blind.missing_signal_frames], [0, 600]);
});

Deno.test("a wrong program, a wrong range and another caller are refused", async () => {
  await using test = await startService();
  const run = `/v1/runs/${await newRun(test)}`;
  const program = await compiled(test, "trigger a version 1\nwhen motion_score > 0\nemit b\nend");
  const faults: readonly [object, string][] = [
    [{ program: { ...program, instructions: [{ op: "halt" }] } }, "program"],
    [{ program, from_ms: 2, to_ms: 1 }, "from_ms"],
    [{ program, source_seq: 1 }, "source_seq"], // run_created
    [{ program, from_ms: -1 }, "from_ms"],
  ];
  for (const [body, field] of faults) {
    const { status, json } = await test.call("POST", `${run}/triggers/evaluate`, body);
    assert.deepEqual([status, json.error.details[0].field], [422, field]);
  }
  assert.equal((await test.call("POST", `${run}/triggers/evaluate`, { program }, KEY_B)).status, 404);
});
