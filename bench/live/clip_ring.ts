/**
 * What keeping a camera's packets for evidence clips costs: the processor time of decoding with and without
 * the second output of ffmpeg and all that takes it in a session that nobody watches, one after the other in
 * turns.
 *
 *     ./scripts/deno run -A bench/live/clip_ring.ts [--seconds 20] [--turns 3]
 *
 * The processor time of ffmpeg is told apart, as the one of this process is also that of a runtime that does
 * nothing else.
 */

import { freeRoom } from "../../test/support/live/free_room.ts";
import { parseArgs } from "node:util";
import { join } from "node:path";
import { findTools } from "../../src/process/environment.ts";
import { quietLog } from "../../src/base/log.ts";
import { realWorld } from "../../src/base/world.ts";
import { fileInput } from "../../src/media/input.ts";
import type { PacketSink } from "../../src/media/containers/copied_packets.ts";
import { PulledDecoder } from "../../src/media/live/pulled_decoder.ts";
import { ClipStage } from "../../src/live/encoded/clip_stage.ts";
import { UnitTaps } from "../../src/live/encoded/unit_taps.ts";
import { ViewStage } from "../../src/live/encoded/view_stage.ts";
import { Outbox } from "../../src/live/messages/outbox.ts";
import { SessionCounts } from "../../src/live/messages/session_counts.ts";
import { keptBytesMax } from "../../src/model/live/recording/record_plan.ts";
import { localRunner } from "../../test/support/local_runner.ts";
import { make, TempFolder } from "../../test/support/media.ts";
import { CLIPS } from "../../test/support/service.ts";
import { machine } from "./live_support.ts";

const { values } = parseArgs({
  args: Deno.args,
  options: { seconds: { type: "string", default: "20" }, turns: { type: "string", default: "3" } },
});
const seconds = Number(values.seconds);
/** Processor time in seconds. */
interface Used {
  readonly own: number;
  readonly ffmpeg: number;
}

const NOTHING: Used = { own: 0, ffmpeg: 0 };
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
const sums = { plain: NOTHING, kept: NOTHING };
// The first run compiles what all run.
await processorTime(true);
for (let turn = 0; turn < Number(values.turns); turn++) {
  sums.plain = added(sums.plain, await processorTime(false));
  sums.kept = added(sums.kept, await processorTime(true));
}
const watched = seconds * Number(values.turns);
const share = (used: number) => `${(used / watched * 100).toFixed(2)} %`;
const { plain, kept } = sums;
console.log(`640x480 at 30 fps, 1.5 Mbit/s and AAC, in real time, load ${Deno.loadavg()[0]!.toFixed(1)}`);
console.log(
  `one core's share: decoding ${share(plain.own + plain.ffmpeg)}, with the ring ${
    share(kept.own + kept.ffmpeg)
  }`,
);
console.log(`the ring: ${share(kept.own + kept.ffmpeg - plain.own - plain.ffmpeg)}`);
console.log(
  `  of ffmpeg ${share(kept.ffmpeg - plain.ffmpeg)}, of this process ${share(kept.own - plain.own)}`,
);

function added(one: Used, other: Used): Used {
  return { own: one.own + other.own, ffmpeg: one.ffmpeg + other.ffmpeg };
}

/** What a session has that is recorded on a cause and may be watched. */
function taps() {
  const counts = new SessionCounts();
  const outbox = new Outbox("sess-1", () => {}, { hasClips: false });
  const clips = new ClipStage({
    ...{ plan: { ...PLAN, bytesMax: keptBytesMax(SIZE, PLAN) }, world, outbox, counts },
  });
  return new UnitTaps([clips, new ViewStage({ outbox, counts, askForKeyframe: null })]);
}

/** Processor time of this process and of the ffmpeg that it has waited for. */
async function processorTime(isKept: boolean): Promise<Used> {
  const tap = taps();
  const before = used();
  const ended = Promise.withResolvers<string>();
  let frames = 0;
  let units = 0;
  const decoder = PulledDecoder.start({
    ...{ runner, world, input: fileInput(camera), isPaced: true, room: freeRoom(SIZE), sourceExtent: SIZE },
    ...(isKept && {
      copy: {
        socketDir: folder.path,
        withSound: true,
        onStreams: ({ video, sound }: Parameters<PacketSink["onStreams"]>[0]) => {
          tap.begin({
            ...{
              codec: "h264",
              codecData: video.codecData,
              hasOtherSound: false,
              reorderDepth: video.reorderDepth,
            },
            sound: { ...sound!, codec: "aac" },
          });
          tap.setOffset(0);
        },
        onUnit: (unit: Parameters<PacketSink["onUnit"]>[0]) => {
          units++;
          tap.push(unit);
        },
        onLost: (reason: string) => {
          throw new Error(reason);
        },
        isUrgent: () => tap.isUrgent,
      },
    }),
    onFrame: () => frames++,
    onEnded: ended.resolve,
  });
  await ended.promise;
  await decoder[Symbol.asyncDispose]();
  if (frames < seconds * 29) throw new Error(`only ${frames} frames`);
  if (isKept && units < seconds * (29 + 40)) throw new Error(`only ${units} units`);
  const after = used();
  return { own: after.own - before.own, ffmpeg: after.ffmpeg - before.ffmpeg };
}

/** User and system time, own and of children that have ended: clock ticks of 10 ms. */
function used(): Used {
  const fields = Deno.readTextFileSync("/proc/self/stat").split(") ")[1]!.split(" ").slice(11, 15).map(
    Number,
  );
  const [user, system, childUser, childSystem] = fields as [number, number, number, number];
  return { own: (user + system) / 100, ffmpeg: (childUser + childSystem) / 100 };
}
