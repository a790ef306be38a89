/** Pulled sources whose pictures change their size in the stream: each frame has its own size, and knows that
 * of its picture.
 */

import { freeRoom } from "../../support/live/free_room.ts";
import assert from "node:assert/strict";
import { join } from "node:path";
import { joinedBytes } from "../../../src/base/bytes.ts";
import { fileInput } from "../../../src/media/input.ts";
import { PulledDecoder } from "../../../src/media/live/pulled_decoder.ts";
import type { Extent } from "../../../src/model/frames/coordinates.ts";
import { localRunner } from "../../support/local_runner.ts";
import { TOOLS, WORLD } from "../../support/live/live_workers.ts";
import { make, TempFolder } from "../../support/media.ts";

const H264 = ["-c:v", "libx264", "-preset", "ultrafast", "-bf", "0", "-pix_fmt", "yuv420p", "-f", "h264"];
const MJPEG = ["-c:v", "mjpeg", "-pix_fmt", "yuvj420p", "-f", "mjpeg"];
const FRAMES = 10;

/** Ten pictures of each size, one after the other. Each has the brightness of its part. */
function changing(folder: TempFolder, encoder: readonly string[], sizes: readonly string[]): string {
  const parts = sizes.map((size, at) =>
    Deno.readFileSync(make(
      join(folder.path, `part-${at}`),
      ...[
        "-f",
        "lavfi",
        "-i",
        `color=c=0x${String(3 + 2 * at).repeat(6)}:s=${size}:r=25`,
        "-frames:v",
        String(FRAMES),
      ],
      ...encoder,
    ))
  );
  const joined = folder.file("joined", joinedBytes(...parts));
  const input = ["-r", "25", "-f", encoder.at(-1)!, "-i", joined];
  return make(join(folder.path, "joined.mkv"), ...input, "-c", "copy");
}

interface Seen {
  readonly frame: string;
  readonly source: string;
  readonly brightness: number;
}

async function decoded(path: string, maxFrame: Extent, ffmpeg = TOOLS.ffmpeg): Promise<Seen[]> {
  const ended = Promise.withResolvers<string>();
  const seen: Seen[] = [];
  await using _decoder = PulledDecoder.start({
    runner: localRunner({ ...TOOLS, ffmpeg }),
    world: WORLD,
    input: fileInput(path),
    room: freeRoom(maxFrame),
    onFrame: ({ pixels }) => {
      const { width, height, bytes } = pixels;
      const luma = bytes.subarray(0, width * height);
      seen.push({
        frame: textOf(pixels),
        source: textOf(pixels.sourceExtent),
        brightness: luma.every((value) => Math.abs(value - luma[0]!) < 8) ? luma[0]! : NaN,
      });
    },
    onEnded: ended.resolve,
  });
  assert.equal(await ended.promise, "it has ended");
  return seen;
}

function textOf({ width, height }: Extent): string {
  return `${width}x${height}`;
}

for (const [name, encoder] of [["H.264", H264], ["JPEGs", MJPEG]] as const) {
  for (
    const [what, sizes, maxFrame, frames] of [
      ["smaller and back", ["240x180", "128x144", "240x180"], "240x180", ["240x180", "128x144", "240x180"]],
      ["larger", ["64x48", "160x120"], "160x120", ["64x48", "160x120"]],
      ["larger than there is room for", ["160x120", "320x240", "96x160"], "160x120", [
        "160x120",
        "160x120",
        "96x160",
      ]],
      ["upright", ["160x96", "96x160"], "160x96", ["160x96", "96x160"]],
    ] as const
  ) {
    Deno.test(`${name} that become ${what}: frames of each size, from the first one on`, async () => {
      using folder = new TempFolder();
      const [width, height] = maxFrame.split("x").map(Number) as [number, number];
      const seen = await decoded(changing(folder, encoder, sizes), { width, height });
      const parts = sizes.flatMap((source, at) => new Array(FRAMES).fill({ source, frame: frames[at] }));
      assert.deepEqual(seen.map(({ source, frame }) => ({ source, frame })), parts);
      // No frame is read with the lines of another size.
      for (let at = 0; at < seen.length; at += FRAMES) {
        const levels = new Set(
          seen.slice(at, at + FRAMES).map(({ brightness }) => Math.round(brightness / 4)),
        );
        assert.ok(levels.size <= 2 && !levels.has(NaN), [...levels].join());
      }
    });
  }
}

Deno.test("pictures of one time that change their size have each its own", async () => {
  using folder = new TempFolder();
  const sizes = ["96x64", "64x48", "128x96"];
  const film = changing(folder, MJPEG, sizes);
  // Four of each time, as cameras send them whose clock is coarse.
  const coarse = ["-i", film, "-c", "copy", "-bsf:v", "setts=ts=floor(N/4)*160"];
  const seen = await decoded(make(join(folder.path, "coarse.mkv"), ...coarse), { width: 128, height: 96 });
  assert.deepEqual(seen.map(({ frame }) => frame), sizes.flatMap((size) => new Array(FRAMES).fill(size)));
});

Deno.test("pictures change their size behind more words of ffmpeg than are kept", async () => {
  using folder = new TempFolder();
  const sizes = ["96x64", "64x48", "128x96"];
  const film = changing(folder, MJPEG, sizes);
  const word = "[mjpeg @ 0x1] [warning] one of many words that ffmpeg may have for a camera\n";
  const words = folder.file("words", new TextEncoder().encode(word.repeat(1000)));
  const ffmpeg = folder.script(
    "ffmpeg",
    `{ ${TOOLS.ffmpeg} "$@" 2>&1 >&3 3>&- | sed -u -e '0,/rawvideo/{/rawvideo/r ${words}' -e '}' >&2; } 3>&1`,
  );
  const seen = await decoded(film, { width: 128, height: 96 }, ffmpeg);
  assert.deepEqual(seen.map(({ frame }) => frame), sizes.flatMap((size) => new Array(FRAMES).fill(size)));
});
