/** Woven fields of a whole file: the frames that have them are combing, and those of the same file without
 * them are not.
 */

import { equal, ok } from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { artifactKindOf } from "../../../src/model/frames/detected_range.ts";
import { fileInput } from "../../../src/media/input.ts";
import { frameTimesMs, make, NEVER, openDecoder, probeOnce, TempFolder } from "../../support/media.ts";

const FILM = fileURLToPath(new URL("../../../fixtures/clips/bbb120.mp4", import.meta.url));
const WHOLE = { x: 0, y: 0, width: 1, height: 1 };
const LOWER_RIGHT = { x: 0.4, y: 0.3, width: 0.6, height: 0.7 };

Deno.test("woven fields of a file are combing, also in a part of the picture, and its plain frames are not", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  const combed = async (name: string, filter: string, region = WHOLE) => {
    const path = join(folder.path, name);
    const filters = `scale=640:360,setsar=1,${filter}`;
    make(path, ...[
      "-ss",
      "1",
      "-t",
      "8",
      "-i",
      FILM,
      "-an",
      "-vf",
      filters,
      "-c:v",
      "libx264",
      "-crf",
      "20",
    ]);
    const info = await probeOnce(decoder, path);
    const { signals } = await decoder.decodeSignals({
      plan: { policy: "source_fps_adaptive" as const, sampleFps: 60, sourceFps: 60 },
      ...{ input: fileInput(path), info, maxFrames: 1000, signal: NEVER },
      crop: region,
    });
    ok(signals.count > 90, `${signals.count}`);
    return [...signals.artifactKind!].filter((kind) => artifactKindOf(kind) === "combing").length;
  };
  for (const region of [WHOLE, LOWER_RIGHT]) {
    const woven = await combed("woven.mp4", "tinterlace=interleave_top,setfield=prog", region);
    ok(woven > 15, `${woven}`);
    equal(await combed("plain.mp4", "tinterlace=drop_odd", region), 0);
  }
});

/**
 * The fields of a film with 50 pictures a second, woven into 25 frames that say so, and what declares them.
 */
const DECLARED = {
  "mpeg2.ts": {
    order: "tt",
    encoder: ["-c:v", "mpeg2video", "-flags", "+ilme+ildct", "-top", "1", "-b:v", "6M", "-bf", "2"],
  },
  "h264.mp4": { order: "tt", encoder: ["-c:v", "libx264", "-preset", "ultrafast", "-x264-params", "tff=1"] },
  // Only the frames themselves say it.
  "mpeg4.avi": { order: null, encoder: ["-c:v", "mpeg4", "-q:v", "3", "-flags", "+ilme+ildct", "-top", "1"] },
  "mpeg4.mp4": { order: null, encoder: ["-c:v", "mpeg4", "-q:v", "3", "-flags", "+ilme+ildct", "-top", "1"] },
  // Matroska says it in another way: the bottom field is shown first.
  "h264.mkv": { order: "bt", encoder: ["-c:v", "libx264", "-preset", "ultrafast", "-x264-params", "bff=1"] },
} as const;

for (const [name, { order, encoder }] of Object.entries(DECLARED)) {
  Deno.test(`declared fields are no fault, and no frame is lost: ${name}`, async () => {
    using folder = new TempFolder();
    await using decoder = await openDecoder(folder);
    const path = join(folder.path, name);
    const weave = order !== "bt" ? "interleave_top,fieldorder=tff" : "interleave_bottom,fieldorder=bff";
    make(path, ...[
      ...["-f", "lavfi", "-i", "testsrc2=s=720x576:r=50:d=2,scroll=h=0.004,format=yuv420p"],
      ...["-vf", `tinterlace=${weave}`, ...encoder, "-r", "25"],
    ]);
    const info = await probeOnce(decoder, path);
    equal(info.video!.fieldOrder ?? null, order);
    const { signals, fieldOrder } = await decoder.decodeSignals({
      plan: { policy: "source_fps_adaptive" as const, sampleFps: 60, sourceFps: 60 },
      ...{ input: fileInput(path), info, maxFrames: 1000, signal: NEVER },
    });
    equal(fieldOrder ?? null, order);
    equal([...signals.artifactKind!].filter((kind) => kind !== 0).length, 0);
    const times = frameTimesMs(path, info.video!.streamIndex);
    equal(signals.count, times.length);
    times.forEach((ms, row) => {
      const expected = ms - times[0]!;
      ok(
        Math.abs(signals.ptsMs[row]! - signals.ptsMs[0]! - expected) < 0.1,
        `frame ${row} is at ${expected}`,
      );
    });
  });
}

Deno.test("a single frame with fields is a frame", async () => {
  using folder = new TempFolder();
  await using decoder = await openDecoder(folder);
  const path = join(folder.path, "one.ts");
  const { encoder } = DECLARED["mpeg2.ts"];
  make(path, "-f", "lavfi", "-i", "testsrc2=s=720x576:r=25:d=0.04", ...encoder);
  const info = await probeOnce(decoder, path);
  const { signals } = await decoder.decodeSignals({
    plan: { policy: "source_fps_adaptive" as const, sampleFps: 60, sourceFps: 60 },
    ...{ input: fileInput(path), info, maxFrames: 10, signal: NEVER },
  });
  equal(signals.count, 1);
});
