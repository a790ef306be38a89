/**
 * Live sessions: the latency to a frame's signals and to a stored keyframe, the processor time of a session,
 * how many sessions run at once, the frames lost by packet loss, the time to connect, and the growth of
 * memory.
 *
 *     ./scripts/deno run -A bench/live/live.ts [--seconds 10] [--minutes 1] [--most 8] [--only latency,cpu,…]
 *
 * The service and a model server that answers at once run in this process. Every publisher is a process of
 * its own on the same machine, so it uses a part of the same processors. The video is VP8, encoded before the
 * measurement.
 */

import { parseArgs } from "node:util";
import { join } from "node:path";
import { LivePublisher, PublisherMedia } from "../../test/support/live/live_publisher.ts";
import { residentBytes } from "../../test/support/own_process.ts";
import { until } from "../../test/support/until.ts";
import { CLIPS } from "../../test/support/service.ts";
import { SseClient } from "../../test/support/http/sse_client.ts";
import { machine, openLiveBench, pauseSeconds, processorTime, secondsOf } from "./live_support.ts";
import { percentile, report } from "../support.ts";

const { values } = parseArgs({
  args: Deno.args,
  options: {
    seconds: { type: "string", default: "10" },
    minutes: { type: "string", default: "1" },
    /** Sessions at once. */
    most: { type: "string", default: "8" },
    connects: { type: "string", default: "20" },
    only: { type: "string", default: "latency,cpu,loss,connect,concurrent,memory" },
  },
});
const seconds = Number(values.seconds);
const parts: Readonly<Record<string, () => Promise<void>>> = {
  latency: latencies,
  cpu: processor,
  loss: lossOfPackets,
  connect: connecting,
  concurrent: manyAtOnce,
  memory: memoryGrowth,
};

using media = new PublisherMedia();
const FILM = join(CLIPS, "bbb480.mp4");
const scaled = (name: string, size: string) =>
  media.vp8(name, ["-i", FILM, "-t", "10", "-an", "-vf", `scale=${size},fps=30`], 60);
const clips = {
  "640x480": scaled("640x480", "640:480"),
  "854x480": scaled("854x480", "854:480"),
  "1280x720": scaled("1280x720", "1280:720"),
};
const CLIP_SECONDS = 10;
/**
 * The film at three times the speed, at which frames differ so much that the loop detector drops no keyframe.
 */
const fastVideo = media.vp8("fast", ["-i", FILM, "-an", "-vf", "setpts=PTS/3,scale=640:480,fps=30"], 60);

console.log(machine());
for (const part of values.only.split(",")) await parts[part]!();

/**
 * One session alone. Both latencies start with the last packet of a frame: until its signals are computed,
 * and until a client has received the `keyframe_stored` event.
 */
async function latencies(): Promise<void> {
  await using bench = await openLiveBench();
  await using publisher = bench.publish(["--video", fastVideo, "--repeat", rounds(seconds * 3)]);
  const runId = await publisher.runId();
  const client = await SseClient.open(bench.live.test, runId, { query: "?kind=keyframe_stored" });
  const storedMs = new Map<number, number>();
  const reading = (async () => {
    for (let message = await client.next(); message; message = await client.next()) {
      storedMs.set(message.data.data.frame_index, Date.now());
    }
  })().catch(() => {/* it was closed */});
  await publisher.waitFor("sent");
  await publisher.finished();
  await pauseSeconds(1);
  await client[Symbol.asyncDispose]();
  await reading;
  const arrived = new Map(
    bench.reports.flatMap(({ report }) =>
      report.kind === "picture" ? [[report.picture.frame.frameIndex, report.picture.frame.arrivedMs]] : []
    ),
  );
  const stored = [...storedMs].map(([frame, atMs]) => atMs - arrived.get(frame)!);
  const signals = bench.reports.flatMap(({ report }) =>
    report.kind === "counts" ? report.counts.decodeLatenciesUs.map((us) => us / 1_000) : []
  );
  for (const [name, times] of Object.entries({ signals, "keyframe_stored": stored })) {
    const ours = [percentile(times, 0.5)];
    report({ name: `live: last packet to ${name}, p50`, unit: "ms", better: "less", ours, limit: null });
  }
  show(
    "last packet of a frame to its signals",
    `p50 ${ms(signals, 0.5)}, p95 ${ms(signals, 0.95)} of ${signals.length}`,
  );
  show(
    "last packet of a keyframe to keyframe_stored at a client",
    `p50 ${ms(stored, 0.5)}, p95 ${ms(stored, 0.95)} of ${stored.length}`,
  );
}

async function processor(): Promise<void> {
  for (const [name, clip] of Object.entries(clips)) {
    await using bench = await openLiveBench();
    await using publisher = bench.publish(["--video", clip, "--repeat", rounds(seconds + 5)]);
    await publisher.waitFor("connected");
    await pauseSeconds(3);
    const { service, ffmpeg, publishers } = await usage([publisher]);
    const percent = (share: number) => `${(share * 100).toFixed(1)} %`;
    report({
      ...{ name: `live: processor of one session of ${name}`, unit: "% of a core", better: "less" },
      ...{ ours: [(service + ffmpeg) * 100], limit: null },
    });
    show(
      `processor, one session of ${name}, 30 frames a second`,
      `${percent(service + ffmpeg)} (service ${percent(service)}, ffmpeg ${percent(ffmpeg)}; publisher ${
        percent(publishers)
      })`,
    );
  }
}

async function lossOfPackets(): Promise<void> {
  await using bench = await openLiveBench();
  await using publisher = bench.publish([
    ...["--video", clips["640x480"], "--repeat", rounds(seconds)],
    ...["--loss", "5"],
  ]);
  const { frames, lost, packets } = await publisher.waitFor("sent");
  await publisher.finished();
  await pauseSeconds(0.5);
  const decoded = await bench.count("frames_decoded");
  show(
    "frames lost at 5 % loss",
    `${frames - decoded} of ${frames} (${lost} of ${packets} packets and more were lost)`,
  );
}

/** Publishers one after the other; the time starts when the service has read the offer. */
async function connecting(): Promise<void> {
  await using bench = await openLiveBench();
  for (let round = 0; round < Number(values.connects); round++) {
    await using publisher = bench.publish(["--video", clips["640x480"], "--end", "stay"]);
    const sessionId = await publisher.sessionId();
    await until(
      "it is connected",
      () => bench.reports.some(({ report }) => report.kind === "connected" && report.sessionId === sessionId),
    );
    await bench.live.test.call("DELETE", `/v1/stream/whip/${sessionId}`);
  }
  const took = bench.reports.flatMap(({ report, atMs, offeredMs }) =>
    report.kind === "connected" ? [atMs - offeredMs] : []
  );
  report({
    ...{ name: "live: offer to connected, p50", unit: "ms", better: "less" },
    ...{ ours: [percentile(took, 0.5)], limit: null },
  });
  show("POST of the offer to connected", `p50 ${ms(took, 0.5)}, p95 ${ms(took, 0.95)} of ${took.length}`);
}

/** Starts two more sessions each time, until a frame is lost or `--most` is reached. */
async function manyAtOnce(): Promise<void> {
  for (let sessions = 2; sessions <= Number(values.most); sessions += 2) {
    await using bench = await openLiveBench();
    await using publishers = new AsyncDisposableStack();
    const started = Array.from(
      { length: sessions },
      () => publishers.use(bench.publish(["--video", clips["640x480"], "--repeat", rounds(seconds + 5)])),
    );
    for (const publisher of started) await publisher.waitFor("connected");
    await pauseSeconds(1);
    const shares = await usage(started);
    const sent = await Promise.all(started.map((publisher) => publisher.waitFor("sent")));
    await pauseSeconds(1);
    const frames = sent.reduce((sum, line) => sum + line.frames, 0);
    const lost = frames - await bench.count("frames_decoded");
    const late = bench.reports.flatMap(({ report }) =>
      report.kind === "counts" ? report.counts.decodeLatenciesUs.map((us) => us / 1_000) : []
    );
    const percent = (share: number) => `${(share * 100).toFixed(0)} %`;
    show(
      `${sessions} sessions of 640x480 at once`,
      `${lost} of ${frames} frames lost, signals p95 ${ms(late, 0.95)}; service ${
        percent(shares.service)
      }, ffmpeg ` +
        `${percent(shares.ffmpeg)}, publishers ${percent(shares.publishers)} of a processor`,
    );
    if (lost > 0) return;
  }
}

async function memoryGrowth(): Promise<void> {
  await using bench = await openLiveBench();
  await using publishers = new AsyncDisposableStack();
  const minutes = Number(values.minutes);
  const args = ["--video", clips["640x480"], "--repeat", rounds(minutes * 60 + 30)];
  const started = Array.from({ length: 3 }, () => publishers.use(bench.publish(args)));
  for (const publisher of started) await publisher.waitFor("connected");
  await pauseSeconds(20);
  bench.reports.length = 0;
  const before = residentBytes();
  const samples: number[] = [];
  for (let elapsed = 0; elapsed < minutes * 60; elapsed += 10) {
    await pauseSeconds(10);
    bench.reports.length = 0;
    samples.push(residentBytes());
  }
  const mb = (bytes: number) => `${(bytes / 2 ** 20).toFixed(0)} MB`;
  show(
    `memory of the service, 3 sessions of 640x480 over ${minutes} min`,
    `${mb(before)} at first, ${mb(samples.at(-1)!)} at the end, ${mb(Math.max(...samples))} at most`,
  );
}

/** The share of one processor that each part uses during the next `seconds`. */
async function usage(publishers: readonly LivePublisher[]) {
  const read = () => ({
    ...processorTime(),
    publishers: publishers.reduce((sum, { pid }) => sum + secondsOf(pid), 0),
    atMs: performance.now(),
  });
  const before = read();
  await pauseSeconds(seconds);
  const after = read();
  const share = (what: "service" | "ffmpeg" | "publishers") =>
    (after[what] - before[what]) / ((after.atMs - before.atMs) / 1_000);
  return { service: share("service"), ffmpeg: share("ffmpeg"), publishers: share("publishers") };
}

/** How many times the video is sent. */
function rounds(atLeastSeconds: number): string {
  return String(Math.max(1, Math.ceil(atLeastSeconds / CLIP_SECONDS)));
}

function ms(numbers: readonly number[], share: number): string {
  return `${percentile(numbers, share).toFixed(1)} ms`;
}

function show(what: string, figure: string): void {
  console.log(`${what.padEnd(62)} ${figure}`);
}
