/** Woven fields of a whole file: the frames that have them are combing, and those of the same file without them are not. */

import { equal, ok } from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { artifactKindOf } from "../../../src/model/frames/detected_range.ts";
import { fileInput } from "../../../src/media/input.ts";
import { make, NEVER, openDecoder, probeOnce, TempFolder } from "../../support/media.ts";

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
