import assert from "node:assert/strict";
import { PLANE_BYTES, PLANE_HEIGHT, PLANE_WIDTH } from "../../../src/media/kernels/frame_planes.ts";
import { PlaneReducer } from "../../../src/media/kernels/plane_reducer.ts";
import { referenceReduce } from "../../support/kernels/reduce_reference.ts";
import { seededRandom } from "../../support/seeded_random.ts";
import { tools } from "../../support/media.ts";

const reducer = await PlaneReducer.load({ width: PLANE_WIDTH, height: PLANE_HEIGHT });

function reduced(plane: Uint8Array, width: number, height: number): Uint8Array {
  const target = new Uint8Array(PLANE_BYTES);
  reducer.reduce(plane, width, { x: 0, y: 0, width, height }, target);
  return target;
}

function noise(bytes: number, seed: number): Uint8Array<ArrayBuffer> {
  const random = seededRandom(seed);
  return Uint8Array.from({ length: bytes }, () => Math.floor(random() * 256));
}

/** The result of ffmpeg's scaler. */
function byFfmpeg(plane: Uint8Array, width: number, height: number): Uint8Array {
  const path = Deno.makeTempFileSync({ prefix: "media-test-" });
  try {
    Deno.writeFileSync(path, plane);
    const { stdout } = new Deno.Command(tools().ffmpeg, {
      args: [
        ...["-v", "error", "-f", "rawvideo", "-pixel_format", "gray", "-video_size", `${width}x${height}`],
        ...[
          "-i",
          path,
          "-vf",
          "scale=320:180:flags=area:in_range=full:out_range=full",
          "-f",
          "rawvideo",
          "-",
        ],
      ],
    }).outputSync();
    return stdout;
  } finally {
    Deno.removeSync(path);
  }
}

const SIZES: readonly [number, number][] = [
  [640, 480],
  [854, 480],
  [1280, 720],
  [1920, 1080],
  [1080, 1920],
  [320, 180],
  [321, 181],
  [176, 144],
  [640, 90],
  [161, 700],
  [2, 2],
  [1, 1],
];

Deno.test("a plane of any size is reduced exactly as the reference implementation does it", () => {
  for (const [index, [width, height]] of SIZES.entries()) {
    const plane = noise(width * height, index + 1);
    assert.deepEqual(
      reduced(plane, width, height),
      referenceReduce(plane, width, height),
      `${width}x${height}`,
    );
  }
});

Deno.test("random sizes agree with the reference implementation", () => {
  const random = seededRandom(77);
  for (let round = 0; round < 20; round++) {
    const [width, height] = [1 + Math.floor(random() * 1500), 1 + Math.floor(random() * 700)];
    const plane = noise(width * height, round + 100);
    assert.deepEqual(
      reduced(plane, width, height),
      referenceReduce(plane, width, height),
      `${width}x${height}`,
    );
  }
});

Deno.test("the result has the size that the reducer was loaded for", async () => {
  const output = { width: 160, height: 90 };
  const small = await PlaneReducer.load(output);
  for (
    const [index, [width, height]] of ([[320, 240], [961, 541], [160, 90], [88, 72], [1, 1]] as const)
      .entries()
  ) {
    const plane = noise(width * height, index + 40);
    const target = new Uint8Array(160 * 90 + 1).fill(7);
    small.reduce(plane, width, { x: 0, y: 0, width, height }, target);
    assert.deepEqual(
      target.subarray(0, 160 * 90),
      referenceReduce(plane, width, height, output),
      `${width}x${height}`,
    );
    assert.equal(target.at(-1), 7);
  }
});

Deno.test("ffmpeg's scaler gives the same samples within one level", () => {
  for (const [width, height] of SIZES.filter(([width, height]) => width > 2 && height > 2)) {
    const plane = noise(width * height, width + height);
    const expected = byFfmpeg(plane, width, height);
    const result = reduced(plane, width, height);
    const worst = result.reduce((most, sample, at) => Math.max(most, Math.abs(sample - expected[at]!)), 0);
    assert.ok(worst <= 1, `${width}x${height}: ${worst} levels`);
  }
});

Deno.test("a plane of one level stays at it, whatever the size", () => {
  for (const level of [0, 1, 16, 127, 235, 255]) {
    for (const [width, height] of SIZES) {
      const result = reduced(new Uint8Array(width * height).fill(level), width, height);
      assert.ok(result.every((sample) => sample === level), `${level} at ${width}x${height}`);
    }
  }
});

Deno.test("a region is reduced like a plane of its own", () => {
  const [width, height] = [1280, 720];
  const plane = noise(width * height, 9);
  const check = (x: number, y: number, w: number, h: number) => {
    const own = new Uint8Array(w * h);
    for (let row = 0; row < h; row++) {
      own.set(plane.subarray((y + row) * width + x, (y + row) * width + x + w), row * w);
    }
    const target = new Uint8Array(PLANE_BYTES);
    reducer.reduce(plane, width, { x, y, width: w, height: h }, target);
    assert.deepEqual(target, referenceReduce(own, w, h), `${w}x${h} at ${x},${y}`);
  };
  check(0, 0, 2, 2);
  check(640, 360, 640, 360);
  check(2, 4, 320, 180);
  check(1278, 718, 2, 2);
  check(100, 0, 900, 720);
});

Deno.test("the largest planes are reduced, in bands", () => {
  const plane = new Uint8Array(3840 * 2160).fill(40);
  plane.fill(200, 3840 * 1080);
  const result = reduced(plane, 3840, 2160);
  assert.ok(result.subarray(0, 320 * 90).every((sample) => sample === 40));
  assert.ok(result.subarray(320 * 90).every((sample) => sample === 200));
  assert.ok(reduced(new Uint8Array(8192 * 1012).fill(3), 8192, 1012).every((sample) => sample === 3));
  assert.ok(reduced(new Uint8Array(1012 * 8192).fill(3), 1012, 8192).every((sample) => sample === 3));
});

Deno.test("a region outside the plane, or too large, is refused", () => {
  const target = new Uint8Array(PLANE_BYTES);
  const plane = new Uint8Array(100 * 50);
  const check = (x: number, y: number, width: number, height: number) =>
    assert.throws(() => reducer.reduce(plane, 100, { x, y, width, height }, target), RangeError);
  check(0, 0, 101, 50);
  check(0, 0, 100, 51);
  check(-2, 0, 10, 10);
  check(0, -2, 10, 10);
  check(0, 0, 0, 10);
  check(0, 0, 10, NaN);
  assert.throws(
    () => reducer.reduce(new Uint8Array(8200 * 2), 8200, { x: 0, y: 0, width: 8200, height: 2 }, target),
    /Cannot reduce a region of 8200x2/,
  );
});
