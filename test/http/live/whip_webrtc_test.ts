/** Publishing for real: a publisher with ICE, DTLS and SRTP, real Workers and decoders, a real model server.
 */

import { localRunner } from "../../support/local_runner.ts";
import assert from "node:assert/strict";
import { join } from "node:path";
import { joinedBytes } from "../../../src/base/bytes.ts";
import { quietLog } from "../../../src/base/log.ts";
import { realWorld } from "../../../src/base/world.ts";
import { fileInput } from "../../../src/media/input.ts";
import { Decoder } from "../../../src/media/files/decoder.ts";
import { compileTrigger } from "../../../src/model/triggers/compile.ts";
import type { TriggerProgram } from "../../../src/model/triggers/program.ts";
import { findTools } from "../../../src/process/environment.ts";
import { openAudioDouble } from "../../support/sidecars/audio_sidecar.ts";
import { TemporaryFolder } from "../../support/folders.ts";
import { metric } from "../../support/live/live.ts";
import { playedFile } from "../../support/live/played_file.ts";
import { LivePublisher, PublisherMedia, testVideo } from "../../support/live/live_publisher.ts";
import { childProcesses, pipesAndDatagramSockets } from "../../support/own_process.ts";
import {
  eventsOf,
  kindsOf,
  payloads,
  type ReasonTest,
  startReason,
  type StoredEvent,
} from "../../support/models/reason.ts";
import { CLIPS, KEY_A } from "../../support/service.ts";
import { frameTimesMs } from "../../support/media.ts";
import { ReferenceTrigger } from "../../support/kernels/trigger_reference.ts";
import { referenceZone } from "../../support/kernels/zone_reference.ts";
import { until } from "../../support/until.ts";
import { LONG_TEST } from "../../support/long_tests.ts";

const media = new PublisherMedia();
addEventListener("unload", () => media[Symbol.dispose]());
const PICTURES = media.vp8("pictures", testVideo("320x180", 3));
const PICTURES_H264 = media.h264("pictures", testVideo("322x182", 3));
const SHORT = media.vp8("short", testVideo("320x180", 1));
const LARGER = media.vp8("larger", testVideo("640x360", 1));
const SOUND = media.opus("sound", ["-f", "lavfi", "-i", "sine=d=5"]);
/** A hand takes a bottle: motion in the middle of the picture, after a part without motion. */
const BOTTLE = media.h264("bottle", ["-ss", "15", "-t", "6", "-i", join(CLIPS, "intel_bottle.mp4"), "-an"]);
const MIDDLE = { x: 0.3, y: 0.2, width: 0.4, height: 0.6 };

const NO_SERVERS = { SERVICE_WEBRTC_STUN_SERVERS: "" };
const SAID = "A test picture.";

function startLive(env: Record<string, string> = {}): Promise<ReasonTest> {
  return startReason({ answer: () => SAID }, { ...NO_SERVERS, ...env });
}

function publisher({ test }: ReasonTest, args: readonly string[], attach?: unknown): LivePublisher {
  return LivePublisher.start({ url: test.url, args, attach });
}

/**
 * Publishers that send from when all of them are connected: the start of a process and its handshake take as
 * much of the processor as seconds of pictures, and those that the service has no time for are lost.
 */
async function publishers(
  live: ReasonTest,
  each: readonly { readonly args: readonly string[]; readonly attach?: unknown }[],
): Promise<AsyncDisposable & { readonly all: readonly LivePublisher[] }> {
  await using starting = new AsyncDisposableStack();
  const all = each.map(({ args, attach }) => starting.use(publisher(live, ["--wait", ...args], attach)));
  await Promise.all(all.map((one) => one.waitFor("connected")));
  await Promise.all(all.map((one) => one.begin()));
  const owned = starting.move();
  return { all, [Symbol.asyncDispose]: () => owned.disposeAsync() };
}

/** Events of a publisher's run, once it has its terminal event. */
async function eventsAfter(live: ReasonTest, publishing: LivePublisher): Promise<StoredEvent[]> {
  const runId = await publishing.runId();
  let events: StoredEvent[] = [];
  await until("the run has ended", async () => {
    events = await eventsOf(live.test, runId);
    return events.some(({ kind }) => /^run_(completed|failed)$/.test(kind));
  });
  return events;
}

Deno.test(
  "each frame is decoded once, with the time it was sent with, and keyframes are described",
  LONG_TEST,
  async () => {
    await using live = await startLive();
    const cases: readonly (readonly [size: string, args: readonly string[]])[] = [
      // The RTP timestamp wraps past 32 bits.
      ["320x180", ["--video", PICTURES, "--timestamp", "4294900000"]],
      ["322x182", ["--video", PICTURES_H264]],
      ["320x180", ["--video", PICTURES, "--plain", "--no-ssrc"]],
    ];
    let stored = 0;
    await using publishing = await publishers(live, cases.map(([, args]) => ({ args })));
    await Promise.all(cases.map(async ([size], at) => {
      const one = publishing.all[at]!;
      const { timestamps } = await one.waitFor("sent");
      await one.finished();
      const events = await eventsAfter(live, one);
      const keyframes = payloads(events, "keyframe_stored");
      assert.equal(keyframes[0]?.frame_index, 0, kindsOf(events).join(" "));
      for (const { frame_index, pts_ms, coordinates, description } of keyframes) {
        const { width, height } = coordinates.source_extent;
        assert.equal(pts_ms, Math.round(timestamps[frame_index] / 90), `frame ${frame_index}`);
        assert.equal(`${width}x${height}`, size);
        assert.equal(description, SAID);
      }
      assert.equal(payloads(events, "vlm")[0].description, SAID);
      assert.deepEqual(payloads(events, "run_completed").map(({ source, reason }) => `${source} ${reason}`), [
        "whip whip_terminated",
      ]);
      stored += keyframes.length;
    }));
    const pipeline = (name: string) => metric(live.test, `service_pipeline_${name}_total`);
    assert.equal(await pipeline("frames_decoded"), 90 * cases.length);
    assert.equal(await pipeline("gate_frames_analyzed"), 90 * cases.length);
    assert.equal(await pipeline("frames_dropped"), 0);
    assert.deepEqual(live.model.requests.map(({ images }) => images.length), Array(stored).fill(1));
  },
);

Deno.test(
  "five percent of lost packets, reordered ones and those that come twice lose no frame",
  LONG_TEST,
  async () => {
    await using live = await startLive();
    await using publishing = publisher(live, [
      ...["--video", PICTURES_H264, "--loss", "5", "--reorder", "5", "--duplicate", "5"],
      // The sequence number wraps.
      ...["--sequence", "65400"],
    ]);
    const { frames, lost } = await publishing.waitFor("sent");
    await publishing.finished();
    const events = await eventsAfter(live, publishing);
    assert.ok(lost > 0, "no packet was lost");
    assert.equal(
      await metric(live.test, "service_pipeline_frames_decoded_total"),
      frames,
      kindsOf(events).join(" "),
    );
  },
);

Deno.test("the end of a session decides the end of its run", LONG_TEST, async () => {
  await using live = await startLive();
  const { test } = live;
  const cases: readonly (readonly [
    name: string,
    args: readonly string[],
    end: (publishing: LivePublisher) => unknown,
    expected: string,
  ])[] = [
    ["a machine that is gone", ["--end", "stay"], (one) => one.kill(), "run_failed peer_disconnected"],
    ["a page that is closed", ["--end", "close-notify"], () => {}, "run_failed peer_closed"],
    ["DELETE", ["--end", "delete"], () => {}, "run_completed whip_terminated"],
    [
      "stop",
      ["--end", "stay"],
      async (one) => await test.call("POST", `/v1/runs/${await one.runId()}/stop`),
      "stop_requested",
    ],
  ];
  await Promise.all(cases.map(async ([name, args, end, expected]) => {
    await using publishing = publisher(live, ["--video", SHORT, ...args]);
    await publishing.waitFor("sent");
    await end(publishing);
    const runId = await publishing.runId();
    const last = async () => (await eventsOf(test, runId)).findLast(({ kind }) => /^(run_|stop)/.test(kind))!;
    await until(name, async () => (await last()).kind !== "run_created");
    const { kind, payload } = await last();
    assert.equal(kind === "stop_requested" ? kind : `${kind} ${payload.reason}`, expected, name);
  }));
  await until(
    "all sessions are gone",
    async () => await metric(test, "service_pipeline_sessions_removed_total") === cases.length,
  );
  assert.equal(await metric(test, "service_media_capacity_memory_reserved_bytes"), 0);
});

Deno.test(
  "a pause, garbage datagrams, another picture size and new ICE credentials do not disturb a session",
  LONG_TEST,
  async () => {
    await using live = await startLive();
    const cases: readonly (readonly [args: readonly string[], frames: number])[] = [
      [["--video", PICTURES, "--silence", "45,3"], 90],
      [["--video", PICTURES, "--garbage", "500"], 90],
      [["--video", SHORT, "--video", LARGER, "--video", SHORT], 90],
      [["--video", PICTURES, "--restart-at", "45", "--trickle"], 90],
    ];
    const sizes: string[] = [];
    // four publishers at once are too much for two slow cores
    for (const two of [cases.slice(0, 2), cases.slice(2)]) {
      await using publishing = await publishers(live, two.map(([args]) => ({ args })));
      sizes.push(
        ...await Promise.all(publishing.all.map(async (one) => {
          await one.waitFor("sent");
          await one.finished();
          const events = await eventsAfter(live, one);
          assert.equal(payloads(events, "run_completed").length, 1, kindsOf(events).join(" "));
          const widths = payloads(events, "keyframe_stored").map((stored) =>
            stored.coordinates.source_extent.width
          );
          return [...new Set(widths)].join(" ");
        })),
      );
    }
    const frames = cases.reduce((sum, [, count]) => sum + count, 0);
    assert.equal(await metric(live.test, "service_pipeline_frames_decoded_total"), frames);
    assert.match(sizes[2]!, /320 640/);
  },
);

Deno.test("a decoder that is killed is replaced, and the session goes on", LONG_TEST, async () => {
  await using live = await startLive();
  await using publishing = publisher(live, ["--video", SHORT, "--repeat", "5"]);
  await publishing.waitFor("connected");
  const decoded = () => metric(live.test, "service_pipeline_frames_decoded_total");
  await until("frames are decoded", async () => await decoded() > 0);
  const [decoder] = childProcesses("-f ivf");
  assert.ok(decoder, "no decoder is running");
  Deno.kill(decoder.pid, "SIGKILL");
  await publishing.waitFor("sent");
  await publishing.finished();
  const events = await eventsAfter(live, publishing);
  const [restarted] = payloads(events, "decoder_restarted");
  assert.deepEqual([restarted?.reason, restarted?.restarts], ["exited", 1], kindsOf(events).join(" "));
  assert.equal(payloads(events, "run_completed").length, 1);
  assert.ok(await decoded() > 60, `only ${await decoded()} frames were decoded`);
});

Deno.test(
  "a zone, a trigger, clips and sound are reported on the frames that what was recorded says",
  LONG_TEST,
  async () => {
    const motion = await recordedMotion(BOTTLE);
    const program = compileTrigger([
      "trigger bottle version 1",
      "when motion_score >= 0.15 for 2 frames",
      "edge rising",
      "cooldown 1000ms",
      "emit taken",
      "capture keyframe",
      "end",
    ].join("\n"));
    await using sidecar = openAudioDouble();
    await using live = await startLive({ SERVICE_AUDIO_SIDECAR_ADDR: sidecar.address });
    const record = { pre_roll_ms: 1_000, post_roll_ms: 500, on: ["zone"] };
    const clip_mode = { target_fps: 6, clip_length_seconds: 0.5, delay_seconds: 0.5 };
    const local_audio = { profile: "general", speech_engine: "none" };
    const publish = async (...cases: Parameters<typeof publishers>[1]) => {
      await using publishing = await publishers(live, cases);
      return await Promise.all(publishing.all.map(async (one) => {
        await one.waitFor("sent");
        await one.finished();
        return { runId: await one.runId(), events: await eventsAfter(live, one) };
      }));
    };
    const [watched, withSound] = await publish(
      { args: ["--video", BOTTLE, "--audio", SOUND], attach: { restricted_zone: ZONE, record } },
      { args: ["--audio", SOUND], attach: { local_audio } },
    );
    const [triggered, clipped] = await publish(
      { args: ["--video", BOTTLE], attach: { trigger_program: program, crop: MIDDLE } },
      { args: ["--video", PICTURES], attach: { clip_mode } },
    );
    checkZone(watched!.events, motion);
    await checkRecording(live, watched!);
    checkTrigger(triggered!.events, motion, program);
    checkClips(clipped!.events);
    checkSound(withSound!.events);
    assert.equal(await metric(live.test, "service_pipeline_webrtc_audio_tracks_total"), 2);
    assert.equal(await metric(live.test, "service_pipeline_webrtc_audio_receive_errors_total"), 0);
  },
);

Deno.test("the live view of a publisher has its pictures and its sound, at the times of the run", async () => {
  using folder = new TemporaryFolder();
  await using live = await startLive();
  await using publishing = publisher(live, ["--video", PICTURES_H264, "--audio", SOUND]);
  const headers = { "x-api-key": KEY_A };
  const answer = await fetch(`${live.test.url}/v1/runs/${await publishing.runId()}/live.mp4`, { headers });
  assert.match(answer.headers.get("content-type")!, /^video\/mp4; codecs="avc1\.[0-9a-f]{6}, opus"$/);
  const path = join(folder.path, "seen.mp4");
  Deno.writeFileSync(path, await answer.bytes());
  const [stored] = payloads(await eventsAfter(live, publishing), "keyframe_stored");
  const times = packetTimesMs(path, "v:0");
  assert.ok(times.length > 30, `${times.length} pictures`);
  // On a busy machine pictures are lost on their way to the service.
  const frames = times.map((time) => (time - stored.pts_ms) * 30 / 1000);
  assert.ok(frames.every((frame) => Math.abs(frame - Math.round(frame)) < 0.05), `${times}`);
  assert.ok(times.every((time, at) => at === 0 || time > times[at - 1]!), `${times}`);
  const heard = packetTimesMs(path, "a:0");
  assert.ok(heard.length > 30 && Math.abs(heard[0]! - times[0]!) < 1_000, `${heard}`);
});

Deno.test("clips of a publisher that changes its picture size have one size each", LONG_TEST, async () => {
  using folder = new TemporaryFolder();
  const sizes = ["320x180", "480x270"];
  const parts = sizes.map((size) => media.h264(`part-${size}`, testVideo(size, 2)));
  const path = join(folder.path, "changing.h264");
  Deno.writeFileSync(path, joinedBytes(...parts.map((part) => Deno.readFileSync(part))));
  await using live = await startLive();
  const record = { pre_roll_ms: 1_500, post_roll_ms: 500, on: ["keyframe"] };
  await using publishing = publisher(live, ["--video", path, "--audio", SOUND], { record });
  await publishing.waitFor("sent");
  await publishing.finished();
  const clips = payloads(await eventsAfter(live, publishing), "clip_stored");
  const seen = [];
  for (const { sha256 } of clips) {
    const url = `${live.test.url}/v1/runs/${await publishing.runId()}/media/${sha256}`;
    const clip = join(folder.path, `${sha256}.mp4`);
    Deno.writeFileSync(clip, await (await fetch(url, { headers: { "x-api-key": KEY_A } })).bytes());
    const { codecs, sizes, errors } = playedFile(clip);
    assert.deepEqual([codecs, errors, sizes.length], [["h264", "opus"], "", 1], sizes.join());
    seen.push(sizes[0]!);
  }
  assert.deepEqual([...new Set(seen)], sizes);
});

const ZONE = {
  ...{ policy_id: "bottle", policy_version: 2, device_id: "cam-1", region: MIDDLE },
  ...{ enter_motion_score: 0.15, exit_motion_score: 0.03, enter_after_frames: 2, exit_after_frames: 5 },
};
/**
 * Bits of 64 that may differ: live planes are reduced by another scaler than recorded ones, within 1 of 255.
 */
const NEARLY = 2 / 64;

function checkZone(events: readonly StoredEvent[], motion: readonly number[]): void {
  const expected = referenceZone(
    { enterScore: 0.15, exitScore: 0.03, enterAfterFrames: 2, exitAfterFrames: 5 },
    motion,
  );
  assert.ok(expected.length > 0, "nothing moves in the clip");
  const entered = payloads(events, "restricted_zone_activity_entered");
  assert.deepEqual(
    entered.map(({ frame_index }) => frame_index),
    expected.map(({ enteredAt }) => enteredAt),
  );
  for (const { frame_index, assertion, coordinates, evidence } of entered) {
    assert.ok(Math.abs(assertion.trigger.score - motion[frame_index]!) <= NEARLY);
    assert.deepEqual(coordinates.requested_region, MIDDLE);
    assert.ok(evidence.image_bytes > 1_000);
  }
}

/** The first clip: its video and its sound have the times that its event says. */
async function checkRecording(
  { test }: ReasonTest,
  { runId, events }: { readonly runId: string; readonly events: readonly StoredEvent[] },
): Promise<void> {
  const [clip] = payloads(events, "clip_stored");
  const entered = events.find(({ kind }) => kind === "restricted_zone_activity_entered")!;
  assert.deepEqual([clip?.cause, clip?.cause_seq, clip?.sound], ["zone", entered.seq, "included"]);
  assert.match(clip.codec, /^avc1\.[0-9a-f]{6}, opus$/);
  const { pts_ms } = entered.payload;
  const startsAt = pts_ms - clip.start_pts_ms;
  assert.ok(startsAt >= 1_000 && startsAt < 2_001, `it begins ${startsAt} ms before its cause`);
  using folder = new TemporaryFolder();
  const path = join(folder.path, "clip.mp4");
  const answer = await fetch(`${test.url}/v1/runs/${runId}/media/${clip.sha256}`, {
    headers: { "x-api-key": KEY_A },
  });
  Deno.writeFileSync(path, new Uint8Array(await answer.arrayBuffer()));
  const frames = frameTimesMs(path, 0);
  const lengthMs = clip.end_pts_ms - clip.start_pts_ms;
  assert.ok(Math.abs(frames.length - lengthMs * 30 / 1000) <= 1, `${frames.length} frames in ${lengthMs} ms`);
  assert.ok(frames.every((time, at) => Math.abs(time - at * 100 / 3) <= 1), `${frames}`);
  const heard = packetTimesMs(path, "a:0");
  // The publisher sends no reports, so its sound is placed by when it came.
  const [first = NaN, last = NaN] = [heard[0], heard.at(-1)];
  assert.ok(first < 300 && Math.abs(last + 20 - lengthMs) < 300, `sound from ${first} to ${last} ms`);
  assert.ok(heard.slice(1).every((time, at) => Math.abs(time - heard[at]! - 20) < 60), `${heard}`);
}

/** When each packet of a stream is shown or heard. */
function packetTimesMs(path: string, stream: "v:0" | "a:0"): number[] {
  const fields = ["-select_streams", stream, "-show_entries", "packet=pts_time", "-of", "csv=p=0"];
  const { stdout } = new Deno.Command("ffprobe", { args: ["-v", "error", ...fields, path] }).outputSync();
  return new TextDecoder().decode(stdout).trim().split("\n").map((line) => parseFloat(line) * 1000);
}

function checkTrigger(
  events: readonly StoredEvent[],
  motion: readonly number[],
  program: TriggerProgram,
): void {
  const reference = new ReferenceTrigger(program);
  const expected = motion.flatMap((score, frame) =>
    reference.step({ pts_ms: Math.round(1_000 + frame * 100 / 3), motion_score: score }).fired ? [frame] : []
  );
  assert.ok(expected.length > 0, "nothing moves in the clip");
  assert.deepEqual(payloads(events, "trigger.taken").map(({ frame_index }) => frame_index), expected);
}

/** Checks the clips: of equal descriptions only the first is an event, but every clip is stored. */
function checkClips(events: readonly StoredEvent[]): void {
  const times = payloads(events, "keyframe_stored").map(({ pts_ms }) => pts_ms);
  assert.ok(times.length >= 3, `clips at ${times}`);
  assert.ok(times.slice(1).every((time, index) => time - times[index] >= 499), `clips at ${times}`);
}

function checkSound(events: readonly StoredEvent[]): void {
  const windows = payloads(events, "semantic_chunk_inferred");
  const endMs = windows[1]?.pts_end_ms;
  assert.deepEqual(
    windows.map(({ chunk_index, pts_start_ms, pts_end_ms }) => [chunk_index, pts_start_ms, pts_end_ms]),
    [[0, 0, 4020], [1, 4020, endMs]],
  );
  assert.ok(Math.abs(endMs - 5_000) <= 40, `it ends at ${endMs} ms`);
}

Deno.test(
  "ten sessions that have come and gone leave no process and no descriptor behind",
  LONG_TEST,
  async () => {
    await using live = await startLive();
    const sessions = async (count: number) => {
      await Promise.all(Array.from({ length: count }, async () => {
        await using publishing = publisher(live, ["--video", SHORT, "--fps", "120"]);
        await publishing.waitFor("sent");
        await publishing.finished();
        await eventsAfter(live, publishing);
      }));
      await until("the programs are gone", () => childProcesses("unix:").length === 0);
      await until("the sockets are closed", () => pipesAndDatagramSockets().sockets === 0);
    };
    // The first sessions start the Workers, which are kept.
    await sessions(5);
    const before = pipesAndDatagramSockets();
    await sessions(5);
    await until(
      `there are ${before.pipes} pipes again`,
      () => pipesAndDatagramSockets().pipes <= before.pipes,
    );
  },
);

/** Motion score of each frame in the middle of the recorded clip. See docs/frames.md#signals. */
async function recordedMotion(path: string): Promise<number[]> {
  const tools = findTools({ ffmpegPath: "ffmpeg", ffprobePath: "ffprobe" }, []);
  const world = realWorld(quietLog());
  const { signal } = new AbortController();
  const input = fileInput(path);
  using folder = new TemporaryFolder();
  await using decoder = new Decoder({
    runner: localRunner(tools),
    tempDir: folder.path,
    world,
    maxConcurrent: 1,
  });
  const info = await decoder.probe(input, signal);
  const plan = { policy: "source_fps_adaptive", sampleFps: 30, sourceFps: 30 } as const;
  const { signals } = await decoder.decodeSignals({
    input,
    info,
    plan,
    maxFrames: 1_000,
    crop: MIDDLE,
    signal,
  });
  return Array.from(
    signals.perceptualHash,
    (hash, frame) => frame === 0 ? 0 : distance(hash, signals.perceptualHash[frame - 1]!) / 64,
  );
}

function distance(one: bigint, other: bigint): number {
  return (one ^ other).toString(2).replaceAll("0", "").length;
}
