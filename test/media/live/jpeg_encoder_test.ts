import { localRunner } from "../../support/local_runner.ts";
import assert from "node:assert/strict";
import {
  JpegEncoderPool,
  type JpegEncoderPoolOptions,
  JpegFailed,
} from "../../../src/media/live/jpeg_encoder.ts";
import type { FramePixels } from "../../../src/media/live/frame_ring.ts";
import { seededRandom } from "../../support/seeded_random.ts";
import { children, fastWorld, framePixels, stream } from "../../support/live/live_units.ts";
import { TempFolder, tools, world } from "../../support/media.ts";
import { until } from "../../support/until.ts";

function encoders(options: Partial<JpegEncoderPoolOptions> = {}): JpegEncoderPool {
  return new JpegEncoderPool({ runner: localRunner(tools()), world: world(), ...options });
}

/** The full-range pixels of a JPEG, and its size. */
function decoded(jpeg: Uint8Array): { width: number; height: number; bytes: Uint8Array } {
  const path = Deno.makeTempFileSync({ prefix: "media-test-", suffix: ".jpg" });
  try {
    Deno.writeFileSync(path, jpeg);
    const probe = new Deno.Command(tools().ffprobe, {
      args: ["-v", "error", "-show_entries", "stream=width,height,pix_fmt", "-of", "csv=p=0", path],
    }).outputSync();
    const [width, height, format] = new TextDecoder().decode(probe.stdout).trim().split(",");
    assert.equal(format, "yuvj420p");
    const { stdout } = new Deno.Command(tools().ffmpeg, {
      args: ["-v", "error", "-i", path, "-f", "rawvideo", "-pix_fmt", "yuvj420p", "-"],
    }).outputSync();
    return { width: Number(width), height: Number(height), bytes: stdout };
  } finally {
    Deno.removeSync(path);
  }
}

function meanError(one: Uint8Array, other: Uint8Array): number {
  assert.equal(one.length, other.length);
  return one.reduce((sum, sample, at) => sum + Math.abs(sample - other[at]!), 0) / one.length;
}

const whole = ({ width, height }: FramePixels) => ({ x: 0, y: 0, width, height });

/** Converts limited range to full range. */
const stretched = (luma: number) => Math.min(255, Math.max(0, (luma - 16) * 255 / 219));

Deno.test("a JPEG shows the frame, in full range", async () => {
  const made = stream("vp8", { frames: 3, width: 320, height: 240 });
  await using jpegs = encoders();
  for (const isFullRange of [false, true]) {
    for (const bytes of made.decodedFrames) {
      const sourceExtent = { width: 320, height: 240 };
      const one = { ...sourceExtent, sourceExtent, isFullRange, isAvailable: true, bytes: bytes.slice() };
      const jpeg = await jpegs.encode(one, whole(one));
      assert.deepEqual([...jpeg!.subarray(0, 3)], [0xff, 0xd8, 0xff]);
      const shown = decoded(jpeg!);
      assert.deepEqual([shown.width, shown.height], [320, 240]);
      const luma = bytes.subarray(0, 320 * 240);
      const expected = isFullRange ? luma : Uint8Array.from(luma, stretched);
      assert.ok(meanError(shown.bytes.subarray(0, 320 * 240), expected) < 2.5);
    }
  }
});

Deno.test("a region is cut out exactly, including chroma, also of frames with odd edges", async () => {
  await using jpegs = encoders();
  for (const [width, height] of [[96, 64], [97, 65]] as const) {
    const inside = { x: 32, y: 16, width: 48, height: 32 };
    const isInside = (x: number, y: number) => x >= 32 && x < 80 && y >= 16 && y < 48;
    const one = framePixels({ width, height }, (x, y) => isInside(x, y) ? 200 : 20, { isFullRange: true });
    const chroma = Math.ceil(width / 2);
    one.bytes.fill(30, width * height);
    for (const plane of [0, 1]) {
      const start = width * height + plane * chroma * Math.ceil(height / 2);
      for (let y = 8; y < 24; y++) one.bytes.fill(160, start + y * chroma + 16, start + y * chroma + 40);
    }
    const { bytes, ...size } = decoded((await jpegs.encode(one, inside))!);
    assert.deepEqual(size, { width: 48, height: 32 });
    assert.ok(bytes.subarray(0, 48 * 32).every((sample) => Math.abs(sample - 200) <= 2));
    assert.ok(bytes.subarray(48 * 32).every((sample) => Math.abs(sample - 160) <= 2));
  }
});

Deno.test("small frames have JPEGs; the smallest, and JPEGs above 2 MiB, are refused", async () => {
  await using jpegs = encoders();
  for (const [width, height] of [[2, 4], [4, 2], [4, 4]] as const) {
    const small = framePixels({ width, height }, () => 100);
    assert.ok((await jpegs.encode(small, whole(small)))!.length > 100, `${width}x${height}`);
  }
  const smaller = framePixels({ width: 2, height: 2 }, () => 100);
  await assert.rejects(jpegs.encode(smaller, whole(smaller)), /2x2 pixels cannot be encoded/);
  const random = seededRandom(3);
  const large = framePixels({ width: 2560, height: 1440 }, () => random() * 255, { isFullRange: true });
  assert.equal(await jpegs.encode(large, whole(large)), null);
  assert.ok((await jpegs.encode(large, { x: 0, y: 0, width: 320, height: 180 }))!.length > 10_000);
});

Deno.test("pixels are copied at once, so later changes of the frame have no effect", async () => {
  await using jpegs = encoders();
  const one = framePixels({ width: 64, height: 64 }, () => 200, { isFullRange: true });
  const making = jpegs.encode(one, whole(one));
  one.bytes.fill(0);
  const { bytes } = decoded((await making)!);
  assert.ok(bytes.subarray(0, 64 * 64).every((sample) => Math.abs(sample - 200) <= 2));
});

Deno.test("concurrent calls get their own JPEGs, with few programs", async () => {
  // Four programs start one after another, which takes more than the deadline of two seconds on a busy
  // machine.
  await using jpegs = encoders({ maxEncoders: 2, world: fastWorld(1 / 20) });
  const sizes = [32, 64, 96, 32, 64, 128];
  const made = await Promise.all(sizes.map((size, at) => {
    const one = framePixels({ width: size, height: 32 }, () => at * 40, { isFullRange: true });
    return jpegs.encode(one, whole(one)).then((jpeg) => decoded(jpeg!));
  }));
  assert.deepEqual(made.map(({ width }) => width), sizes);
  for (const [at, { bytes }] of made.entries()) assert.ok(Math.abs(bytes[0]! - at * 40) <= 2);
  assert.ok(children().length <= 2);
});

Deno.test("an encoder is reused, can be started in advance, and is replaced when it was killed", async () => {
  await using jpegs = encoders();
  const one = framePixels({ width: 64, height: 64 }, () => 90);
  jpegs.prepare(one);
  jpegs.prepare(one);
  const [pid] = children();
  assert.ok((await jpegs.encode(one, whole(one)))!.length > 0);
  assert.ok((await jpegs.encode(one, whole(one)))!.length > 0);
  assert.deepEqual(children(), [pid]);
  Deno.kill(pid!, "SIGKILL");
  assert.ok((await jpegs.encode(one, whole(one)))!.length > 0);
  assert.notDeepEqual(children(), [pid]);
});

Deno.test("an encoder that is not used ends", async () => {
  await using jpegs = encoders({ world: fastWorld(300) });
  jpegs.prepare({ width: 64, height: 64 });
  assert.equal(children().length, 1);
  await until(() => children().length === 0);
});

Deno.test("without a JPEG there is an error in time, and the number of waiting frames is bounded", async () => {
  using folder = new TempFolder();
  const one = framePixels({ width: 64, height: 64 }, () => 90);
  const check = async (ffmpeg: string, expected: RegExp, speed: number) => {
    await using jpegs = encoders({
      runner: localRunner({ ...tools(), ffmpeg, prlimit: null }),
      world: fastWorld(speed),
    });
    const all = await Promise.allSettled(Array.from({ length: 20 }, () => jpegs.encode(one, whole(one))));
    for (const [at, result] of all.entries()) {
      assert.equal(result.status, "rejected");
      const { reason } = result as PromiseRejectedResult;
      assert.ok(reason instanceof JpegFailed);
      assert.match(reason.message, at < 16 ? expected : /16 frames are waiting/);
    }
  };
  await check(folder.script("hangs", "exec cat > /dev/null"), /too long|has ended/, 20);
  // These fail by themselves, however long that takes on a busy machine.
  await check(folder.script("ends", "exit 1"), /has ended/, 1);
  await check(folder.script("talks", "echo this is no NUT file; exec sleep 60"), /has ended/, 1);
  assert.deepEqual(children(), []);
});

Deno.test("an encoder that needs longer to start than a frame may wait is not started again and again", async () => {
  using folder = new TempFolder();
  const starts = `${folder.path}/starts`;
  const ffmpeg = folder.script("slow", `echo >> ${starts}; sleep 2.5; exec ${tools().ffmpeg} "$@"`);
  await using jpegs = encoders({ runner: localRunner({ ...tools(), ffmpeg, prlimit: null }) });
  const one = framePixels({ width: 64, height: 64 }, () => 90);
  const [first, second] = [framePixels(one, () => 30), framePixels(one, () => 200)];
  await assert.rejects(jpegs.encode(first, whole(first)), /too long/);
  const { bytes } = decoded((await jpegs.encode(second, whole(second)))!);
  assert.ok(Math.abs(bytes[0]! - stretched(200)) <= 2, "the JPEG is that of another frame");
  assert.equal(Deno.readTextFileSync(starts).length, 1);
});

Deno.test("closing ends everything, and waiting calls reject", async () => {
  const jpegs = encoders();
  const one = framePixels({ width: 640, height: 480 }, (x) => x);
  const making = jpegs.encode(one, whole(one));
  const closed = jpegs[Symbol.asyncDispose]();
  await assert.rejects(making, JpegFailed);
  await closed;
  await assert.rejects(jpegs.encode(one, whole(one)), /are closed/);
  jpegs.prepare(one);
  assert.deepEqual(children(), []);
});
