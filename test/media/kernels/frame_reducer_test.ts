import assert from "node:assert/strict";
import type { Region } from "../../../src/model/frames/coordinates.ts";
import { FRAME_BYTES, PLANE_BYTES } from "../../../src/media/kernels/frame_planes.ts";
import { FrameReducer } from "../../../src/media/kernels/frame_reducer.ts";
import { lineStep, reductionFilters } from "../../../src/media/kernels/taken_lines.ts";
import { referenceReduce } from "../../support/kernels/reduce_reference.ts";
import { seededRandom } from "../../support/seeded_random.ts";
import { TempFolder, tools } from "../../support/media.ts";

const reducer = await FrameReducer.load();
const CHROMA = { width: 160, height: 90 };

function picture(width: number, height: number, seed: number): Uint8Array<ArrayBuffer> {
  const random = seededRandom(seed);
  const bytes = width * height + 2 * Math.ceil(width / 2) * Math.ceil(height / 2);
  return Uint8Array.from({ length: bytes }, () => Math.floor(random() * 256));
}

function reduced(bytes: Uint8Array, width: number, height: number, region: Region): Uint8Array {
  const target = new Uint8Array(FRAME_BYTES);
  reducer.reduce(bytes, { width, height }, region, target);
  return target;
}

const whole = (width: number, height: number): Region => ({ x: 0, y: 0, width, height });

Deno.test("all three planes of a picture are reduced exactly as the reference implementation does it", () => {
  for (
    const [width, height] of [[640, 480], [641, 481], [1279, 539], [320, 180], [160, 120], [3, 3]] as const
  ) {
    const bytes = picture(width, height, width);
    const [half, lines] = [Math.ceil(width / 2), Math.ceil(height / 2)];
    const u = bytes.subarray(width * height, width * height + half * lines);
    const v = bytes.subarray(width * height + half * lines);
    const result = reduced(bytes, width, height, whole(width, height));
    assert.deepEqual(result.subarray(0, PLANE_BYTES), referenceReduce(bytes, width, height), "luma");
    assert.deepEqual(
      result.subarray(PLANE_BYTES, PLANE_BYTES + 14_400),
      referenceReduce(u, half, lines, CHROMA),
      "U",
    );
    assert.deepEqual(result.subarray(PLANE_BYTES + 14_400), referenceReduce(v, half, lines, CHROMA), "V");
  }
});

Deno.test("a region that changes, and one at odd positions, is what ffmpeg crops and scales, within one level", () => {
  using folder = new TempFolder();
  const [width, height] = [643, 481];
  const bytes = picture(width, height, 5);
  const path = folder.file("picture.yuv", bytes);
  const check = (region: Region) => {
    const { x, y, width: w, height: h } = region;
    const filters = `crop=${w}:${h}:${x}:${y}:exact=1,scale=320:180:flags=area:in_range=full:out_range=full`;
    const { stdout } = new Deno.Command(tools().ffmpeg, {
      args: [
        ...["-v", "error", "-f", "rawvideo", "-pixel_format", "yuv420p", "-video_size", `${width}x${height}`],
        ...["-i", path, "-vf", `${filters},format=yuv420p`, "-f", "rawvideo", "-"],
      ],
    }).outputSync();
    assert.equal(stdout.length, FRAME_BYTES);
    const worst = reduced(bytes, width, height, region)
      .reduce((most, sample, at) => Math.max(most, Math.abs(sample - stdout[at]!)), 0);
    assert.ok(worst <= 1, `${w}x${h} at ${x},${y}: ${worst} levels`);
  };
  check(whole(width, height));
  check({ x: 101, y: 53, width: 333, height: 201 });
  check({ x: 102, y: 53, width: 333, height: 202 });
  check({ x: 1, y: 1, width: 642, height: 480 });
  check({ x: 301, y: 201, width: 90, height: 60 });
  check(whole(width, height));
});

Deno.test("of a high picture each reduced line is the mean of one and a half lines or more, the same that ffmpeg takes", () => {
  assert.deepEqual([180, 539, 540, 720, 1079, 1080, 2160, 4320].map(lineStep), [1, 1, 2, 2, 2, 4, 8, 16]);
  using folder = new TempFolder();
  for (const [width, height] of [[640, 541], [1920, 1080], [641, 1083], [322, 2161], [64, 4403]] as const) {
    const bytes = picture(width, height, height);
    const path = folder.file(`${height}.yuv`, bytes);
    for (const region of [whole(width, height), { x: 3, y: 1, width: width - 4, height: height - 2 }]) {
      const crop = `crop=${region.width}:${region.height}:${region.x}:${region.y}:exact=1`;
      const { stdout } = new Deno.Command(tools().ffmpeg, {
        args: [
          ...["-v", "error", "-f", "rawvideo", "-pixel_format", "yuv420p", "-video_size"],
          ...[`${width}x${height}`, "-i", path, "-f", "rawvideo"],
          ...["-vf", [crop, ...reductionFilters(region.height), "format=yuv420p"].join(","), "-"],
        ],
      }).outputSync();
      assert.equal(stdout.length, FRAME_BYTES);
      const worst = reduced(bytes, width, height, region)
        .reduce((most, sample, at) => Math.max(most, Math.abs(sample - stdout[at]!)), 0);
      assert.ok(worst <= 1, `${region.width}x${region.height} of ${width}x${height}: ${worst} levels`);
    }
    // Lines that are not taken do not count.
    const step = lineStep(height);
    const changed = bytes.map((sample, at) =>
      at < width * height && Math.floor(at / width) % step > 0 ? 0 : sample
    );
    assert.deepEqual(
      reduced(changed, width, height, whole(width, height)),
      reduced(bytes, width, height, whole(width, height)),
    );
  }
});

Deno.test("a region outside the picture is refused", () => {
  const bytes = picture(100, 50, 1);
  for (const region of [{ x: 1, y: 0, width: 100, height: 50 }, { x: 0, y: -2, width: 10, height: 10 }]) {
    assert.throws(() => reduced(bytes, 100, 50, region), RangeError);
  }
});
