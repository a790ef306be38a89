import assert from "node:assert/strict";
import { join } from "node:path";
import { hasPicture, isMediaPart, neededBytes, videoOfPart } from "../../../src/model/sources/hls_part.ts";
import { make, TempFolder } from "../../support/media.ts";

function bytes(...parts: (string | number[])[]): Uint8Array {
  return Uint8Array.from(
    parts.flatMap((part) => typeof part === "string" ? [...part].map((c) => c.charCodeAt(0)) : part),
  );
}

/** A tag with `size` bytes after its header. */
function tag(size: number, { version = 4, revision = 0, flags = 0 } = {}): number[] {
  const digits = [21, 14, 7, 0].map((shift) => size >> shift & 127);
  return [0x49, 0x44, 0x33, version, revision, flags, ...digits, ...new Array<number>(size).fill(0x23)];
}

Deno.test("media is told by its first bytes, sound also behind a tag with its time", () => {
  const packet = [0x47, ...new Array<number>(187).fill(1)];
  for (
    const part of [
      bytes(),
      bytes(packet, packet),
      bytes(packet.slice(0, 100)),
      bytes([0, 0, 0, 24], "ftypiso5"),
      bytes([0, 0, 0, 24], "moof"),
      bytes([0, 0, 0, 1], "mdat"),
      bytes([0xff, 0xf1, 0x50]),
      bytes([0xff, 0xfb, 0x90]),
      bytes([0x0b, 0x77, 1]),
      bytes("WEBVTT\n"),
      bytes("\xef\xbb\xbfWEBVTT"),
      bytes(tag(63), [0xff, 0xf1]),
      bytes(tag(63, { version: 3 }), [0x0b, 0x77]),
      bytes(tag(63), packet, packet),
    ]
  ) assert.equal(isMediaPart(part), true, String(part.subarray(0, 80)));
});

Deno.test("what could become a playlist, alone or with the part that follows, is no media", () => {
  for (
    const part of [
      "#EXTM3U",
      "#",
      "#EXT",
      "M3U\nhttp://10.0.0.1/",
      "I",
      "ID3",
      "ID3\x04mmoof",
      "<html>",
      "\x1f\x8b\x08",
      "\0\0\0\x18abcd",
      "ffconcat version 1.0",
    ]
  ) assert.equal(isMediaPart(bytes(part)), false, JSON.stringify(part));
  assert.equal(isMediaPart(bytes(tag(20), "#EXTM3U\n")), false);
  assert.equal(isMediaPart(bytes(tag(20))), false, "the tag ends with the part");
  assert.equal(isMediaPart(bytes(tag(20), [0xff])), false, "the sound begins in the next part");
  assert.equal(isMediaPart(bytes(tag(20).slice(0, 25))), false, "the tag ends in the next part");
  assert.equal(isMediaPart(bytes(tag(20), tag(20), "#EXTM3U")), false, "a second tag");
  for (const odd of [{ version: 5 }, { version: 1 }, { revision: 1 }, { flags: 0x10 }]) {
    assert.equal(isMediaPart(bytes(tag(20, odd), [0xff, 0xf1])), false, JSON.stringify(odd));
  }
  const split = bytes([0x47], new Array<number>(187).fill(1), "#EXTM3U");
  assert.equal(isMediaPart(split), false, "a letter G alone is no stream");
});

Deno.test("a long tag is read to its end, and no further than its limit", () => {
  assert.equal(neededBytes(bytes("G")), 16);
  assert.equal(neededBytes(bytes(tag(63))), 89);
  assert.equal(neededBytes(bytes(tag(100_000).slice(0, 1024))), 100_026);
  assert.equal(neededBytes(bytes([0x49, 0x44, 0x33, 4, 0, 0, 127, 127, 127, 127])), 256 * 1024);
});

Deno.test("the tables of a part of MPEG-TS tell its video, and broken ones tell nothing", () => {
  using folder = new TempFolder();
  const part = (name: string, ...args: string[]) =>
    Deno.readFileSync(
      make(join(folder.path, name), "-f", "lavfi", "-i", "testsrc2=s=64x64:d=1", ...args, "-f", "mpegts"),
    );
  const h264 = part("h264.ts", "-f", "lavfi", "-i", "sine=d=1", "-c:v", "libx264", "-c:a", "aac");
  const hevc = part("hevc.ts", "-c:v", "libx265", "-x265-params", "log-level=none");
  const found = [h264, hevc, part("mpeg2.ts", "-c:v", "mpeg2video"), h264.subarray(0, 1024)].map(videoOfPart);
  assert.deepEqual(found, ["h264", "hevc", null, "h264"]);
  assert.equal(videoOfPart(bytes([0, 0, 0, 24], "moof")), null);
  for (let length = 0; length < 3 * 188; length++) assert.equal(videoOfPart(h264.subarray(0, length)), null);
  for (let at = 1; at < 3 * 188; at++) {
    for (const byte of [0, 0x7f, 0xff]) {
      assert.ok([null, "h264", "hevc"].includes(videoOfPart(h264.subarray(0, 1024).with(at, byte))));
    }
  }
});

Deno.test("a part that has no picture is told by the tables of MPEG-TS, the tracks of MP4, or by being bare sound", () => {
  using folder = new TempFolder();
  const made = (name: string, ...args: string[]) =>
    hasPicture(Deno.readFileSync(make(join(folder.path, name), ...args)).subarray(0, 16 * 1024));
  const picture = ["-f", "lavfi", "-i", "testsrc2=s=64x64:d=1"];
  const sound = ["-f", "lavfi", "-i", "sine=d=1"];
  const both = [...sound, ...picture, "-map", "0", "-map", "1"];
  const fragments = ["-movflags", "empty_moov"];
  for (const codec of ["libx264", "mpeg2video", "mpeg4"]) {
    assert.equal(made(`${codec}.ts`, ...both, "-c:v", codec), true, codec);
    assert.equal(made(`${codec}.mp4`, ...both, "-c:v", codec, ...fragments), true, codec);
  }
  assert.equal(made("sound.ts", ...sound), false);
  assert.equal(made("sound.mp4", ...sound, ...fragments), false);
  assert.equal(made("sound.aac", ...sound), false);
  assert.equal(hasPicture(bytes(tag(63), [0xff, 0xf1])), false);
  assert.equal(hasPicture(bytes("WEBVTT\n")), false);
  for (
    const nothing of [bytes(), bytes([0, 0, 0, 24], "moof"), bytes([0x47], new Array<number>(187).fill(1))]
  ) {
    assert.equal(hasPicture(nothing), null);
  }
});
