import { localRunner } from "../../support/local_runner.ts";
import { deepEqual, equal, match, rejects } from "node:assert/strict";
import { join } from "node:path";
import { Refusal } from "../../../src/contract/refusal.ts";
import { fileInput, rtspInput } from "../../../src/media/input.ts";
import type { MediaInfo } from "../../../src/media/media_info.ts";
import { probeMedia } from "../../../src/media/files/probe.ts";
import {
  make,
  makeClip,
  makeTurned,
  NEVER,
  steppedWorld,
  TempFolder,
  tools,
  world,
} from "../../support/media.ts";
import { needing, SHARED_CLIPS, SHARED_CLIPS_FOLDER } from "../../support/needs.ts";
import { until } from "../../support/until.ts";

const TEST_PICTURE = ["-f", "lavfi", "-i", "testsrc2=s=320x240:r=25:d=1"];
const TEST_SOUND = ["-f", "lavfi", "-i", "sine=d=1"];

function probe(path: string): Promise<MediaInfo> {
  return probeMedia(fileInput(path), { runner: localRunner(tools()), world: world(), signal: NEVER });
}

async function checkRefused(path: string, expected: RegExp): Promise<void> {
  await rejects(probe(path), (error) => {
    equal(error instanceof Refusal, true, `${path}: ${error}`);
    equal((error as Refusal).details[0]!.field, "source_uri", path);
    match((error as Refusal).message, expected, path);
    equal((error as Refusal).message.includes(path), false, "no path in the reason");
    return true;
  });
}

Deno.test("probing reports what a file contains", async () => {
  using folder = new TempFolder();
  const at = (name: string) => join(folder.path, name);
  const check = async (path: string, expected: object, video: object | null) => {
    const info = await probe(path);
    deepEqual({ ...info, ...expected, video: null }, { ...info, video: null }, path);
    if (video === null) equal(info.video, null);
    else deepEqual({ ...info.video, ...video }, info.video, path);
  };
  const plain = makeClip(at("plain.mp4"));
  await check(plain, {
    formatName: "mov,mp4,m4a,3gp,3g2,mj2",
    durationMs: 1000,
    sizeBytes: Deno.statSync(plain).size,
    videoStreams: 1,
    audioStreams: 0,
    audioChannels: 0,
  }, {
    streamIndex: 0,
    codec: "mpeg4",
    pixelFormat: "yuv420p",
    width: 320,
    height: 240,
    rotation: 0,
    averageFps: 25,
    timeBase: "1/12800",
  });
  await check(makeClip(at("ntsc.mkv"), { fps: "30000/1001" }), { formatName: "matroska,webm" }, {
    averageFps: 30000 / 1001,
  });
  const turned = makeTurned(at("turned.mp4"), plain, 90);
  await check(turned, {}, { width: 240, height: 320, rotation: 90 });
  const upside = makeTurned(at("upside.mp4"), plain, 180);
  await check(upside, {}, { width: 320, height: 240, rotation: 180 });
  await check(makeTurned(at("left.mp4"), plain, 270), {}, { width: 240, height: 320, rotation: 270 });
  await check(
    make(at("ten_bit.mkv"), ...TEST_PICTURE, "-pix_fmt", "yuv420p10le", "-c:v", "ffv1"),
    {},
    { pixelFormat: "yuv420p10le", codec: "ffv1" },
  );
  await check(
    make(at("both.mkv"), ...TEST_PICTURE, ...TEST_SOUND, "-ac", "2", "-c:v", "mpeg4", "-c:a", "aac"),
    { videoStreams: 1, audioStreams: 1, audioChannels: 2 },
    { streamIndex: 0 },
  );
  await check(
    make(at("sound.mka"), ...TEST_SOUND, "-c:a", "aac"),
    { videoStreams: 0, audioStreams: 1, audioChannels: 1 },
    null,
  );
  const smaller = [
    ...TEST_PICTURE,
    "-f",
    "lavfi",
    "-i",
    "testsrc2=s=160x120:r=10:d=1",
    "-map",
    "0",
    "-map",
    "1",
  ];
  await check(
    make(
      at("second.mkv"),
      ...smaller,
      "-c:v",
      "mpeg4",
      "-disposition:v:0",
      "0",
      "-disposition:v:1",
      "default",
    ),
    { videoStreams: 2 },
    { streamIndex: 1, width: 160, height: 120, averageFps: 10 },
  );
  // Both the default one, or none of them: the largest, as ffmpeg chooses.
  const larger = [...smaller.slice(0, -4), "-map", "1", "-map", "0", "-c:v", "mpeg4"];
  for (const [end, ...dispositions] of [["mkv", "default", "0"], ["mp4", "default"]] as const) {
    for (const disposition of dispositions) {
      const file = make(
        at(`larger_${disposition}.${end}`),
        ...larger,
        ...["-disposition:v:0", disposition, "-disposition:v:1", disposition],
      );
      await check(file, { videoStreams: 2 }, { streamIndex: 1, width: 320, height: 240 });
    }
  }
  const cover = make(at("cover.png"), ...TEST_PICTURE, "-frames:v", "1");
  await check(
    make(
      at("cover.mp4"),
      "-i",
      cover,
      "-i",
      plain,
      "-map",
      "0",
      "-map",
      "1",
      "-c",
      "copy",
      "-disposition:v:0",
      "attached_pic",
    ),
    { videoStreams: 1 },
    { codec: "mpeg4", width: 320 },
  );
});

Deno.test("what is no media container is refused with a reason", async () => {
  using folder = new TempFolder();
  const plain = Deno.readFileSync(makeClip(join(folder.path, "plain.mp4")));
  const list = `${join(folder.path, "plain.mp4")}`;
  await checkRefused(folder.file("empty.mp4"), /file is empty/);
  await checkRefused(folder.file("text.mp4", "just some words\n".repeat(100)), /not a media file/);
  await checkRefused(
    folder.file("text.txt", "just some words\n".repeat(100)),
    /not a media file|not supported/,
  );
  await checkRefused(folder.file("zero.mp4", new Uint8Array(10_000)), /not a media file/);
  await checkRefused(folder.file("cut.mp4", plain.subarray(0, plain.length >> 1)), /cut off.*moov/);
  await checkRefused(folder.file("list.m3u8", `#EXTM3U\n#EXTINF:1,\n${list}\n`), /playlist/);
  await checkRefused(folder.file("list.mp4", `#EXTM3U\n#EXTINF:1,\n${list}\n`), /playlist/);
  await checkRefused(folder.file("list.ffconcat", `ffconcat version 1.0\nfile '${list}'\n`), /concat/);
  await checkRefused(
    folder.file("a.sdp", "v=0\no=- 0 0 IN IP4 127.0.0.1\ns=x\nm=video 5004 RTP/AVP 96\n"),
    /SDP/,
  );
  await checkRefused(
    folder.file("a.srt", "1\n00:00:00,000 --> 00:00:01,000\nHello\n"),
    /not supported|not a media/,
  );
  await checkRefused(folder.file("%03d.png", "\x89PNG\r\n\x1a\n"), /not a media file|not supported/);
  await checkRefused(join(folder.path, "missing.mp4"), /cannot be read/);
});

Deno.test("a probe that takes too long is the fault of a busy machine, and one that computes too long of the file", async () => {
  using folder = new TempFolder();
  const stepped = steppedWorld();
  const ffprobe = folder.script("ffprobe", `: > ${join(folder.path, "started")}; exec tail -f /dev/null`);
  const probing = probeMedia(fileInput(makeClip(join(folder.path, "plain.mp4"))), {
    runner: localRunner({ ...tools(), ffprobe, prlimit: null }),
    world: stepped,
    signal: NEVER,
  });
  await until(() => folder.names().includes("started"));
  stepped.elapse();
  await rejects(probing, {
    ...{ status: 503, code: "provider_saturated", retryAfterSeconds: 30 },
    message: /The machine is too busy: looking into it took longer than 60 s/,
  });
  const spins = folder.script("spins", "kill -XCPU $$"); // as the kernel does at the limit
  const spinning = probeMedia(fileInput(join(folder.path, "plain.mp4")), {
    runner: localRunner({ ...tools(), ffprobe: spins, prlimit: null }),
    world: world(),
    signal: NEVER,
  });
  await rejects(spinning, {
    status: 422,
    message: /looking into it takes more processor time than is allowed/,
  });
  const silent = probeMedia(rtspInput("rtsp://127.0.0.1:1/a"), {
    runner: localRunner({ ...tools(), ffprobe, prlimit: null }),
    world: world(),
    signal: NEVER,
    deadlineMs: 200,
  });
  await rejects(silent, { status: 422, message: /looking into it took longer than 0\.2 s/ });
});

Deno.test({
  ...needing(SHARED_CLIPS, "the damaged clips are refused for what is wrong with them"),
  fn: async () => {
    await checkRefused(join(SHARED_CLIPS_FOLDER, "bad_empty.mp4"), /file is empty/);
    await checkRefused(join(SHARED_CLIPS_FOLDER, "bad_notvideo.mp4"), /not a media file/);
    await checkRefused(join(SHARED_CLIPS_FOLDER, "bad_truncated_nomoov.mp4"), /cut off.*moov/);
    equal((await probe(join(SHARED_CLIPS_FOLDER, "bad_audio_only.mp4"))).video, null);
  },
});

Deno.test("a film in AVI whose frames are coded in another order has the rate that it has", async () => {
  using folder = new TempFolder();
  const path = make(join(folder.path, "b.avi"), ...TEST_PICTURE, "-c:v", "mpeg4", "-bf", "2");
  equal((await probe(path)).video?.averageFps, 25);
});
