/** Streams as cameras send them: orders, codecs, clocks and faults of each, all watched by one service at the
 * same time.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { type CameraTrack, recordTrack, type ReplayOptions } from "../../support/live/camera_tracks.ts";
import { playedFile } from "../../support/live/played_file.ts";
import { serveRtsp } from "../../support/live/rtsp_server.ts";
import { frameTimesMs, TempFolder } from "../../support/media.ts";
import { eventsOf, kindsOf, payloads, startReason } from "../../support/models/reason.ts";
import { KEY_A } from "../../support/service.ts";
import { until } from "../../support/until.ts";

const PICTURES = ["-f", "lavfi", "-i", "testsrc2=s=160x120:r=25"];
const H264 = ["-c:v", "libx264", "-preset", "ultrafast", "-pix_fmt", "yuv420p", "-g", "25"];
const GLOBAL = ["-flags", "+global_header"];
const SECONDS = 2;

/** Milliseconds between two pictures at 25 fps. */
const FRAME_MS = 40;

interface Shape {
  readonly tracks: readonly CameraTrack[];
  readonly replay?: ReplayOptions;
}

function shapes(): Readonly<Record<string, Shape>> {
  const film = (...args: string[]) => recordTrack([...PICTURES, ...args], { seconds: SECONDS });
  const inBand = film(...H264, "-bf", "0");
  const tone = recordTrack(
    ["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=8000", "-c:a", "pcm_mulaw"],
    {
      seconds: SECONDS,
      payloadType: 97,
    },
  );
  const aac = recordTrack(
    ["-f", "lavfi", "-i", "sine=frequency=440:sample_rate=44100", "-c:a", "aac"],
    { seconds: SECONDS, payloadType: 97 },
  );
  const h265 = film("-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none:keyint=25");
  return {
    reordered: { tracks: [film(...H264, ...GLOBAL, "-bf", "2", "-b_strategy", "0")] },
    h265: { tracks: [h265] },
    sound: { tracks: [inBand, tone] },
    // No parameter sets in the description, and the first packets are of a picture that refers to one before.
    late: { tracks: [inBand], replay: { from: packetAfterFirstPicture(inBand) } },
    // 2^32 ticks of 90 kHz are 13 hours 15 minutes; the wrap comes a second after the start.
    wrapping: { tracks: [inBand], replay: { startTicks: 2 ** 32 - 90_000 } },
    // An hour back after each replay; a clock of sound, of which 25 frames a second are no whole number of
    // ticks.
    jumping: { tracks: [withClock(inBand, 44_100)], replay: { startTicks: 2 ** 31, jumpSeconds: -3_600 } },
    // An hour ahead, the sound as well.
    heard: { tracks: [inBand, aac], replay: { jumpSeconds: 3_600 } },
  };
}

/** What clips say of the sound of those that have some. */
const SOUNDS: Readonly<Record<string, string>> = { sound: "not_supported", heard: "included" };

/** The first packet of the third picture. */
function packetAfterFirstPicture({ packets }: CameraTrack): number {
  return packets.findIndex(({ ticks }) => ticks >= 2 * FRAME_MS * 90);
}

function withClock(track: CameraTrack, clockHz: number): CameraTrack {
  const scaled = (ticks: number) => Math.round(ticks * clockHz / track.clockHz);
  return {
    sdp: track.sdp.map((line) => line.replace("H264/90000", `H264/${clockHz}`)),
    clockHz,
    packets: track.packets.map(({ bytes, ticks }) => ({ bytes, ticks: scaled(ticks) })),
    durationTicks: scaled(track.durationTicks),
  };
}

/** Packets of a track whose payload is noise, with its description. */
function noise(track: CameraTrack): CameraTrack {
  return {
    ...track,
    packets: track.packets.map(({ bytes, ticks }, at) => ({
      ticks,
      bytes: bytes.map((byte, place) => place < 12 ? byte : (byte * 31 + place * 7 + at) & 255),
    })),
  };
}

Deno.test("cameras of every shape give each frame at its time and whole clips, beside one that sends noise", {
  timeout: 120_000,
}, async () => {
  using folder = new TempFolder();
  await using servers = new AsyncDisposableStack();
  const all: Record<string, Shape> = { ...shapes() };
  all.noise = { tracks: all.sound!.tracks.map(noise) };
  const names = Object.keys(all);
  const sourcesFile = names.map((name) => {
    const { tracks, replay } = all[name]!;
    const { port } = servers.use(serveRtsp(new Uint8Array(), { tracks, replay: () => replay ?? {} }));
    return `[[sources]]\nname = "${name}"\nuri = "rtsp://camera.test:${port}/1"\nprincipals = ["*"]\nlive = true\n` +
      `prompt = "Watch."\nrecord = { pre_roll_ms = 0, post_roll_ms = 400, on = ["keyframe"] }\n`;
  }).join("\n");
  await using live = await startReason({ answer: () => "A test picture." }, {
    SERVICE_ALLOW_UNENCRYPTED_RTSP: "true",
  }, {
    sourcesFile,
    outbound: { resolve: () => Promise.resolve(["93.184.216.34"]), reroute: () => "127.0.0.1" },
  });
  const { test } = live;
  const looks = async () => (await test.call("GET", "/v1/sources")).json.sources;
  const runOf = async (name: string): Promise<string | null> =>
    (await looks()).find((look: { name: string }) => look.name === name).run_id;

  const seen: { name: string; runId: string; events: Awaited<ReturnType<typeof eventsOf>> }[] = [];
  for (const name of names.filter((name) => name !== "noise")) {
    await until(`${name}: a clip after the film has begun again`, async () => {
      const runId = await runOf(name);
      const events = runId === null ? [] : await eventsOf(test, runId);
      const isDone = payloads(events, "clip_stored").some(({ start_pts_ms }) =>
        start_pts_ms > SECONDS * 1_000
      );
      if (isDone) seen.push({ name, runId: runId!, events });
      return isDone;
    });
  }
  const { state, reason } = (await looks()).find((look: { name: string }) => look.name === "noise");
  assert.ok(["connecting", "failed", "gap"].includes(state), `${state} ${reason}`);
  // Each second would make more clips than a slow machine looks at in it.
  await servers.disposeAsync();

  for (const { name, runId, events } of seen) {
    assert.ok(!kindsOf(events).includes("source_gap"), name);
    const times = payloads(events, "keyframe_stored").map(({ pts_ms }) => pts_ms);
    // An hour lies between two of its times.
    assert.ok(times.at(-1)! < 1_800_000, `${name}: ${times}`);
    assert.deepEqual(times, times.toSorted((one, other) => one - other), name);
    for (const [at, clip] of payloads(events, "clip_stored").entries()) {
      const what = `${name}, clip ${at}`;
      assert.equal(clip.sound, SOUNDS[name] ?? "none", what);
      assert.match(clip.codec, name === "h265" ? /^hvc1/ : /^avc1/, what);
      const lengthMs = clip.end_pts_ms - clip.start_pts_ms;
      assert.ok(lengthMs >= 300, `${what}: ${JSON.stringify(clip)}`);
      const media: Response = await fetch(`${test.url}/v1/runs/${runId}/media/${clip.sha256}`, {
        headers: { "x-api-key": KEY_A },
      });
      assert.deepEqual([media.status, media.headers.get("content-type")], [200, "video/mp4"], what);
      const mp4 = join(folder.path, `${name}-${at}.mp4`);
      Deno.writeFileSync(mp4, new Uint8Array(await media.arrayBuffer()));
      if (clip.sound === "included") {
        const { soundMs, soundFromMs, videoMs, errors } = playedFile(mp4);
        assert.equal(errors, "", what);
        assert.ok(
          Math.abs(soundFromMs + soundMs - videoMs) < 100,
          `${what}: ${soundMs} of ${videoMs} ms are heard`,
        );
      }
      // Of the first pictures of a stream ffmpeg does not know the times.
      const frames = frameTimesMs(mp4, 0).slice(at === 0 ? 10 : 0);
      const steps = frames.slice(1).map((time, index) => time - frames[index]!);
      // Of reordered pictures those between the last ones are left out, as the clip ends before them.
      if (name === "reordered" || name === "h265") steps.splice(-3);
      // Where the clock has jumped, only the order says how far apart two pictures are.
      const tolerance = name === "jumping" || name === "heard" ? FRAME_MS / 2 : 2;
      assert.ok(steps.every((step) => Math.abs(step - FRAME_MS) <= tolerance), `${what}: ${steps}`);
    }
  }
});
