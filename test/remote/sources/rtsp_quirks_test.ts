/** Cameras that depart from RTSP, each played by ffmpeg through the tunnel. */

import assert from "node:assert/strict";
import { connect, createServer } from "node:net";
import { quietLog } from "../../../src/base/log.ts";
import { NEVER_ABORTED } from "../../../src/base/wait.ts";
import { realWorld } from "../../../src/base/world.ts";
import { PinnedAgent } from "../../../src/remote/guard/pinned_agent.ts";
import { RtspTunnel } from "../../../src/remote/sources/rtsp_tunnel.ts";
import { type CameraTrack, recordTrack } from "../../support/live/camera_tracks.ts";
import { PLAYED_QUIRKS, type RtspQuirk } from "../../support/live/rtsp_quirks.ts";
import { serveRtsp } from "../../support/live/rtsp_server.ts";
import { LONG_TEST } from "../../support/long_tests.ts";
import { tools } from "../../support/media.ts";
import { until } from "../../support/until.ts";

const PLAYED_FRAMES = 12;
const AT_ONCE = 6;

/** Whether ffmpeg gets pictures, and the reason where it does not. */
async function played(track: CameraTrack, quirk: RtspQuirk): Promise<string | undefined> {
  await using camera = serveRtsp(new Uint8Array(), { tracks: [track], quirk, replay: () => ({ speed: 4 }) });
  using agent = new PinnedAgent({ roots: () => [], reroute: () => "127.0.0.1" });
  await using tunnel = await RtspTunnel.open(new URL(`rtsp://camera.test:${camera.port}/dock`), {
    ...{ world: realWorld(quietLog()), agent, allowedNetworks: [], signal: NEVER_ABORTED },
    resolve: () => Promise.resolve(["93.184.216.34"]),
  });
  const { success, stderr } = await new Deno.Command(tools().ffmpeg, {
    args: [
      ...["-nostdin", "-v", "error", "-f", "rtsp", "-rtsp_transport", "tcp", "-timeout", "10000000"],
      ...["-analyzeduration", "0", "-i", tunnel.url, "-frames:v", String(PLAYED_FRAMES), "-f", "null", "-"],
    ],
    stdin: "null",
    stdout: "null",
    stderr: "piped",
    signal: AbortSignal.timeout(30_000),
  }).output();
  if (success) return tunnel.fault?.message;
  return tunnel.fault?.message ?? new TextDecoder().decode(stderr);
}

Deno.test("cameras are played however they spell RTSP", LONG_TEST, async () => {
  const track = recordTrack([
    ...["-f", "lavfi", "-i", "testsrc2=s=160x120:r=25", "-c:v", "libx264", "-preset", "ultrafast"],
    ...["-pix_fmt", "yuv420p", "-g", "5", "-bf", "0", "-flags", "+global_header"],
  ], { seconds: 2 });
  const faults: Record<string, string> = {};
  const left = Object.entries(PLAYED_QUIRKS);
  await Promise.all(Array.from({ length: AT_ONCE }, async () => {
    for (let next = left.pop(); next; next = left.pop()) {
      const [name, quirk] = next;
      const fault = await played(track, quirk);
      if (fault !== undefined) faults[name] = fault;
    }
  }));
  assert.deepEqual(faults, {});
});

Deno.test("what a camera asks is answered by the tunnel, and ffmpeg hears nothing of it", async () => {
  let heard = "";
  const asked = [
    "OPTIONS * RTSP/1.0\r\nCSeq: 71\r\nSession: 5\r\n\r\n",
    "GET_PARAMETER * RTSP/1.0\nCSeq: 72\n\n",
    "SET_PARAMETER * RTSP/1.0\r\nCSeq: 73\r\nContent-Length: 4\r\n\r\nx: 1",
    "ANNOUNCE * RTSP/1.0\r\n\r\n",
  ];
  const server = createServer((socket) => {
    socket.on("error", () => {/* the tunnel has closed it */});
    socket.on("data", (bytes: Uint8Array) => void (heard += new TextDecoder().decode(bytes)));
    socket.once("data", () => socket.write(`${asked.join("")}RTSP/1.0 200 OK\r\nCSeq: 1\r\n\r\n`));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  using agent = new PinnedAgent({ roots: () => [], reroute: () => "127.0.0.1" });
  await using tunnel = await RtspTunnel.open(new URL(`rtsp://camera.test:${port}/dock`), {
    ...{ world: realWorld(quietLog()), agent, allowedNetworks: [], signal: NEVER_ABORTED },
    resolve: () => Promise.resolve(["93.184.216.34"]),
  });
  const client = connect(Number(new URL(tunnel.url).port), "127.0.0.1");
  let passed = "";
  client.on("data", (bytes: Uint8Array) => void (passed += new TextDecoder().decode(bytes)));
  client.write(`OPTIONS ${tunnel.url} RTSP/1.0\r\nCSeq: 8\r\n\r\n`);
  const answers = [
    "RTSP/1.0 200 OK\r\nCSeq: 71\r\nSession: 5\r\nPublic: OPTIONS, GET_PARAMETER, SET_PARAMETER\r\n\r\n",
    "RTSP/1.0 200 OK\r\nCSeq: 72\r\n\r\n",
    "RTSP/1.0 501 Not Implemented\r\nCSeq: 73\r\n\r\n",
    "RTSP/1.0 501 Not Implemented\r\n\r\n",
  ].join("");
  await until("all are answered", () => heard.endsWith(answers) && passed !== "");
  assert.equal(passed, "RTSP/1.0 200 OK\r\nCSeq: 8\r\n\r\n");
  client.destroy();
  await new Promise<void>((resolve) => server.close(() => resolve()));
});
