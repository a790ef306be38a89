/** Cameras that give no picture for long, though their connections are open. */

import { freeRoom } from "../../support/live/free_room.ts";
import assert from "node:assert/strict";
import { join } from "node:path";
import { NEVER_ABORTED } from "../../../src/base/wait.ts";
import type { World } from "../../../src/base/world.ts";
import { type MediaInput, mjpegInput, rtspInput } from "../../../src/media/input.ts";
import { PulledDecoder } from "../../../src/media/live/pulled_decoder.ts";
import { PinnedAgent } from "../../../src/remote/guard/pinned_agent.ts";
import { MjpegRelay } from "../../../src/remote/sources/mjpeg_relay.ts";
import { joinedBytes } from "../../../src/base/bytes.ts";
import { serveRtsp } from "../../support/live/rtsp_server.ts";
import { localRunner } from "../../support/local_runner.ts";
import { LONG_TEST } from "../../support/long_tests.ts";
import { make, makeClip, TempFolder, tools, world } from "../../support/media.ts";
import { until } from "../../support/until.ts";

/** Milliseconds between two pictures: longer than the 10 s after which ffmpeg gives up other streams. */
const BETWEEN_PICTURES_MS = 11_500;

/** JPEGs over HTTP: one at once, and each next one long after. */
function servePictures(jpeg: Uint8Array) {
  const head = new TextEncoder().encode(
    `--frame\r\nContent-Type: image/jpeg\r\nContent-Length: ${jpeg.length}\r\n\r\n`,
  );
  const picture = joinedBytes(head, jpeg);
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, () => {
    let timer: ReturnType<typeof setInterval> | undefined;
    const body = new ReadableStream<Uint8Array>({
      start: (controller) => {
        controller.enqueue(picture);
        timer = setInterval(() => controller.enqueue(picture), BETWEEN_PICTURES_MS);
      },
      cancel: () => clearInterval(timer),
    });
    return new Response(body, { headers: { "content-type": "multipart/x-mixed-replace; boundary=frame" } });
  });
  return {
    port: (server.addr as Deno.NetAddr).port,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

function pulled(input: MediaInput, clock: World) {
  const seen = { timesMs: [] as number[], ended: null as string | null };
  const decoder = PulledDecoder.start({
    runner: localRunner(tools()),
    world: clock,
    input,
    room: freeRoom(),
    onFrame: ({ ptsMs }) => void seen.timesMs.push(ptsMs),
    onEnded: (reason) => void (seen.ended = reason),
  });
  return { seen, [Symbol.asyncDispose]: () => decoder[Symbol.asyncDispose]() };
}

Deno.test(
  "a camera of JPEGs may send one now and then, and keeps their times; one of RTSP that falls silent is not said to have ended",
  LONG_TEST,
  async () => {
    using folder = new TempFolder();
    const path = make(
      join(folder.path, "picture.jpg"),
      "-f",
      "lavfi",
      "-i",
      "testsrc2=s=160x120",
      "-frames:v",
      "1",
    );
    await using jpegs = servePictures(Deno.readFileSync(path));
    const clip = makeClip(join(folder.path, "camera.ts"), { size: "160x120", frames: 50 });
    await using silent = serveRtsp(Deno.readFileSync(clip), { fallsSilent: true });
    using agent = new PinnedAgent({ roots: () => [], reroute: () => "127.0.0.1" });
    await using relay = await MjpegRelay.open(new URL(`http://camera.test:${jpegs.port}/video`), {
      world: world(),
      agent,
      resolve: () => Promise.resolve(["93.184.216.34"]),
      allowedNetworks: [],
      signal: NEVER_ABORTED,
    });
    await using slow = pulled(mjpegInput(relay.url), world());
    await using none = pulled(rtspInput(`rtsp://127.0.0.1:${silent.port}/x`), world());
    await until(
      "the first picture is there before the second one comes",
      () => slow.seen.timesMs.length === 1,
    );
    await until("the silent camera has ended", () => none.seen.ended !== null);
    assert.ok(none.seen.timesMs.length > 0);
    assert.match(none.seen.ended!, /^it gave no frame for \d+ s$/);
    await until(
      "the second picture is there",
      () => slow.seen.timesMs.length === 2 || slow.seen.ended !== null,
    );
    assert.equal(slow.seen.ended, null);
    const [firstMs, secondMs] = slow.seen.timesMs;
    assert.ok(Math.abs(secondMs! - firstMs! - BETWEEN_PICTURES_MS) < 500, String(slow.seen.timesMs));
  },
);
