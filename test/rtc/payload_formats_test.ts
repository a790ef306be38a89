import assert from "node:assert/strict";
import { Assembler, type AssemblerActions, type VideoUnit } from "../../src/rtc/receive/assembler.ts";
import type { VideoCodec } from "../../src/model/live/offer.ts";
import { LIMITS } from "../../src/contract/limits.ts";
import { seededRandom } from "../support/seeded_random.ts";
import { ivfFrames } from "../support/live/encoded_media.ts";
import { ffmpegEncoder, needing } from "../support/needs.ts";

/** Splits a unit into payloads of at most 900 bytes. */
type Packetizer = (frame: Uint8Array) => Uint8Array[];
const PIECE = 900;

function assembled(codec: VideoCodec, units: Uint8Array[][], sets: Uint8Array[] = []): VideoUnit[] {
  const assembler = new Assembler(codec, sets);
  const actions: AssemblerActions = { units: [], nacks: [], wantsKeyframe: false };
  let sequence = 65_000;
  for (const [index, payloads] of units.entries()) {
    for (const [piece, payload] of payloads.entries()) {
      const isMarked = piece === payloads.length - 1;
      assembler.push(
        { sequence: sequence++ & 0xffff, timestamp: index, isMarked, payload, arrivedMs: 0 },
        50 + index,
        actions,
      );
    }
  }
  assembler.poll(10_000, 0, actions);
  return actions.units;
}

async function encode(
  codec: string[],
  format: string,
  size: string,
  bitstream: string[] = [],
): Promise<Uint8Array | null> {
  const source = ["-f", "lavfi", "-i", `testsrc2=s=${size}:r=30:d=0.4`, "-pix_fmt", "yuv420p"];
  const args = ["-nostdin", "-loglevel", "error", ...source, ...codec, ...bitstream, "-f", format, "pipe:1"];
  const { success, stdout } = await new Deno.Command("ffmpeg", { args, stderr: "null" }).output();
  return success ? stdout : null;
}

/** The NAL units of each access unit of a stream, without the delimiters between them. */
function unitsOf(stream: Uint8Array, isDelimiter: (nal: Uint8Array) => boolean): Uint8Array[][] {
  const starts: number[] = [];
  for (let at = 0; at + 3 < stream.length; at++) {
    if (stream[at] === 0 && stream[at + 1] === 0 && stream[at + 2] === 1) starts.push(at + 3);
  }
  const units: Uint8Array[][] = [];
  for (const [index, start] of starts.entries()) {
    let end = index + 1 < starts.length ? starts[index + 1]! - 3 : stream.length;
    while (stream[end - 1] === 0) end--;
    const nal = stream.subarray(start, end);
    if (isDelimiter(nal)) units.push([]);
    else units.at(-1)!.push(nal);
  }
  return units;
}

function annexB(nals: Uint8Array[]): string {
  return nals.map((nal) => `00000001${nal.toHex()}`).join("");
}

function pieces(bytes: Uint8Array): Uint8Array[] {
  return Array.from(
    { length: Math.ceil(bytes.length / PIECE) },
    (_, index) => bytes.subarray(index * PIECE, (index + 1) * PIECE),
  );
}

/** Small NAL units aggregated into one packet, large ones fragmented. */
function nalPayloads(
  nals: Uint8Array[],
  head: (nal: Uint8Array, type: number) => number[],
  types: { aggregate: number; fragment: number; mask: number; shift: number },
): Uint8Array[] {
  const headBytes = head(nals[0]!, 0).length;
  const small = nals.filter((nal) => nal.length <= PIECE);
  const aggregate = small.length > 1
    ? [
      Uint8Array.from([
        ...head(small[0]!, types.aggregate),
        ...small.flatMap((nal) => [nal.length >> 8, nal.length & 255, ...nal]),
      ]),
    ]
    : small;
  const fragments = nals.filter((nal) => nal.length > PIECE).flatMap((nal) =>
    pieces(nal.subarray(headBytes)).map((piece, index, all) => {
      const flags = (index === 0 ? 0x80 : 0) | (index === all.length - 1 ? 0x40 : 0);
      return Uint8Array.from([
        ...head(nal, types.fragment),
        flags | ((nal[0]! >> types.shift) & types.mask),
        ...piece,
      ]);
    })
  );
  return [...aggregate, ...fragments];
}

Deno.test("H.264 in aggregates and fragments comes out as it went in, cropped sizes known", async () => {
  for (const size of ["320x180", "322x182", "64x64"]) {
    const stream = await encode(["-c:v", "libx264", "-g", "6"], "h264", size, [
      "-bsf:v",
      "h264_metadata=aud=insert",
    ]);
    assert.ok(stream);
    const units = unitsOf(stream, (nal) => (nal[0]! & 31) === 9);
    const head = (nal: Uint8Array, type: number) => [(nal[0]! & 0xe0) | type];
    const found = assembled(
      "h264",
      units.map((nals) => nalPayloads(nals, head, { aggregate: 24, fragment: 28, mask: 31, shift: 0 })),
    );
    assert.equal(found.length, units.length);
    for (const [index, { data }] of found.entries()) assert.equal(data.toHex(), annexB(units[index]!));
    assert.equal(`${found[0]!.width}x${found[0]!.height}`, size);
    assert.deepEqual(found.map(({ isKeyframe }) => isKeyframe), units.map((_, index) => index % 6 === 0));
  }
});

Deno.test("parameter sets of the offer go before keyframes that have none", async () => {
  const stream = await encode(["-c:v", "libx264", "-g", "6"], "h264", "320x180", [
    "-bsf:v",
    "h264_metadata=aud=insert",
  ]);
  const units = unitsOf(stream!, (nal) => (nal[0]! & 31) === 9);
  const isSet = (nal: Uint8Array) => [7, 8].includes(nal[0]! & 31);
  const sets = units[0]!.filter(isSet);
  const bare = units.map((nals) => nals.filter((nal) => !isSet(nal)));
  const head = (nal: Uint8Array, type: number) => [(nal[0]! & 0xe0) | type];
  const payloads = bare.map((
    nals,
  ) => [
    Uint8Array.of(9, 16),
    ...nalPayloads(nals, head, { aggregate: 24, fragment: 28, mask: 31, shift: 0 }),
  ]);
  const found = assembled("h264", payloads, sets);
  assert.equal(found.length, units.length);
  assert.equal(found[0]!.data.toHex(), annexB([...sets, Uint8Array.of(9, 16), ...bare[0]!]));
  assert.deepEqual([found[0]!.width, found[0]!.height], [320, 180]);
  assert.equal(found[1]!.data.toHex(), annexB([Uint8Array.of(9, 16), ...bare[1]!]));
});

Deno.test({
  ...needing(ffmpegEncoder("libx265"), "H.265 in aggregates and fragments comes out as it went in"),
  async fn() {
    const stream = await encode(
      ["-c:v", "libx265", "-g", "6", "-x265-params", "log-level=none:aud=1:repeat-headers=1:bframes=0"],
      "hevc",
      "322x182",
    );
    const typeOf = (nal: Uint8Array) => (nal[0]! >> 1) & 63;
    const units = unitsOf(stream!, (nal) => typeOf(nal) === 35);
    const head = (nal: Uint8Array, type: number) => [(nal[0]! & 0x81) | (type << 1), nal[1]!];
    const found = assembled(
      "h265",
      units.map((nals) => nalPayloads(nals, head, { aggregate: 48, fragment: 49, mask: 63, shift: 1 })),
    );
    assert.equal(found.length, units.length);
    for (const [index, { data }] of found.entries()) assert.equal(data.toHex(), annexB(units[index]!));
    assert.deepEqual([found[0]!.isKeyframe, found[0]!.width, found[0]!.height, found[1]!.isKeyframe], [
      true,
      322,
      182,
      false,
    ]);
  },
});

Deno.test("VP8 and VP9 come out as they went in, whatever fields their descriptors have", async () => {
  const vp8: Packetizer = (frame) =>
    pieces(frame).map((piece, index) =>
      Uint8Array.from([0x80 | (index === 0 ? 0x10 : 0), 0xf0, 0x81, 0x02, 7, 0x20, ...piece])
    );
  const vp9: Packetizer = (frame) =>
    pieces(frame).map((piece, index, all) => {
      const isDelta = (frame[0]! & 4) !== 0;
      const flags = 0x80 | 0x20 | (isDelta ? 0x40 : 0) | (index === 0 ? 8 : 0) |
        (index === all.length - 1 ? 4 : 0);
      const structure = !isDelta && index === 0 ? [0x18, 1, 64, 0, 180, 1, 0x04, 1] : [];
      return Uint8Array.from([
        flags | (structure.length > 0 ? 2 : 0),
        0x81,
        0x02,
        0,
        9,
        ...structure,
        ...piece,
      ]);
    });
  for (const [codec, library, packetize] of [["vp8", "libvpx", vp8], ["vp9", "libvpx-vp9", vp9]] as const) {
    const args = [
      "-c:v",
      library,
      "-g",
      "6",
      "-deadline",
      "realtime",
      "-cpu-used",
      "8",
      "-auto-alt-ref",
      "0",
      "-lag-in-frames",
      "0",
    ];
    const frames = ivfFrames((await encode(args, "ivf", "320x180"))!);
    const found = assembled(codec, frames.map(packetize));
    assert.equal(found.length, frames.length, codec);
    for (const [index, { data }] of found.entries()) assert.equal(data.toHex(), frames[index]!.toHex());
    assert.deepEqual([found[0]!.isKeyframe, found[0]!.width, found[0]!.height, found[1]!.isKeyframe], [
      true,
      320,
      180,
      false,
    ]);
  }
});

Deno.test("AV1 elements, aggregated and fragmented, become a temporal unit of sized OBUs", () => {
  const sequence = [0x08, 1, 2, 3];
  const frame = [0x30, ...Array.from({ length: 300 }, (_, index) => index & 255)];
  const expected = [0x12, 0, 0x0a, 3, 1, 2, 3, 0x32, 0xac, 0x02, ...frame.slice(1)];
  const check = (...payloads: number[][]) => {
    const [unit] = assembled("av1", [payloads.map((payload) => Uint8Array.from(payload))]);
    assert.deepEqual([...unit!.data], expected);
    assert.ok(unit!.isKeyframe);
  };
  check([0x28, 4, ...sequence, ...frame]);
  check([0x08, 4, ...sequence, 0xad, 0x02, ...frame]);
  check([0x68, 4, ...sequence, ...frame.slice(0, 100)], [0x90, ...frame.slice(100)]);
  check([0x58, ...sequence.slice(0, 2)], [0xa0, 2, ...sequence.slice(2), ...frame]);
  check([0x38, 1, 0x10, 4, ...sequence, ...frame]);
});

Deno.test("packets of a real stream with wrong bits, cut and repeated parts make no unit of a wrong size, and throw nothing", async () => {
  const stream = await encode(["-c:v", "libx264", "-g", "6"], "h264", "322x182", [
    "-bsf:v",
    "h264_metadata=aud=insert",
  ]);
  const units = unitsOf(stream!, (nal) => (nal[0]! & 31) === 9);
  const head = (nal: Uint8Array, type: number) => [(nal[0]! & 0xe0) | type];
  const h264 = units.map((nals) =>
    nalPayloads(nals, head, { aggregate: 24, fragment: 28, mask: 31, shift: 0 })
  );
  // A sequence parameter set as H.265 packets have it, and what it is for, so that its size is read.
  const h265 = h264.map((payloads) =>
    payloads.map((payload, index) => Uint8Array.of(...index === 0 ? [0x42, 1] : [0x26, 1], ...payload))
  );
  const alone = (...before: number[]) => h264.map(([first]) => [Uint8Array.of(...before, ...first!)]);
  const vp9 = alone(
    ...[0xae, 0x81, 0x02, 0, 9, 0x18, 1, 64, 0, 180, 1, 0x04, 1],
    ...[0x82, 0x49, 0x83, 0x42, 0, 0x13, 0xf0, 0x0b, 0x30],
  );
  const av1 = alone(0x28, 4, 0x08, 1, 2, 3, 0x30);
  const vp8 = alone(0x10, 0, 0, 0, 0x9d, 1, 0x2a, 64, 1, 180, 0);
  const random = seededRandom(20261128);
  const below = (count: number) => Math.floor(random() * count);
  const mutated = (payload: Uint8Array) => {
    if (random() < 0.5) return payload;
    const bytes = Uint8Array.from(payload);
    for (let count = below(6); count > 0; count--) {
      // Most of what is parsed is at the beginning.
      const at = below(random() < 0.8 ? Math.min(60, bytes.length) : bytes.length);
      if (random() < 0.2) bytes.copyWithin(at, below(bytes.length));
      else bytes[at] = random() < 0.5 ? [0, 255][below(2)]! : bytes[at]! ^ (1 << below(8));
    }
    return bytes.subarray(0, random() < 0.2 ? below(bytes.length + 1) : bytes.length);
  };
  for (const [codec, whole] of Object.entries({ h264, h265, vp9, av1, vp8 } as const)) {
    let count = 0;
    for (let round = 0; round < 600; round++) {
      for (const unit of assembled(codec as VideoCodec, whole.map((payloads) => payloads.map(mutated)))) {
        count++;
        assert.ok(unit.data.length > 0 && unit.data.length <= LIMITS.live.videoUnitBytesMax, codec);
        for (const side of [unit.width, unit.height]) {
          assert.ok(
            side === null || Number.isInteger(side) && side >= 1 && side <= 65_536,
            `${codec} ${side}`,
          );
        }
      }
    }
    assert.ok(count > 100, `${codec}: ${count} units`);
  }
});
