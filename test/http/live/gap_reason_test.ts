/** Why a live source gives no more, as its connection knows it: in the list of sources, in the event and in
 * the log.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { type Log, quietLog } from "../../../src/base/log.ts";
import { recordTrack } from "../../support/live/camera_tracks.ts";
import type { RtspQuirk } from "../../support/live/rtsp_quirks.ts";
import { serveRtsp } from "../../support/live/rtsp_server.ts";
import { LONG_TEST } from "../../support/long_tests.ts";
import { make, TempFolder } from "../../support/media.ts";
import { eventsOf, payloads, startReason } from "../../support/models/reason.ts";
import { serve } from "../../support/http/tls_server.ts";
import { until } from "../../support/until.ts";

/** About two seconds of media first, for a service that is being asked about it. */
const PLAYED_MOMENTS = 60;

const QUIRKS: Readonly<Record<string, readonly [quirk: RtspQuirk, reason: string]>> = {
  redirects: [
    { between: "RTSP/1.0 302 Moved\r\nCSeq: 9\r\nLocation: rtsp://10.0.0.1/\r\n\r\n" },
    "its server redirects to another place",
  ],
  long: [{ between: `RTSP/1.0 200 OK\r\nX: ${"x".repeat(20_000)}` }, "its server's answer is too long"],
  ends: [
    { betweenFrom: 5, between: "TEARDOWN * RTSP/1.0\r\nCSeq: 9\r\n\r\n" },
    "its server ended the session",
  ],
  closes: [{}, "its server closed the connection"],
};

/** A log whose warnings are kept. */
function keptLog(): { log: Log; warnings: { message: string; fields: Record<string, unknown> }[] } {
  const warnings: { message: string; fields: Record<string, unknown> }[] = [];
  const warn = (message: string, fields = {}) => void warnings.push({ message, fields });
  const log: Log = { ...quietLog(), warn, child: () => log };
  return { log, warnings };
}

Deno.test("a gap has the reason that the connection knows", LONG_TEST, async () => {
  using folder = new TempFolder();
  await using servers = new AsyncDisposableStack();
  const track = recordTrack([
    ...["-f", "lavfi", "-i", "testsrc2=s=160x120:r=25", "-c:v", "libx264", "-preset", "ultrafast"],
    ...["-pix_fmt", "yuv420p", "-g", "5", "-bf", "0", "-flags", "+global_header"],
  ], { seconds: 2 });
  const source = (name: string, uri: string) =>
    `[[sources]]\nname = "${name}"\nuri = "${uri}"\nprincipals = ["*"]\nlive = true\n`;
  const sources = Object.entries(QUIRKS).map(([name, [quirk]]) => {
    const isFinite = name === "ends" || name === "closes";
    const { port } = servers.use(serveRtsp(new Uint8Array(), {
      tracks: [track],
      quirk: { betweenFrom: PLAYED_MOMENTS, ...quirk },
      replay: () => isFinite ? { packetsMax: 120 } : {},
    }));
    return source(name, `rtsp://camera.test:${port}/1`);
  });
  const jpeg = Deno.readFileSync(
    make(join(folder.path, "one.jpg"), "-f", "lavfi", "-i", "testsrc2=s=160x120", "-frames:v", "1"),
  );
  const pictures = () =>
    new ReadableStream<Uint8Array<ArrayBuffer>>({
      async start(controller) {
        const head = new TextEncoder().encode(`--b\nContent-Length: ${jpeg.length}\n\n`);
        for (let picture = 0; picture < 60; picture++) {
          controller.enqueue(Uint8Array.of(...head, ...jpeg));
          await new Promise((resolve) => setTimeout(resolve, 40));
        }
        controller.enqueue(new TextEncoder().encode("--b\nContent-Length: 999999999\n\n"));
      },
    });
  const headers = { "content-type": "multipart/x-mixed-replace" };
  const { port } = servers.use(serve(() => new Response(pictures(), { headers }), { isPlain: true }));
  sources.push(source("pictures", `http://camera.test:${port}/`));
  const { log, warnings } = keptLog();
  await using live = await startReason({ answer: () => "A test picture." }, {
    SERVICE_ALLOW_UNENCRYPTED_RTSP: "true",
    SERVICE_ALLOW_INSECURE_HTTP: "true",
  }, {
    sourcesFile: sources.join("\n"),
    log,
    outbound: { resolve: () => Promise.resolve(["93.184.216.34"]), reroute: () => "127.0.0.1" },
  });
  const { test } = live;
  const expected = {
    ...Object.fromEntries(Object.entries(QUIRKS).map(([name, [, reason]]) => [name, reason])),
    pictures: "its server sends a picture that is too large",
  };
  for (const [name, reason] of Object.entries(expected)) {
    let told: unknown = null;
    await until(`${name} has a gap`, async () => {
      const look = (await test.call("GET", "/v1/sources")).json.sources.find((one: { name: string }) =>
        one.name === name
      );
      if (look.run_id === null) return false;
      [told] = payloads(await eventsOf(test, look.run_id), "source_gap").map(({ reason }) => reason);
      return told !== undefined;
    });
    assert.equal(told, reason, name);
    assert.ok(warnings.some(({ fields }) => fields.reason === reason), name);
  }
  // What is shown of a gap is the same.
  const seen = new Set<string>();
  await until("the list of sources tells a reason", async () => {
    for (const { state, reason } of (await test.call("GET", "/v1/sources")).json.sources) {
      if (state === "gap") seen.add(reason);
    }
    return seen.size > 0;
  });
  for (const reason of seen) assert.ok(Object.values(expected).includes(reason), reason);
});
