/** A camera for real: an RTSP server, the tunnel to it, a real Worker with its decoder, a real model server. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { makeClip, TempFolder } from "../../support/media.ts";
import { eventsOf, kindsOf, payloads, startReason, type StoredEvent } from "../../support/models/reason.ts";
import { serveRtsp } from "../../support/live/rtsp_server.ts";
import { KEY_A, newRun } from "../../support/service.ts";
import { until } from "../../support/until.ts";

const SAID = "A test picture.";

Deno.test("a camera that disconnects is requested again, and what it shows is described before and after", async () => {
  using folder = new TempFolder();
  const clip = makeClip(join(folder.path, "camera.ts"), { size: "160x120", frames: 50 });
  await using camera = serveRtsp(Deno.readFileSync(clip));
  await using live = await startReason({ answer: () => SAID }, {
    SERVICE_ALLOW_UNENCRYPTED_RTSP: "true",
    SERVICE_WEBRTC_STUN_SERVERS: "",
  }, {
    outbound: {
      resolve: (host) =>
        host === "camera.test" ? Promise.resolve(["93.184.216.34"]) : Promise.reject("unknown"),
      reroute: () => "127.0.0.1",
    },
  });
  const { test } = live;
  const runId = await newRun(test);
  const opened = await test.call("POST", `/v1/runs/${runId}/live`, {
    source_uri: `rtsp://camera.test:${camera.port}/dock`,
    prompt: "Watch the dock.",
  });
  assert.equal(opened.status, 200, opened.text);

  let events: StoredEvent[] = [];
  await until("a keyframe of the second connection is stored", async () => {
    events = await eventsOf(test, runId);
    const kinds = kindsOf(events);
    return kinds.lastIndexOf("keyframe_stored") > kinds.indexOf("source_resumed") &&
      kinds.includes("source_resumed");
  });
  assert.equal((await test.call("DELETE", `/v1/runs/${runId}/live`)).status, 200);
  events = await eventsOf(test, runId);
  assert.equal(kindsOf(events).at(-1), "run_completed");
  assert.equal(payloads(events, "vlm")[0].description, SAID);
  const stored = payloads(events, "keyframe_stored");
  assert.deepEqual(stored[0].coordinates.source_extent, { width: 160, height: 120 });
  const times = stored.map(({ pts_ms }: { pts_ms: number }) => pts_ms);
  assert.deepEqual(times, times.toSorted((one: number, other: number) => one - other));
  const [picture] = live.model.requests.at(0)!.images;
  assert.deepEqual([picture!.width, picture!.height], [160, 120]);
  const jpeg = await fetch(`${test.url}/v1/runs/${runId}/keyframes/${stored[0].image_sha256}`, {
    headers: { "x-api-key": KEY_A },
  });
  assert.equal((await jpeg.arrayBuffer()).byteLength, stored[0].image_bytes);
});
