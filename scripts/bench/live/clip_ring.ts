/**
 * What keeping a camera's packets for evidence clips costs: the processor time of decoding with and without the second
 * output of ffmpeg and the ring that it fills, one after the other in turns.
 *
 *     ./scripts/deno run -A scripts/bench/live/clip_ring.ts [--seconds 20] [--turns 3]
 */

import { parseArgs } from "node:util";
import { join } from "node:path";
import { findTools } from "../../../src/environment.ts";
import { quietLog } from "../../../src/base/log.ts";
import { realWorld } from "../../../src/base/world.ts";
import { fileInput } from "../../../src/media/input.ts";
import { PulledDecoder } from "../../../src/media/live/pulled_decoder.ts";
import { UnitRing } from "../../../src/media/live/unit_ring.ts";
import { keptBytesMax } from "../../../src/model/live/recording/record_plan.ts";
import { localRunner } from "../../../test/support/local_runner.ts";
import { make, TempFolder } from "../../../test/support/media.ts";
import { CLIPS } from "../../../test/support/service.ts";
import { machine } from "./live_support.ts";

const { values } = parseArgs({
  args: Deno.args,
  options: { seconds: { type: "string", default: "20" }, turns: { type: "string", default: "3" } },
});
const seconds = Number(values.seconds);
const SIZE = { width: 640, height: 480 };
const PLAN = { preRollMs: 5_000, postRollMs: 5_000, on: ["zone"] } as const;

using folder = new TempFolder();
const camera = make(
  join(folder.path, "camera.mkv"),
  ...[
    "-stream_loop",
    "-1",
    "-i",
    join(CLIPS, "bbb480.mp4"),
    "-f",
    "lavfi",
    "-i",
    "sine",
    "-t",
    String(seconds),
  ],
  ...["-vf", "scale=640:480,fps=30", "-c:v", "libx264", "-preset", "veryfast", "-b:v", "1500k", "-g", "60"],
  ...["-map", "0:v", "-map", "1:a", "-c:a", "aac"],
);
const world = realWorld(quietLog());
const runner = localRunner(findTools({ ffmpegPath: "ffmpeg", ffprobePath: "ffprobe" }, []));

console.log(machine());
const sums = { plain: 0, kept: 0 };
// The first run compiles what all run.
await processorSeconds(true);
for (let turn = 0; turn < Number(values.turns); turn++) {
  sums.plain += await processorSeconds(false);
  sums.kept += await processorSeconds(true);
}
const watched = seconds * Number(values.turns);
const share = (used: number) => `${(used / watched * 100).toFixed(2)} %`;
console.log(`640x480 at 30 fps, 1.5 Mbit/s and AAC, in real time, load ${Deno.loadavg()[0]!.toFixed(1)}`);
console.log(`one core's share: decoding ${share(sums.plain)}, with the ring ${share(sums.kept)}`);
console.log(`the ring: ${share(sums.kept - sums.plain)}`);

/** Of this process and of the ffmpeg that it has waited for. */
async function processorSeconds(isKept: boolean): Promise<number> {
  const ring = new UnitRing({ bytesMax: keptBytesMax(SIZE, PLAN), keepMs: PLAN.preRollMs });
  const before = used();
  const ended = Promise.withResolvers<string>();
  let frames = 0;
  const decoder = PulledDecoder.start({
    ...{ runner, world, input: fileInput(camera), isPaced: true, maxFrame: SIZE, sourceExtent: SIZE },
    ...(isKept && {
      copy: {
        tempDir: folder.path,
        withSound: true,
        onStreams: () => {},
        onUnit: (unit: Parameters<typeof ring.push>[0]) => ring.push(unit),
      },
    }),
    onFrame: () => frames++,
    onEnded: ended.resolve,
  });
  await ended.promise;
  await decoder[Symbol.asyncDispose]();
  if (frames < seconds * 29) throw new Error(`only ${frames} frames`);
  if (isKept && ring.bytes === 0) throw new Error("nothing was kept");
  return used() - before;
}

/** User and system time, own and of children that have ended: clock ticks of 10 ms. */
function used(): number {
  const fields = Deno.readTextFileSync("/proc/self/stat").split(") ")[1]!.split(" ");
  return fields.slice(11, 15).reduce((sum, field) => sum + Number(field), 0) / 100;
}
