/** WHIP publishers that are not ours, aiortc and GStreamer: what a person who attaches one expects, on a
 * quiet and on a busy machine.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { BusyMachine, type ForeignName, ForeignProgram } from "../support/foreign/foreign_program.ts";
import {
  endOf,
  type ForeignService,
  keyframeTimes,
  startForeignService,
} from "../support/foreign/foreign_service.ts";
import { encoded } from "../support/live/live.ts";
import { LONG_TEST } from "../support/long_tests.ts";
import { payloads, type StoredEvent } from "../support/models/reason.ts";
import { CLIPS, KEY_A } from "../support/service.ts";
import { until } from "../support/until.ts";

const CLIP = join(CLIPS, "bbb480.mp4");
const PROMPT = "Count the birds.";
/** Media time that each session shows; the clip has no cut in it, so that its keyframes are keepalives. */
const WATCHED_MS = 8_000;
/** Keepalives are 30 frames apart, 1250 ms. A start burst would store neighbours. */
const KEYFRAMES_APART_MS = 500;

const CASES: readonly (readonly [ForeignName, codec: string, sound: boolean, trickle: boolean])[] = [
  ["aiortc_publisher", "VP8", true, false],
  ["aiortc_publisher", "H264", false, true],
  ["gstreamer_publisher", "VP8", true, true],
  ["gstreamer_publisher", "H264", false, false],
];

for (const isBusy of [false, true]) {
  for (const [name, codec, sound, trickle] of CASES) {
    const how = `${codec}${sound ? " and Opus" : ""}, ${trickle ? "with trickle" : "without trickle"}`;
    const where = isBusy ? "busy" : "quiet";
    Deno.test(`${name}, ${how}, is described from its start, on a ${where} machine`, LONG_TEST, async () => {
      await using service = await startForeignService();
      await using client = new ForeignProgram(name);
      await using _load = isBusy ? new BusyMachine() : undefined;
      const { state, run_id: runId, trickled } = await client.order("publish", {
        server: service.url,
        key: KEY_A,
        clip: CLIP,
        codec,
        sound,
        trickle,
        ...(sound && { attach: encoded({ local_audio: {} }) }),
      });
      assert.equal(state, "connected");
      assert.equal(trickled.length > 0, trickle);
      assert.deepEqual(new Set(trickled), new Set(trickle ? [204] : []));
      await until(
        "the run is under way",
        async () => (await service.call("GET", `/v1/runs/${runId}`)).json.status === "processing",
      );

      let events: StoredEvent[] = [];
      await until("the pictures of some seconds are stored", async () => {
        events = await service.events(runId);
        return (keyframeTimes(events).at(-1) ?? 0) >= WATCHED_MS;
      });
      assertStart(events, isBusy ? 5_000 : 2_000);
      for (const { coordinates } of payloads(events, "keyframe_stored")) {
        assert.deepEqual(coordinates.source_extent, { width: 854, height: 480 });
      }
      assert.equal((await client.order("prompt", { prompt: PROMPT })).status, 200);
      await until(
        "the model is asked with the new prompt",
        () => service.model.requests.at(-1)!.prompt.includes(PROMPT),
      );
      assert.equal((await client.order("close_and_delete")).status, 200);
      assert.equal(endOf(await service.terminal(runId)), "run_completed whip_terminated");
      if (sound) await assertSound(service, runId);

      for (const name of ["keyframes_dropped", "keyframes_undescribed", "loop_detected", "worker_faults"]) {
        assert.equal(await service.metric(`service_pipeline_${name}_total`), 0, name);
      }
      assert.deepEqual(service.model.faults, []);
    });
  }
}

function assertStart(events: readonly StoredEvent[], deadlineMs: number): void {
  // deno-lint-ignore no-explicit-any -- the envelope has a wall-clock time that no other test needs
  const timeOf = (kind: string) => (events.find((event) => event.kind === kind) as any)?.pts_ms;
  const waitedMs = timeOf("vlm") - timeOf("publisher_connected");
  assert.ok(waitedMs <= deadlineMs, `the first description came ${waitedMs} ms after the connection`);
  const times = keyframeTimes(events);
  const isApart = times.every((time, at) => at === 0 || time - times[at - 1]! >= KEYFRAMES_APART_MS);
  assert.ok(isApart, `keyframes at ${times.slice(0, 12).join(", ")} ms`);
  assert.deepEqual(payloads(events, "loop_detected"), []);
}

/** Checks two whole windows that follow each other, with something to hear. */
async function assertSound(service: ForeignService, runId: string): Promise<void> {
  const windows = payloads(await service.events(runId), "semantic_chunk_inferred").slice(0, 2);
  assert.equal(windows.length, 2);
  for (const { pts_start_ms, pts_end_ms, provider } of windows) {
    assert.equal(provider, "local_audio");
    const lengthMs = pts_end_ms - pts_start_ms;
    assert.ok(lengthMs >= 3_900 && lengthMs <= 4_200, `a window of ${lengthMs} ms`);
  }
  const pauseMs = Math.abs(windows[1].pts_start_ms - windows[0].pts_end_ms);
  assert.ok(pauseMs <= 100, `${pauseMs} ms between two windows`);
  assert.deepEqual(service.sidecar.faults, []);
  const isHeard = service.sidecar.requests.some(({ audio }) => audio.subarray(44).some((byte) => byte !== 0));
  assert.ok(isHeard, "the sound is silence");
}
