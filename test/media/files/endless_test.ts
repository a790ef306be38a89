import { localRunner } from "../../support/local_runner.ts";
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { join } from "node:path";
import { Decoder } from "../../../src/media/files/decoder.ts";
import { fileInput, rtspInput } from "../../../src/media/input.ts";
import { planSampling } from "../../../src/model/frames/sampling.ts";
import { serveRtsp } from "../../support/live/rtsp_server.ts";
import { make, makeClip, NEVER, openDecoder, TempFolder, tools, world } from "../../support/media.ts";
import { until } from "../../support/until.ts";
import { childProcesses } from "../../support/own_process.ts";

/** Much more than sockets buffer, so that ffmpeg must have read many frames. */
const TAKEN_BYTES = 40e6;

Deno.test("an endless source gives the frames that came by the deadline; without any it is refused", async () => {
  using folder = new TempFolder();
  const clip = makeClip(join(folder.path, "clip.mp4"), { frames: 50 });
  const stream = Deno.readFileSync(
    make(join(folder.path, "a.ts"), "-i", clip, "-c:v", "mpeg2video", "-f", "mpegts"),
  );
  await using camera = serveRtsp(stream, { isEndless: true });
  let elapse = () => {};
  const deadlinesMs: number[] = [];
  const real = world();
  // The deadline of a probe is real, and how long a Worker waits for work; the deadline of a decode passes
  // when the test calls `elapse`.
  const sleep = (ms: number, signal?: AbortSignal) => {
    if (ms <= 60_000) return real.sleep(ms, signal);
    deadlinesMs.push(ms);
    return new Promise<void>((resolve, reject) => {
      elapse = resolve;
      signal?.addEventListener("abort", () => reject(signal.reason), { once: true });
    });
  };
  await using decoder = new Decoder({
    runner: localRunner(tools()),
    tempDir: folder.path,
    world: { ...real, sleep },
    maxConcurrent: 1,
  });
  const input = rtspInput(`rtsp://127.0.0.1:${camera.port}/camera`);
  const info = await decoder.probe(input, NEVER);
  equal(info.durationMs, null);
  const plan = planSampling({}, info.video!.averageFps, "ingest");
  const takenBefore = camera.sentBytes;
  const decoding = decoder.decodeSignals({ input, info, plan, maxFrames: 500_000, signal: NEVER });
  await until(() => camera.sentBytes - takenBefore > TAKEN_BYTES);
  elapse();
  const { signals, end } = await decoding;
  ok(signals.count > 20, `got ${signals.count}`);
  deepEqual(deadlinesMs.map((ms) => Math.round(ms / 1000)), [600]);
  deepEqual(end, { source_warning: "it had not ended, and its decode met the limit of 600 s" });

  await using silent = serveRtsp(new Uint8Array(), { isEndless: true });
  const nothing = rtspInput(`rtsp://127.0.0.1:${silent.port}/camera`);
  const waiting = decoder.decodeSignals({ input: nothing, info, plan, maxFrames: 500, signal: NEVER });
  await until(() => silent.requests.some((line) => line.startsWith("PLAY")));
  elapse();
  await rejects(waiting, (error: Error) => {
    match(error.message, /decoding took longer than 80 s/);
    return true;
  });
  deepEqual(childProcesses("rtsp://"), []);
});

Deno.test("cameras that are silent while they are looked into delay neither each other nor a file", async () => {
  using folder = new TempFolder();
  const clip = makeClip(join(folder.path, "clip.mp4"));
  await using silent = serveRtsp(new Uint8Array(), { isEndless: true });
  await using decoder = openDecoder(folder);
  const leaving = new AbortController();
  const looks = Array.from({ length: 6 }, () => {
    const input = rtspInput(`rtsp://127.0.0.1:${silent.port}/camera`);
    return decoder.probe(input, leaving.signal).catch((error) => error);
  });
  await until("all are looked into at once", () => {
    return silent.requests.filter((line) => line.startsWith("PLAY")).length === looks.length;
  });
  equal((await decoder.probe(fileInput(clip), NEVER)).video!.width, 320);
  const left = new Error("nobody waits any more");
  leaving.abort(left);
  deepEqual(await Promise.all(looks), looks.map(() => left));
});
