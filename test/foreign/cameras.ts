/** The RTSP server of GStreamer as a camera for `POST /v1/runs/:id/live`: pictures, sound, passwords, UDP and
 * restarts.
 */

import assert from "node:assert/strict";
import { ForeignProgram } from "../support/foreign/foreign_program.ts";
import { endOf, type ForeignService, startForeignService } from "../support/foreign/foreign_service.ts";
import { LONG_TEST } from "../support/long_tests.ts";
import { kindsOf, payloads, type StoredEvent } from "../support/models/reason.ts";
import { MODEL } from "../support/service.ts";
import { until } from "../support/until.ts";

const TONE_HZ = 440;

async function newRun({ call }: ForeignService): Promise<string> {
  const { status, text, json } = await call("POST", "/v1/runs", { mode: "balanced", model: MODEL });
  assert.equal(status, 200, text);
  return json.run_id;
}

for (const sound of ["pcmu", "aac", "none"]) {
  Deno.test(
    `a camera with H.264 and ${sound === "none" ? "no" : sound} sound is seen and heard`,
    LONG_TEST,
    async () => {
      await using service = await startForeignService();
      await using camera = new ForeignProgram("rtsp_camera");
      const { port } = await camera.order("serve", { sound });
      const runId = await newRun(service);
      const opened = await service.call("POST", `/v1/runs/${runId}/live`, {
        source_uri: `rtsp://127.0.0.1:${port}/dock`,
        ...(sound !== "none" && { local_audio: {} }),
      });
      assert.equal(opened.status, 200, opened.text);
      let events: StoredEvent[] = [];
      await until("some pictures are described, and two windows heard", async () => {
        events = await service.events(runId);
        const heard = payloads(events, "semantic_chunk_inferred").length;
        return payloads(events, "keyframe_stored").length >= 4 && (sound === "none" || heard >= 2);
      });
      const [first] = payloads(events, "keyframe_stored");
      assert.deepEqual([first.frame_index, first.coordinates.source_extent], [0, {
        width: 320,
        height: 180,
      }]);
      if (sound !== "none") assertTone(service, events);
      const ended = await service.call("DELETE", `/v1/runs/${runId}/live`);
      assert.equal(ended.status, 200, ended.text);
      assert.equal(endOf(await service.terminal(runId)), "run_completed live_terminated");
      assert.equal(await service.metric("service_pipeline_worker_faults_total"), 0);
    },
  );
}

/** Windows of four seconds from about 0 on, with the periods of the tone in them. */
function assertTone({ sidecar }: ForeignService, events: readonly StoredEvent[]): void {
  const times = payloads(events, "semantic_chunk_inferred").map((chunk) => chunk.pts_start_ms).slice(0, 2);
  assert.equal(times[1] - times[0], 4_000, `${times}`);
  const { audio } = sidecar.requests[0]!;
  const samples = new Int16Array(audio.slice(44).buffer);
  const periods = samples.filter((sample, at) => sample >= 0 && samples[at - 1]! < 0).length;
  // A moment of silence may come before the first sound.
  assert.ok(Math.abs(periods - 4 * TONE_HZ) <= 0.1 * 4 * TONE_HZ, `${periods} periods in four seconds`);
  assert.deepEqual(sidecar.faults, []);
}

Deno.test(
  "a camera without sound refuses local_audio, and one that only sends UDP is seen and heard",
  LONG_TEST,
  async () => {
    await using service = await startForeignService();
    const watch = async (runId: string, port: number, fields: Record<string, unknown> = {}) => {
      const source_uri = `rtsp://127.0.0.1:${port}/dock`;
      return await service.call("POST", `/v1/runs/${runId}/live`, { source_uri, ...fields });
    };
    const runId = await newRun(service);
    await using silent = new ForeignProgram("rtsp_camera");
    const deaf = await watch(runId, (await silent.order("serve", { sound: "none" })).port, {
      local_audio: {},
    });
    assert.deepEqual([deaf.status, deaf.json.error.details[0].field], [422, "local_audio"]);

    await using datagrams = new ForeignProgram("rtsp_camera");
    const { port } = await datagrams.order("serve", { sound: "pcmu", transport: "udp" });
    assert.deepEqual(kindsOf(await service.events(runId)), ["run_created"]);
    const opened = await watch(runId, port, { local_audio: {} });
    assert.equal(opened.status, 200, opened.text);
    let events: StoredEvent[] = [];
    await until("some pictures are described, and two windows heard", async () => {
      events = await service.events(runId);
      return payloads(events, "keyframe_stored").length >= 4 &&
        payloads(events, "semantic_chunk_inferred").length >= 2;
    });
    assertTone(service, events);
    assert.equal((await service.call("DELETE", `/v1/runs/${runId}/live`)).status, 200);
    assert.equal(endOf(await service.terminal(runId)), "run_completed live_terminated");
    assert.equal(await service.metric("service_pipeline_worker_faults_total"), 0);
  },
);

Deno.test(
  "a camera with a password is refused with the reason, and nothing repeats a password",
  LONG_TEST,
  async () => {
    await using service = await startForeignService();
    await using camera = new ForeignProgram("rtsp_camera");
    const password = "sesame-open-77";
    const { port } = await camera.order("serve", { sound: "none", user: "viewer", password });
    const runId = await newRun(service);
    const refusals = [["", /asks for a user name and a password/], [
      `viewer:${password}@`,
      /must not contain/,
    ]] as const;
    for (const [userinfo, reason] of refusals) {
      const refused = await service.call("POST", `/v1/runs/${runId}/live`, {
        source_uri: `rtsp://${userinfo}127.0.0.1:${port}/dock`,
      });
      assert.deepEqual(
        [refused.status, refused.json.error.details[0].field],
        [422, "source_uri"],
        refused.text,
      );
      assert.match(refused.json.error.message, reason);
      assert.ok(!refused.text.includes(password), refused.text);
    }
    assert.deepEqual(kindsOf(await service.events(runId)), ["run_created"]);
  },
);

Deno.test(
  "a camera that drops its clients, and one that is started again, comes back",
  LONG_TEST,
  async () => {
    await using service = await startForeignService();
    await using camera = new ForeignProgram("rtsp_camera");
    const { port } = await camera.order("serve", { sound: "pcmu" });
    const runId = await newRun(service);
    const opened = await service.call("POST", `/v1/runs/${runId}/live`, {
      source_uri: `rtsp://127.0.0.1:${port}/dock`,
      local_audio: {},
    });
    assert.equal(opened.status, 200, opened.text);
    const untilResumed = (times: number) =>
      until(`the camera is back ${times} times, with pictures`, async () => {
        const events = await service.events(runId);
        const last = events.findLastIndex(({ kind }) => kind === "source_resumed");
        return payloads(events, "source_resumed").length >= times &&
          events.slice(last).some(({ kind }) => kind === "keyframe_stored");
      });
    await untilResumed(0);
    await camera.order("drop_clients");
    await untilResumed(1);
    await camera.kill();
    await using again = new ForeignProgram("rtsp_camera");
    await again.order("serve", { sound: "pcmu", port });
    await untilResumed(2);
    assert.equal((await service.call("DELETE", `/v1/runs/${runId}/live`)).status, 200);
    assert.equal(endOf(await service.terminal(runId)), "run_completed live_terminated");
    const times = payloads(await service.events(runId), "keyframe_stored").map(({ pts_ms }) => pts_ms);
    assert.deepEqual(times, times.toSorted((one, other) => one - other));
  },
);
