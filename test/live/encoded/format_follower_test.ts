/** What the key frames of a stream are: their size, their parameter sets, and where they become others. */

import assert from "node:assert/strict";
import { join } from "node:path";
import { joinedBytes } from "../../../src/base/bytes.ts";
import { FormatFollower } from "../../../src/live/encoded/format_follower.ts";
import { parameterSetsOf } from "../../../src/media/containers/fragments/nal_units.ts";
import type { CopiedUnit } from "../../../src/media/containers/copied_packets.ts";
import { unitsOf } from "../../support/live/copied_units.ts";
import { make, TempFolder } from "../../support/media.ts";

/** A key frame without parameter sets, and those apart. */
function keyframe(folder: TempFolder, size: string, encoder: readonly string[]) {
  const path = make(
    join(folder.path, `${size}.nut`),
    ...["-f", "lavfi", "-i", `testsrc2=s=${size}:r=25`, "-frames:v", "1", "-pix_fmt", "yuv420p", ...encoder],
    ...["-flags:v", "+global_header"],
  );
  const { units: [unit], streams: [stream] } = unitsOf(Deno.readFileSync(path));
  return { unit: unit!, sets: stream!.codecData };
}

/** What the container says, once for the whole stream. */
const STATED = { width: 1, height: 1 };
const ENCODERS = {
  h264: ["-c:v", "libx264", "-preset", "ultrafast"],
  h265: ["-c:v", "libx265", "-preset", "ultrafast", "-x265-params", "log-level=none"],
} as const;

for (const codec of ["h264", "h265"] as const) {
  Deno.test(`a key frame of ${codec} without parameter sets has those that came last, and the size that they state`, () => {
    using folder = new TempFolder();
    const [small, large] = ["64x48", "98x50"].map((extent) => keyframe(folder, extent, ENCODERS[codec]));
    const follower = new FormatFollower();
    const follow = (unit: CopiedUnit) => {
      const { unit: { size, data }, isOther } = follower.follow({ ...unit, size: unit.size && STATED });
      return { size: `${size?.width}x${size?.height}`, sets: parameterSetsOf(codec, data), isOther };
    };
    const none = new Uint8Array();
    follower.begin({ codec, codecData: small!.sets });
    assert.deepEqual(follow(small!.unit), { size: "64x48", sets: none, isOther: false }, "they stand beside");
    const withSets = { ...large!.unit, data: joinedBytes(large!.sets, large!.unit.data) };
    const sets = parameterSetsOf(codec, large!.sets);
    assert.deepEqual(follow(withSets), { size: "98x50", sets, isOther: true });
    assert.deepEqual(follow(large!.unit), { size: "98x50", sets, isOther: false }, "the last ones that came");
    assert.deepEqual(follow({ ...withSets, isKeyframe: false, size: null }).isOther, false);
    follower.begin({ codec, codecData: small!.sets });
    assert.deepEqual(follow(small!.unit), { size: "64x48", sets: none, isOther: false }, "another stream");
  });
}
