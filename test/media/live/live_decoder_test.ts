import { localRunner } from "../../support/local_runner.ts";
import { freeRoom } from "../../support/live/free_room.ts";
import assert from "node:assert/strict";
import { fileInput } from "../../../src/media/input.ts";
import {
  type DecodedFrame,
  type LiveDecoderOptions,
  liveMemoryBytes,
  RING_FRAMES,
} from "../../../src/media/live/live_decoder.ts";
import { PulledDecoder } from "../../../src/media/live/pulled_decoder.ts";
import type { VideoCodec } from "../../../src/model/live/offer.ts";
import { seededRandom } from "../../support/seeded_random.ts";
import { children, fastWorld, stream, TestDecoder, type TestUnit } from "../../support/live/live_units.ts";
import { frameTimesMs, makeClip, TempFolder, tools, world } from "../../support/media.ts";
import { until } from "../../support/until.ts";

const vp8 = stream("vp8", { frames: 40 });

/** Unwrapped RTP times far from 0 with different distances. */
function irregularTimes(count: number): number[] {
  const random = seededRandom(count);
  let time = 2 ** 33 + 12_345;
  return Array.from({ length: count }, () => time += 1 + Math.floor(random() * 9000));
}

function garbage(bytes: number, seed: number): Uint8Array<ArrayBuffer> {
  const random = seededRandom(seed);
  return Uint8Array.from({ length: bytes }, () => Math.floor(random() * 256));
}

for (const codec of ["vp8", "h264", "h265", "vp9", "av1"] as const satisfies readonly VideoCodec[]) {
  Deno.test(`${codec}: each unit gives its frame, with exactly its time`, async () => {
    const { units, decodedFrames } = codec === "vp8"
      ? vp8
      : stream(codec, { frames: codec === "av1" ? 10 : 30 });
    assert.equal(decodedFrames.length, units.length);
    const times = irregularTimes(units.length);
    await using test = new TestDecoder(codec);
    for (const [at, unit] of units.entries()) test.push(unit, times[at]!);
    await until(() => test.frames.length === units.length);
    assert.deepEqual(test.frames.map((frame) => frame.rtpTimestamp), times);
    assert.deepEqual(test.frames.map((frame) => frame.frameIndex), units.map((_, at) => at));
    assert.deepEqual(test.frames.map((frame) => frame.ptsMs), times.map((time) => Math.round(time / 90)));
    assert.deepEqual(test.frames.map((frame) => frame.arrivedMs), times.map((time) => time + 1));
    for (const [at, { bytes }] of test.frames.entries()) {
      assert.deepEqual(bytes, decodedFrames[at], `frame ${at}`);
    }
    assert.deepEqual(test.events, []);
    assert.deepEqual(test.decoder.counts, {
      received: units.length,
      decoded: units.length,
      dropped: 0,
      restarts: 0,
    });
  });
}

Deno.test("a unit gives its frame before the next unit comes", async () => {
  await using test = new TestDecoder("vp8");
  for (const [at, unit] of vp8.units.slice(0, 12).entries()) {
    test.push(unit, at * 3000);
    await until(() => test.frames.length === at + 1);
  }
});

Deno.test("a change of size in the header of a keyframe gives frames of exactly that size", async () => {
  const large = stream("vp8", { frames: 10, width: 240, height: 180 });
  const sizes: [number, number][] = [];
  await using test = new TestDecoder("vp8", {
    onFrame: ({ pixels: { width, height, bytes } }) => {
      assert.equal(bytes.length, width * height * 1.5);
      sizes.push([width, height]);
    },
  });
  const all = [...vp8.units.slice(0, 10), ...large.units, ...vp8.units.slice(10, 20)];
  for (const [at, unit] of all.entries()) {
    test.push(unit, at * 3000);
    // what waits for a start of over two seconds is dropped
    if (at === 0) await until(() => sizes.length === 1);
  }
  await until(() => sizes.length === 30);
  assert.deepEqual(sizes, [
    ...Array(10).fill([160, 120]),
    ...Array(10).fill([240, 180]),
    ...Array(10).fill([160, 120]),
  ]);
  assert.deepEqual(test.events, [], "this is no restart");
});

Deno.test("frames that are owed when the size changes come, however late they are decoded", async () => {
  const large = stream("vp8", { frames: 7, width: 240, height: 180 });
  await using test = new TestDecoder("vp8");
  test.push(vp8.units[0]!, 0);
  await until(() => test.frames.length === 1);
  const [pid] = children();
  Deno.kill(pid!, "SIGSTOP");
  for (const [at, unit] of [...vp8.units.slice(1, 7), ...large.units].entries()) {
    test.push(unit, (at + 1) * 3000);
  }
  await new Promise((resolve) => setTimeout(resolve, 800));
  Deno.kill(pid!, "SIGCONT");
  await until(() => test.frames.length === 14);
  assert.deepEqual(
    test.frames.map(({ frameIndex }) => frameIndex),
    Array.from({ length: 14 }, (_, at) => at),
  );
});

Deno.test("after a change of size that no header has, frames have the new size", async () => {
  const large = stream("vp8", { frames: 10, width: 240, height: 180 });
  await using test = new TestDecoder("vp8");
  const all = [...vp8.units.slice(0, 10), ...large.units];
  for (const [at, { data, isKeyframe }] of all.entries()) test.push({ data, isKeyframe }, at * 3000);
  await until(() => test.frames.length === 20);
  const sizes = test.frames.map(({ width, height }) => `${width}x${height}`);
  assert.deepEqual(sizes, [...Array(10).fill("160x120"), ...Array(10).fill("240x180")]);
});

Deno.test("frames of more pixels than were reserved are scaled down, keeping their shape; others do not change", async () => {
  const check = async (maxFrame: { width: number; height: number }, expected: [number, number]) => {
    await using test = new TestDecoder("vp8", { room: freeRoom(maxFrame) });
    test.push(vp8.units[0]!, 0);
    await until(() => test.frames.length === 1);
    assert.deepEqual([test.frames[0]!.width, test.frames[0]!.height], expected);
    assert.deepEqual(test.frames[0]!.sourceExtent, { width: 160, height: 120 });
  };
  await check({ width: 160, height: 120 }, [160, 120]);
  await check({ width: 120, height: 160 }, [160, 120]);
  await check({ width: 80, height: 60 }, [80, 60]);
  await check({ width: 100, height: 100 }, [114, 86]);
  await check({ width: 2, height: 2 }, [2, 2]);
});

for (const codec of ["vp8", "h264", "vp9", "h265", "av1"] as const) {
  Deno.test(`a frame of ${codec} that was scaled down knows the size that was decoded`, async () => {
    const { units } = stream(codec, { frames: 10, width: 322, height: 182 });
    await using test = new TestDecoder(codec, { room: freeRoom({ width: 160, height: 90 }) });
    for (const [at, { data, isKeyframe }] of units.entries()) test.push({ data, isKeyframe }, at * 3000);
    await until(() => test.frames.length > 0);
    const { width, height, sourceExtent } = test.frames[0]!;
    assert.deepEqual([width, height], [158, 90]);
    assert.deepEqual(sourceExtent, { width: 322, height: 182 });
  });
}

Deno.test("samples stay as they are, and frames of full range are marked", async () => {
  const check = async (codec: VideoCodec, isFull: boolean) => {
    const range = isFull ? "pc" : "tv";
    const made = stream(codec, {
      frames: 3,
      filter: `scale=out_range=${range}`,
      args: ["-color_range", range, "-pix_fmt", isFull ? "yuvj420p" : "yuv420p"],
    });
    await using test = new TestDecoder(codec);
    for (const [at, unit] of made.units.entries()) test.push(unit, at * 3000);
    await until(() => test.frames.length === 3);
    assert.deepEqual(test.frames.map((frame) => frame.isFullRange), [isFull, isFull, isFull], codec);
    for (const [at, { bytes }] of test.frames.entries()) assert.deepEqual(bytes, made.decodedFrames[at]);
  };
  await check("h264", true);
  await check("h264", false);
  await check("vp9", true);
});

Deno.test("nothing is decoded before the first keyframe", async () => {
  await using test = new TestDecoder("vp8");
  for (const [at, unit] of vp8.units.slice(1, 20).entries()) test.push(unit, at * 3000);
  await until(() => test.frames.length === 10);
  assert.deepEqual(test.frames.map((frame) => frame.frameIndex), [9, 10, 11, 12, 13, 14, 15, 16, 17, 18]);
  assert.equal(test.decoder.counts.dropped, 9);
});

Deno.test("without a keyframe one is requested repeatedly, as long as units come", async () => {
  await using test = new TestDecoder("vp8", { world: fastWorld(100) });
  await until(() => {
    test.push(vp8.units[1]!, 0);
    return test.events.filter((event) => event === "keyframe").length >= 3;
  });
  assert.deepEqual(children(), []);
});

for (const codec of ["vp8", "h264"] as const) {
  Deno.test(`${codec}: units that cannot be decoded are skipped and do not affect others`, async () => {
    const { units } = codec === "vp8" ? vp8 : stream(codec, { frames: 40 });
    await using test = new TestDecoder(codec);
    let time = 0;
    const push = (data: Uint8Array<ArrayBuffer>, isKeyframe: boolean) =>
      test.push({ data, isKeyframe }, time += 3000);
    push(garbage(500, 1), true);
    for (const unit of units.slice(0, 10)) push(unit.data, unit.isKeyframe);
    push(garbage(2000, 2), false);
    push(new Uint8Array(3), false);
    push(units[10]!.data.slice(0, units[10]!.data.length >> 1), true);
    push(new Uint8Array(0), false);
    for (const unit of units.slice(20)) push(unit.data, unit.isKeyframe);
    const lastTime = time;
    await until(() => test.frames.at(-1)?.rtpTimestamp === lastTime);
    assert.equal(test.frames.filter((frame) => frame.frameIndex >= 15).length, 20);
    assert.ok(!test.events.includes("exited") && !test.events.includes("stalled"), test.events.join());
  });
}

Deno.test("an ffmpeg that is killed is replaced at the next keyframe, which is reported", async () => {
  await using test = new TestDecoder("vp8");
  for (const [at, unit] of vp8.units.slice(0, 15).entries()) test.push(unit, at * 3000);
  await until(() => test.frames.length === 15);
  const [pid] = children();
  Deno.kill(pid!, "SIGKILL");
  await until(() => test.events.length > 0);
  assert.deepEqual(test.events, ["keyframe"]);
  for (const [at, unit] of vp8.units.slice(15, 30).entries()) test.push(unit, (15 + at) * 3000);
  await until(() => test.frames.length === 25);
  assert.deepEqual(test.events, ["keyframe", "exited"]);
  assert.deepEqual(test.frames.slice(15).map((frame) => frame.frameIndex), [
    ...[20, 21, 22, 23, 24, 25, 26, 27, 28, 29],
  ]);
  for (const [at, { bytes }] of test.frames.slice(15).entries()) {
    assert.deepEqual(bytes, vp8.decodedFrames[20 + at]);
  }
  assert.deepEqual(test.decoder.counts, { received: 30, decoded: 25, dropped: 5, restarts: 1 });
  assert.notDeepEqual(children(), [pid]);
});

Deno.test("an ffmpeg that reads and gives no frame is replaced, three times at most", async () => {
  using folder = new TempFolder();
  const ffmpeg = folder.script("ffmpeg", "exec cat > /dev/null");
  await using test = new TestDecoder("vp8", {
    runner: localRunner({ ...tools(), ffmpeg, prlimit: null }),
    world: fastWorld(100),
  });
  let time = 0;
  await until(() => {
    test.push(vp8.units[0]!, time += 3000);
    return test.events.some((event) => event.startsWith("fault"));
  });
  assert.deepEqual(test.events.filter((event) => event !== "keyframe"), [
    ...["stalled", "stalled", "stalled"],
    "fault: the decoder broke down 3 times without a frame: no reason given",
  ]);
  await until(() => children().length === 0);
  test.push(vp8.units[0]!, 0);
  assert.equal(test.frames.length, 0);
});

Deno.test("an ffmpeg that is stopped falls behind: units are dropped up to a keyframe, and it is replaced", async () => {
  await using test = new TestDecoder("vp8", { world: fastWorld(10) });
  test.push(vp8.units[0]!, 0);
  await until(() => test.frames.length === 1);
  const [pid] = children();
  Deno.kill(pid!, "SIGSTOP");
  let time = 0;
  await until(() => {
    const at = ++time % 40;
    test.push(vp8.units[at]!, time * 3000);
    return test.events.includes("stalled");
  });
  await until(() => {
    const at = ++time % 40;
    test.push(vp8.units[at]!, time * 3000);
    return test.frames.length > 20;
  });
  assert.ok(test.events.includes("keyframe"));
  assert.ok(test.decoder.counts.dropped > 15);
  assert.ok(test.decoder.counts.restarts >= 1);
});

Deno.test("what comes at once while ffmpeg starts is decoded whole, unless the start takes over two seconds", async () => {
  using folder = new TempFolder();
  const check = (name: string, afterMs: number) => {
    const go = `${folder.path}/${name}.go`;
    const waits = `while [ ! -e ${go} ]; do sleep 0.02; done; exec ${tools().ffmpeg} "$@"`;
    let nowMs = 0;
    const test = new TestDecoder("vp8", {
      runner: localRunner({ ...tools(), ffmpeg: folder.script(name, waits), prlimit: null }),
      world: { ...world(), monotonicMs: () => nowMs },
    });
    const push = (from: number, to: number) => {
      for (let at = from; at < to; at++) test.push(vp8.units[at]!, at * 3000);
    };
    push(0, 18);
    nowMs = afterMs;
    push(18, 40);
    const { received, dropped } = test.decoder.counts;
    assert.equal(test.decoder.pending, received - dropped, "one for which ffmpeg starts is pending too");
    Deno.writeTextFileSync(go, "");
    return test;
  };
  await using whole = check("slow", 1_900);
  await until(() => whole.frames.length === 40);
  assert.deepEqual([whole.decoder.counts.dropped, whole.events], [0, []]);
  await using late = check("slower", 2_100);
  assert.ok(late.decoder.counts.dropped > 0);
  assert.deepEqual(late.events, ["keyframe"]);
});

Deno.test("an ffmpeg that cannot be started, or ends at once, is a fault after few attempts", async () => {
  const check = async (ffmpeg: string, expected: RegExp) => {
    await using test = new TestDecoder("vp8", { runner: localRunner({ ...tools(), ffmpeg, prlimit: null }) });
    await until(() => {
      test.push(vp8.units[0]!, 0);
      return test.events.some((event) => event.startsWith("fault"));
    });
    assert.match(test.events.at(-1)!, expected);
  };
  using folder = new TempFolder();
  await check(folder.script("ends", "echo it cannot go on >&2; exit 1"), /3 times .*: it cannot go on$/);
  await check(folder.script("talks", "head -c 100000 /dev/zero; exec sleep 60"), /3 times/);
  await check(`${folder.path}/missing`, /^fault: the decoder cannot be started: NotFound$/);
});

Deno.test("a fault says whether ffmpeg could be started", async () => {
  const check = async (changed: { ffmpeg: string; prlimit: string | null }, expected: string) => {
    const reasons: string[] = [];
    const onFault: LiveDecoderOptions["onFault"] = (_, reason) => reasons.push(reason);
    await using test = new TestDecoder("vp8", { runner: localRunner({ ...tools(), ...changed }), onFault });
    await until(() => {
      test.push(vp8.units[0]!, 0);
      return reasons.length > 0;
    });
    assert.deepEqual(reasons, [expected]);
  };
  using folder = new TempFolder();
  const missing = `${folder.path}/missing`;
  await check({ ffmpeg: folder.script("ends", "exit 1"), prlimit: null }, "unexpected_exit");
  await check({ ffmpeg: missing, prlimit: null }, "spawn_failure");
  const { prlimit } = tools();
  if (prlimit !== null) await check({ ffmpeg: missing, prlimit }, "spawn_failure");
});

Deno.test("units beyond the queue are dropped up to a keyframe, which is requested", async () => {
  await using test = new TestDecoder("vp8");
  const units: TestUnit[] = Array.from({ length: 5 }, () => vp8.units).flat();
  for (const [at, unit] of units.entries()) test.push(unit, at * 3000);
  assert.ok(test.events.includes("keyframe"));
  await until(() => {
    const { received, decoded, dropped } = test.decoder.counts;
    return decoded + dropped >= received - 1 && decoded > 0;
  });
  assert.ok(test.decoder.counts.dropped >= 128, String(test.decoder.counts.dropped));
  assert.ok(test.decoder.counts.decoded <= 130);
  // A unit that is too large is not decoded, and neither are the units that refer to it.
  const before = test.decoder.counts.dropped;
  test.push({ data: new Uint8Array(2 * 2 ** 20 + 1), isKeyframe: true }, 10 ** 7);
  test.push(vp8.units[1]!, 10 ** 7 + 3000);
  assert.equal(test.decoder.counts.dropped, before + 2);
});

Deno.test("pixels stay available for the promised number of further frames, and then throw", async () => {
  const frames: DecodedFrame[] = [];
  await using test = new TestDecoder("vp8", { onFrame: (frame) => frames.push(frame) });
  for (const [at, unit] of vp8.units.slice(0, RING_FRAMES + 5).entries()) {
    test.push(unit, at * 3000);
    await until(() => frames.length === at + 1);
    const oldest = Math.max(0, at - RING_FRAMES + 2);
    for (let back = oldest; back <= at; back++) {
      assert.deepEqual(frames[back]!.pixels.bytes, vp8.decodedFrames[back]);
    }
  }
  assert.equal(frames[0]!.pixels.isAvailable, false);
  assert.throws(() => frames[0]!.pixels.bytes, /has left the ring/);
});

Deno.test("the memory of a session grows with its frame size and is known in advance", () => {
  const sizes = [[2, 2], [640, 480], [1280, 720], [1920, 1080], [3840, 2160]] as const;
  const bytes = sizes.map(([width, height]) => liveMemoryBytes(width, height));
  assert.deepEqual(bytes, bytes.toSorted((a, b) => a - b));
  assert.ok(bytes[1]! < 18e6 && bytes[3]! < 46e6, bytes.join());
});

Deno.test("closing a decoder at any moment leaves no process behind", async () => {
  for (const pushed of [0, 1, 5, 40]) {
    const test = new TestDecoder("vp8");
    for (const [at, unit] of vp8.units.slice(0, pushed).entries()) test.push(unit, at * 3000);
    await test[Symbol.asyncDispose]();
    assert.deepEqual(children(), []);
    const { length } = test.frames;
    test.push(vp8.units[0]!, 10 ** 6);
    assert.equal(test.frames.length, length);
  }
});

Deno.test("a pulled source gives its frames with their times, and reports its end", async () => {
  using folder = new TempFolder();
  const path = makeClip(`${folder.path}/clip.mp4`, { frames: 30, size: "160x120" });
  const times: number[] = [];
  const ended = Promise.withResolvers<string>();
  await using _pulled = PulledDecoder.start({
    runner: localRunner(tools()),
    world: world(),
    input: fileInput(path),
    room: freeRoom(),
    onFrame: ({ ptsMs, rtpTimestamp, frameIndex, pixels }) => {
      assert.equal(frameIndex, times.length);
      assert.equal(ptsMs, Math.round(rtpTimestamp / 90));
      assert.equal(pixels.bytes.length, 160 * 120 * 1.5);
      times.push(ptsMs);
    },
    onEnded: ended.resolve,
  });
  assert.equal(await ended.promise, "it has ended");
  assert.deepEqual(times, frameTimesMs(path, 0).map(Math.round));
});

Deno.test("a pulled source that cannot be opened, or is silent, ends with a reason that names no path", async () => {
  using folder = new TempFolder();
  const check = async (path: string, ffmpeg: string, expected: string, clock = world()) => {
    const ended = Promise.withResolvers<string>();
    await using _pulled = PulledDecoder.start({
      runner: localRunner({ ...tools(), ffmpeg }),
      world: clock,
      input: fileInput(path),
      room: freeRoom(),
      onFrame: () => {},
      onEnded: ended.resolve,
    });
    assert.equal(await ended.promise, expected);
  };
  await check(`${folder.path}/none.mp4`, tools().ffmpeg, "it cannot be read");
  await check(
    folder.file("text.webm", "no video at all"),
    tools().ffmpeg,
    "it is not a media file, or it is damaged beyond reading",
  );
  await check(
    folder.file("any.mp4"),
    folder.script("ffmpeg", 'echo "no frames, but words of another program"; exec sleep 60'),
    "the decoder gave what is not understood: no NUT file id",
  );
  await check(
    folder.file("any.mp4"),
    folder.script("ffmpeg", "exec sleep 60"),
    "it gave no frame for 30 s",
    fastWorld(100),
  );
  assert.deepEqual(children(), []);
});
