/** Cameras that depart from RTSP, each played by ffmpeg through the tunnel. */

import assert from "node:assert/strict";
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
