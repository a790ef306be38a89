/** What the broker and each cage cost beside the same programs started directly: for each start, and for each
 * frame. Interleaved, in one run.
 */

import { quietLog } from "../src/base/log.ts";
import { realWorld } from "../src/base/world.ts";
import { findTools } from "../src/process/environment.ts";
import { fileInput, hlsInput, type MediaInput } from "../src/media/input.ts";
import { Decoder } from "../src/media/files/decoder.ts";
import { localRunner } from "../test/support/local_runner.ts";
import type { ToolRunner } from "../src/media/jobs/runner.ts";
import { make, makeClip, TempFolder } from "../test/support/media.ts";
import { type Cage, streamsOf } from "../src/media/broker/cage.ts";
import { cageOf } from "../test/support/cages.ts";
import { TestBroker } from "../test/support/test_broker.ts";
import { report } from "./support.ts";

const STARTS = 30;
const STREAMS = 8;
const FRAMES = 500;

const tools = findTools({ ffmpegPath: "ffmpeg", ffprobePath: "ffprobe" }, []);
using folder = new TempFolder();
const tempDir = Deno.realPathSync(folder.path);
const short = fileInput(makeClip(`${tempDir}/short.mp4`, { frames: 5 }));
const long = fileInput(makeClip(`${tempDir}/long.mp4`, { frames: FRAMES, size: "640x360" }));
await using brokers = new AsyncDisposableStack();
const folders = { tempDir, uploadRoot: tempDir, ingestRoots: [] };

/** Runners whose streams come through the forwarder. */
const forwarded = new Set<ToolRunner>();
const RUNNERS: [name: string, runner: ToolRunner][] = [["bare", localRunner(tools)]];
for (const level of ["off", "limits", "unshare", "bubblewrap"] as const) {
  const cage = await cageOf(level, tools);
  const broker = brokers.use(new TestBroker(tools, folders, cage));
  RUNNERS.push([`broker, cage ${level}`, broker.client]);
  if (streamsOf(cage).by !== "forwarder") continue;
  const around = brokers.use(new TestBroker(tools, folders, { ...cage, streams: { by: "machine" } } as Cage));
  forwarded.add(broker.client);
  RUNNERS.push([`broker, cage ${level} without a forwarder`, around.client]);
}

// A relay, on loopback and behind the forwarder.
const playlist = ["-f", "lavfi", "-i", "testsrc2=s=64x64:r=25", "-t", "1", "-c:v", "mpeg2video", "-f", "hls"];
make(`${tempDir}/list.m3u8`, ...playlist);
const socket = `${tempDir}/m-0123456789abcdef.s`;
const relay = (request: Request) =>
  new Response(Deno.readFileSync(`${tempDir}${new URL(request.url).pathname}`));
const onSocket = brokers.use(Deno.serve({ path: socket, onListen: () => {} }, relay));
const onLoopback = brokers.use(Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, relay));
void onSocket;
const streamOf = (runner: ToolRunner) =>
  forwarded.has(runner)
    ? hlsInput("http://127.0.0.1:8000/list.m3u8", socket)
    : hlsInput(`http://127.0.0.1:${onLoopback.addr.port}/list.m3u8`);
const world = realWorld(quietLog());
const signal = new AbortController().signal;

/** Reads a stream of frames until `isEnough` of its bytes have come. */
async function read(
  runner: ToolRunner,
  input: MediaInput,
  isEnough: (bytes: number) => boolean,
): Promise<void> {
  const tool = runner.start(
    {
      ...{ kind: "live_pull", input, streamIndex: 0, isPaced: false, soundSocket: null },
      maxFrame: { width: 640, height: 360 },
    },
    { signal, maxStderrBytes: 4096 },
  );
  const reader = tool.stdout!.getReader();
  let bytes = 0;
  while (!isEnough(bytes)) {
    const { value, done } = await reader.read();
    if (done) break;
    bytes += value.length;
  }
  tool.kill("killed");
  await reader.cancel();
  await tool.ended;
}

const decoders = new Map<ToolRunner, Decoder>();
for (const [, runner] of RUNNERS) {
  decoders.set(runner, brokers.use(new Decoder({ runner, tempDir, world, maxConcurrent: 1 })));
}

/** What an ingest has done: a probe, a named pipe, and a decode into signals. */
async function ingest(runner: ToolRunner): Promise<void> {
  const decoder = decoders.get(runner)!;
  const info = await decoder.probe(long, signal);
  const plan = { policy: "source_fps_adaptive", sampleFps: 25, sourceFps: 25 } as const;
  await decoder.decodeSignals({ input: long, info, plan, maxFrames: FRAMES, signal });
}

const MEASURED = {
  /** Time until the first byte of a decode that is a stream. */
  "first byte of a stream": [STARTS, (runner: ToolRunner) => read(runner, short, (bytes) => bytes > 0)],
  "first byte of a stream of a relay": [
    STARTS,
    (runner: ToolRunner) => read(runner, streamOf(runner), (bytes) => bytes > 0),
  ],
  "a short job, whole": [STARTS, async (runner: ToolRunner) => {
    const bounds = { deadlineMs: 10_000, maxStdoutBytes: 4096, maxStderrBytes: 4096 };
    const job = {
      kind: "first_frame",
      input: short,
      streamIndex: 0,
      timeBase: "1/25",
      deadlineMs: 10_000,
    } as const;
    await runner.run(job, { world, signal, ...bounds });
  }],
  [`an ingest of ${FRAMES} frames of 640x360, probe and decode`]: [STREAMS, ingest],
  [`${FRAMES} frames of 640x360, whole`]: [STREAMS, (runner: ToolRunner) => read(runner, long, () => false)],
} as const satisfies Record<string, readonly [number, (runner: ToolRunner) => Promise<void>]>;

const median = (values: readonly number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!;
const load = () => Deno.loadavg()[0]!.toFixed(1);

console.log(`processors ${navigator.hardwareConcurrency}, load at the start ${load()}`);
for (const [what, [rounds, measure]] of Object.entries(MEASURED)) {
  const times: Record<string, number[]> = Object.fromEntries(RUNNERS.map(([name]) => [name, []]));
  for (let round = 0; round <= rounds; round++) {
    // Each goes first as often as the other.
    for (const [name, runner] of round % 2 === 0 ? RUNNERS : RUNNERS.toReversed()) {
      const from = performance.now();
      await measure(runner);
      if (round > 0) times[name]!.push(performance.now() - from);
    }
  }
  const bare = times.bare!;
  console.log(`${what}, bare: ${median(bare).toFixed(1)} ms`);
  for (const [name] of RUNNERS.slice(1)) {
    report({
      ...{ name: `tools: ${what}, ${name}`, unit: "ms", better: "less", ours: times[name]! },
      limit: { name: "started directly", values: bare },
    });
    const more = median(bare.map((ms, round) => times[name]![round]! - ms));
    console.log(
      `${what}, ${name}: ${median(times[name]!).toFixed(1)} ms, median difference of ${rounds} pairs ${
        more.toFixed(1)
      } ms`,
    );
  }
}
console.log(`load at the end ${load()}`);
