import { deepEqual, equal, ok, throws } from "node:assert/strict";
import { join } from "node:path";
import { NutError, NutReader } from "../../../src/media/containers/nut.ts";
import { make, TempFolder } from "../../support/media.ts";

interface Frame {
  pts: number;
  data: string;
}

/** Reads `file` through a window that gets `step` more bytes whenever the reader asks for more. */
function readAll(file: Uint8Array, step: number): { frames: Frame[]; timeBase: string } {
  const reader = new NutReader();
  const frames: Frame[] = [];
  let at = 0;
  for (let end = step; at < file.length; end += step) {
    const to = Math.min(end, file.length);
    for (let next = reader.read(file, at, to); next !== -1; next = reader.read(file, at, to)) {
      ok(next > at, "the reader comes forward");
      at = next;
      if (!reader.hasFrame) continue;
      const data = file.subarray(reader.frameOffset, reader.frameOffset + reader.frameBytes);
      frames.push({ pts: reader.framePts, data: `${reader.frameBytes}:${hash(data)}` });
    }
    if (to === file.length) break;
  }
  return { frames, timeBase: `${reader.timeBaseNumerator}/${reader.timeBaseDenominator}` };
}

function hash(data: Uint8Array): number {
  let value = 17;
  for (const byte of data) value = (value * 31 + byte) >>> 0;
  return value;
}

/** A NUT file of gray frames, as the decoder gets it. `picture` is a lavfi source. */
function nutFile(folder: TempFolder, picture: string, ...args: string[]): Uint8Array {
  const path = join(folder.path, "file.nut");
  make(path, "-f", "lavfi", "-i", picture, ...args, "-pix_fmt", "gray", "-c:v", "rawvideo", "-f", "nut");
  return Deno.readFileSync(path);
}

Deno.test("frames and times of a NUT file are exact, however the bytes are split", () => {
  using folder = new TempFolder();
  const check = (picture: string, args: string[], seconds: number[], bytes: number) => {
    const file = nutFile(folder, picture, ...args);
    const whole = readAll(file, file.length);
    const [numerator, denominator] = whole.timeBase.split("/").map(Number);
    deepEqual(
      whole.frames.map((frame) => (frame.pts - whole.frames[0]!.pts) * numerator! / denominator!),
      seconds,
      picture,
    );
    for (const frame of whole.frames) ok(frame.data.startsWith(`${bytes}:`));
    for (const step of [1, 7, 4096, 65_536]) {
      if (file.length / step > 200_000) continue;
      deepEqual(readAll(file, step), whole, `${picture} in steps of ${step}`);
    }
  };
  const steady = (frames: number, fps: number) => Array.from({ length: frames }, (_, index) => index / fps);
  check("testsrc2=s=64x36:r=25", ["-frames:v", "50"], steady(50, 25), 2304);
  check("testsrc2=s=64x36:r=25", ["-frames:v", "50", "-write_index", "0"], steady(50, 25), 2304);
  check("testsrc2=s=320x180:r=10", ["-frames:v", "30"], steady(30, 10), 57_600);
  check("testsrc2=s=320x180:r=1", ["-frames:v", "1"], [0], 57_600);
  check("testsrc2=s=8x2:r=50", ["-frames:v", "500"], steady(500, 50), 16);
  // Gaps of 1, 2, 4, ... frames, up to one that needs a full timestamp.
  check(
    "testsrc2=s=64x36:r=1:d=40001,select='eq(n,0)+eq(n,1)+eq(n,3)+eq(n,7)+eq(n,1000)+eq(n,40000)'",
    ["-fps_mode", "passthrough", "-frames:v", "6"],
    [0, 1, 3, 7, 1000, 40_000],
    2304,
  );
  // Times that do not start at 0, and syncpoints with wall-clock times.
  check("testsrc2=s=64x36:r=4,setpts=PTS+100000", ["-frames:v", "3", "-fps_mode", "passthrough"], [
    0,
    .25,
    .5,
  ], 2304);
  check(
    "testsrc2=s=64x36:r=4",
    ["-frames:v", "9", "-syncpoints", "timestamped", "-strict", "-2"],
    steady(9, 4),
    2304,
  );
  check(
    "testsrc2=s=64x36:r=4",
    ["-frames:v", "9", "-syncpoints", "none", "-strict", "-2"],
    steady(9, 4),
    2304,
  );
});

Deno.test("times in a fine time base are exact", () => {
  using folder = new TempFolder();
  const file = nutFile(
    folder,
    "testsrc2=s=64x36:r=1000,settb=1/90000",
    "-frames:v",
    "2000",
    "-enc_time_base",
    "1/90000",
  );
  const { frames, timeBase } = readAll(file, 65_536);
  const [numerator, denominator] = timeBase.split("/").map(Number);
  equal(frames.length, 2000);
  equal(frames[1999]!.pts * numerator! / denominator!, 1.999);
});

Deno.test("a reader can read a second file after a reset", () => {
  using folder = new TempFolder();
  const file = nutFile(folder, "testsrc2=s=64x36:r=25", "-frames:v", "3");
  const reader = new NutReader();
  for (let pass = 0; pass < 2; pass++) {
    reader.reset();
    let frames = 0;
    for (let at = 0; at < file.length && at !== -1;) {
      at = reader.read(file, at, file.length);
      if (reader.hasFrame) frames++;
    }
    equal(frames, 3);
  }
});

Deno.test("a frame that is cut off is not given", () => {
  using folder = new TempFolder();
  const file = nutFile(folder, "testsrc2=s=64x36:r=25", "-frames:v", "3", "-write_index", "0");
  const whole = readAll(file, file.length).frames;
  for (let cut = 0; cut < file.length; cut += 97) {
    const { frames } = readAll(file.subarray(0, cut), 1 << 20);
    deepEqual(frames, whole.slice(0, frames.length));
  }
});

Deno.test("bytes that are not one NUT video stream are refused", () => {
  using folder = new TempFolder();
  const good = nutFile(folder, "testsrc2=s=64x36:r=25", "-frames:v", "3");
  const changed = (at: number, ...bytes: number[]) => {
    const copy = good.slice();
    copy.set(bytes, at);
    return copy;
  };
  const check = (file: Uint8Array) => throws(() => readAll(file, file.length), NutError);
  check(new TextEncoder().encode("not a NUT file at all, but long enough to look"));
  check(new TextEncoder().encode("RIFF0000AVI "));
  check(new Uint8Array(100));
  check(new Uint8Array(100).fill(255));
  check(changed(4, 0x58)); // in the file id
  check(changed(25 + 3, 0)); // in the startcode
  check(changed(25 + 9, 99)); // version 99
  check(changed(25 + 10, 2)); // two streams
  check(good.subarray(25 + 8)); // starts within the header
  const sound = join(folder.path, "sound.nut");
  make(sound, "-f", "lavfi", "-i", "sine=d=0.1", "-c:a", "pcm_s16le", "-f", "nut");
  check(Deno.readFileSync(sound));
});
