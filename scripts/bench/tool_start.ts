/** How long a decode takes to start through the broker, beside the same program started directly, in one run. */

import { quietLog } from "../../src/base/log.ts";
import { realWorld } from "../../src/base/world.ts";
import { findTools } from "../../src/environment.ts";
import { fileInput } from "../../src/media/input.ts";
import { localRunner } from "../../test/support/local_runner.ts";
import type { ToolRunner } from "../../src/media/tools/runner.ts";
import { makeClip, TempFolder } from "../../test/support/media.ts";
import { TestBroker } from "../../test/support/test_broker.ts";

const ROUNDS = 25;
const tools = findTools({ ffmpegPath: "ffmpeg", ffprobePath: "ffprobe" }, []);
using folder = new TempFolder();
const tempDir = Deno.realPathSync(folder.path);
const clip = makeClip(`${tempDir}/clip.mp4`, { frames: 5 });
await using broker = new TestBroker(tools, { tempDir, uploadRoot: tempDir, ingestRoots: [] });

const runners = { "bare spawn": localRunner(tools), "through the broker": broker.client };
const signal = new AbortController().signal;

/** Milliseconds until the first byte of a live decode, which is a stream, and until the end of a first_frame job. */
async function measure(runner: ToolRunner): Promise<{ stream: number; whole: number }> {
  const input = fileInput(clip);
  let from = performance.now();
  const tool = runner.start(
    {
      ...{ kind: "live_pull", input, streamIndex: 0, isPaced: false, soundPipe: null },
      maxFrame: { width: 320, height: 240 },
    },
    { signal, maxStderrBytes: 4096 },
  );
  const reader = tool.stdout!.getReader();
  await reader.read();
  const stream = performance.now() - from;
  tool.kill("killed");
  await reader.cancel();
  await tool.ended;
  from = performance.now();
  const bounds = { deadlineMs: 10_000, maxStdoutBytes: 4096, maxStderrBytes: 4096 };
  await runner.run({ kind: "first_frame", input, streamIndex: 0, deadlineMs: 10_000 }, {
    world: realWorld(quietLog()),
    signal,
    ...bounds,
  });
  return { stream, whole: performance.now() - from };
}

const median = (values: number[]) => values.toSorted((a, b) => a - b)[values.length >> 1]!;
const times = new Map<string, { stream: number; whole: number }[]>();
for (let round = 0; round < ROUNDS; round++) {
  for (const [name, runner] of Object.entries(runners)) {
    times.set(name, [...times.get(name) ?? [], await measure(runner)]);
  }
}
for (const [name, all] of times) {
  const [first] = all;
  const stream = median(all.map((time) => time.stream));
  const whole = median(all.map((time) => time.whole));
  console.log(
    `${name}: first byte of a stream ${stream.toFixed(1)} ms (the first of all ${
      first!.stream.toFixed(1)
    }), ` +
      `a short job ${whole.toFixed(1)} ms (${first!.whole.toFixed(1)})`,
  );
}
