/** Which packets are of the other codec: the first ones behind a change, and none of a stream that does not
 * change.
 */

import assert from "node:assert/strict";
import { join } from "node:path";
import { joinedBytes } from "../../../src/base/bytes.ts";
import { isOfOtherCodec } from "../../../src/live/encoded/other_codec.ts";
import { sequenceSet } from "../../../src/media/containers/parameter_sets.ts";
import { parameterSetsOf } from "../../../src/media/containers/fragments/nal_units.ts";
import { unitsOf } from "../../support/live/copied_units.ts";
import { make, TempFolder } from "../../support/media.ts";

const CODECS = ["h264", "h265"] as const;
type Container = "mpegts" | "mp4";

/** The packets of two seconds as ffmpeg copies them out of the container. */
function stream(folder: TempFolder, codec: typeof CODECS[number], container: Container, params: string) {
  const [kept, copied] = [join(folder.path, `kept.${container}`), join(folder.path, "copied.nut")];
  const library = codec === "h264" ? "x264" : "x265";
  const quiet = codec === "h264" ? params : `log-level=none:${params}`;
  make(
    kept,
    ...["-f", "lavfi", "-i", "testsrc2=s=160x120:r=25:d=2", "-pix_fmt", "yuv420p", "-g", "10"],
    ...["-c:v", `lib${library}`, "-preset", "ultrafast", `-${library}-params`, quiet, "-f", container],
  );
  const { units, streams: [video] } = unitsOf(
    Deno.readFileSync(make(copied, "-i", kept, "-c", "copy", "-f", "nut")),
  );
  return { packets: units.map(({ data }) => data), streams: { codec, codecData: video!.codecData } };
}

for (const [codec, other] of [CODECS, CODECS.toReversed() as unknown as typeof CODECS]) {
  for (const container of ["mpegts", "mp4"] as const) {
    Deno.test(`in a stream of ${codec} out of ${container}, the first packet of ${other} is seen`, () => {
      using folder = new TempFolder();
      const { streams } = stream(folder, codec, container, "bframes=2");
      const { packets } = stream(folder, other, container, "bframes=2");
      assert.equal(isOfOtherCodec(streams, packets[0]!), true);
      assert.equal(packets.filter((data) => isOfOtherCodec(streams, data)).length, 5, "each key frame");
    });
  }

  Deno.test(`in a stream of ${codec}, parameter sets of ${other} without their picture are seen`, () => {
    using folder = new TempFolder();
    const { streams } = stream(folder, codec, "mpegts", "bframes=0");
    const { packets: [first] } = stream(folder, other, "mpegts", "bframes=0");
    const sets = parameterSetsOf(other, first!);
    assert.equal(isOfOtherCodec(streams, sets), true);
    // Sets that cannot be read may be anything.
    const cut = joinedBytes(Uint8Array.of(0, 0, 1), sequenceSet(other, sets)!.subarray(0, 5));
    assert.equal(isOfOtherCodec(streams, cut), false);
    const [own] = stream(folder, codec, "mpegts", "bframes=0").packets;
    assert.equal(
      isOfOtherCodec(streams, joinedBytes(sets, own!)),
      false,
      "it has pictures of the first codec",
    );
  });
}

for (
  const [codec, params] of [
    ["h264", "bframes=3:b-pyramid=normal:open-gop=1"],
    ["h264", "slices=4:aud=1"],
    ["h264", "nal-hrd=cbr:bitrate=400:vbv-maxrate=400:vbv-bufsize=400:filler=1:pic-struct=1"],
    ["h264", "intra-refresh=1:repeat-headers=1"],
    ["h264", "interlaced=1:stitchable=1"],
    ["h265", "bframes=3:open-gop=1:hrd=1:vbv-maxrate=400:vbv-bufsize=400"],
    ["h265", "slices=4:aud=1:hash=1"],
    ["h265", "temporal-layers=3:b-adapt=0:bframes=3:repeat-headers=1"],
    ["h265", "intra-refresh=1:idr-recovery-sei=1"],
  ] as const
) {
  Deno.test(`no packet of a stream of ${codec} with ${params} is taken for one of the other codec`, () => {
    using folder = new TempFolder();
    for (const container of ["mpegts", "mp4"] as const) {
      const { packets, streams } = stream(folder, codec, container, params);
      assert.ok(packets.length >= 50);
      assert.deepEqual(packets.filter((data) => isOfOtherCodec(streams, data)), []);
    }
  });
}

Deno.test("what is no packet of video is of no other codec", () => {
  for (const codec of CODECS) {
    const sized = new Uint8Array(23).fill(255);
    sized[0] = 1;
    for (const codecData of [new Uint8Array(), sized]) {
      for (
        const data of [[], [0], [0, 0, 1], [0, 0, 0, 1], [0, 0, 0, 0, 0], [255, 255, 255, 255, 7], [
          0,
          0,
          0,
          9,
        ]]
      ) {
        assert.equal(isOfOtherCodec({ codec, codecData }, Uint8Array.from(data)), false);
      }
    }
  }
});
