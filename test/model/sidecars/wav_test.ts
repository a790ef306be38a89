import { deepEqual, equal, match, ok } from "node:assert/strict";
import { readWav, wavOf, wavSamples } from "../../../src/model/sidecars/wav.ts";
import { seededRandom } from "../../support/seeded_random.ts";

const SAMPLES = Int16Array.from([0, 1, -1, 32767, -32768]);

Deno.test("samples that were written to a file are read from it", () => {
  const bytes = wavOf(SAMPLES, 16_000);
  const shape = readWav(bytes);
  deepEqual(shape, { channels: 1, sampleRateHz: 16_000, dataStart: 44, dataBytes: 10, durationMs: 10 / 32 });
  ok(typeof shape !== "string");
  deepEqual(wavSamples(bytes, shape), SAMPLES);
  const shifted = new Uint8Array([9, ...bytes]).subarray(1);
  deepEqual(wavSamples(shifted, shape), SAMPLES);
});

Deno.test("a file is read whatever is around its samples, and refused with the reason otherwise", () => {
  const check = (
    change: (view: DataView, bytes: Uint8Array) => Uint8Array | void,
    expected: number | RegExp,
  ) => {
    const bytes = wavOf(SAMPLES, 16_000);
    const shape = readWav(change(new DataView(bytes.buffer), bytes) ?? bytes);
    if (typeof expected === "number") equal(typeof shape === "string" ? shape : shape.dataBytes, expected);
    else match(String(shape), expected);
  };
  check(() => {}, 10);
  check((view) => view.setUint32(40, 0), 10); // a program that did not know the length
  check((view) => view.setUint32(40, 0xffffffff, true), 10);
  check((view) => view.setUint32(40, 7, true), 6); // whole samples only
  check((_, bytes) => bytes.subarray(0, 44), 0);
  check((_, bytes) => bytes.subarray(0, 47), 2);
  check(
    (_, bytes) =>
      new Uint8Array([
        ...bytes.subarray(0, 36),
        ...[76, 73, 83, 84, 3, 0, 0, 0, 1, 2, 3, 0],
        ...bytes.subarray(36),
      ]),
    10,
  );
  check((view) => view.setUint8(0, 0), /no RIFF WAVE/);
  check((_, bytes) => bytes.subarray(0, 11), /no RIFF WAVE/);
  check((_, bytes) => bytes.subarray(0, 20), /cut off/);
  check((_, bytes) => bytes.subarray(0, 36), /no samples/);
  check((view) => view.setUint16(20, 3, true), /not 16-bit PCM/);
  check((view) => view.setUint16(34, 8, true), /not 16-bit PCM/);
  check((view) => view.setUint16(22, 0, true), /contradicts itself/);
  check((view) => view.setUint16(22, 2, true), /contradicts itself/);
  check((view) => view.setUint32(24, 0, true), /contradicts itself/);
  check((view) => view.setUint8(12, 0), /before their format/);
});

Deno.test("no bytes make the reader throw or reach beyond the end", () => {
  const random = seededRandom(7);
  for (let round = 0; round < 2_000; round += 1) {
    const bytes = wavOf(SAMPLES, 16_000).subarray(0, Math.floor(random() * 60));
    for (let hit = 0; hit < 4; hit += 1) bytes[12 + Math.floor(random() * 42)] = Math.floor(random() * 256);
    const shape = readWav(bytes);
    if (typeof shape !== "string") ok(shape.dataStart + shape.dataBytes <= bytes.length);
  }
});
