import assert from "node:assert/strict";
import { LUMA_CELLS } from "../../../src/media/detection/ranges/frame_history.ts";
import { FrameAnalyser } from "../../../src/media/detection/frame_analyser.ts";
import { emptyFrameSignals } from "../../../src/media/kernels/frame_filter.ts";
import {
  FRAME_BYTES,
  PLANE_BYTES,
  PLANE_HEIGHT,
  PLANE_WIDTH,
} from "../../../src/media/kernels/frame_planes.ts";
import { hammingDistance, referenceSignals } from "../../support/kernels/filter_reference.ts";
import { MEASURED_COLUMNS } from "../../support/recorded_media.ts";
import { seededRandom } from "../../support/seeded_random.ts";

const filter = await FrameAnalyser.load();

/** Pushes each plane at its own place in the staging area; returns the columns. */
function analyse(planes: Uint8Array[], offsetOf: (frame: number) => number = () => 0) {
  filter.reset();
  planes.forEach((plane, frame) => {
    filter.staging.set(plane, offsetOf(frame));
    filter.push(offsetOf(frame), frame * 40);
  });
  filter.finish();
  return filter.columns();
}

function plane(sampleAt: (x: number, y: number) => number): Uint8Array {
  return Uint8Array.from(
    { length: PLANE_BYTES },
    (_, i) => sampleAt(i % PLANE_WIDTH, Math.floor(i / PLANE_WIDTH)),
  );
}

const black = plane(() => 0);
const white = plane(() => 255);

Deno.test("each signal has the value of its definition", () => {
  const halves = plane((x) => x < 160 ? 0 : 255);
  const check = (planes: Uint8Array[], expected: Record<string, number[]>) => {
    const { perceptualHash, ...columns } = analyse(planes);
    const actual: Record<string, number[]> = {
      hash: Array.from(perceptualHash, (hash) => Number(hash !== 0n)),
    };
    for (const [name, column] of Object.entries(columns)) {
      if (typeof column !== "number") actual[name] = Array.from(column, (value) => Number(value));
    }
    for (const [name, values] of Object.entries(expected)) assert.deepEqual(actual[name], values, name);
  };
  check([black], {
    ptsMs: [0],
    lumaMean: [0],
    flickerScore: [0],
    ghostingScore: [0],
    noiseVarianceScore: [0],
    hash: [0],
  });
  check([white, black, white], { lumaMean: [1, 0, 1], flickerScore: [0, 1, 1], ghostingScore: [0, 0, 0] });
  check([black, halves], {
    noiseVarianceScore: [0, 1],
    lumaMean: [0, 0.5],
    flickerScore: [0, 0.5],
    hash: [0, 1],
  });
  // Samples 100 and 108: mean 104, variance 16.
  check([plane((x) => 100 + 8 * (x % 2))], {
    noiseVarianceScore: [16 / 4096],
    lumaMean: [Math.fround(104 / 255)],
  });
  check([plane((_, y) => y === 179 ? 255 : 0)], { lumaMean: [Math.fround(1 / 180)] });
});

Deno.test("a uniform plane hashes to 0 at every level, and so does a flat one with sensor noise", () => {
  const levels = Array.from({ length: 256 }, (_, level) => plane(() => level));
  assert.deepEqual(analyse(levels).perceptualHash, new BigUint64Array(256));
  const random = seededRandom(7);
  const noisy = [20, 128, 230].map((level) => plane(() => level + Math.floor(random() * 17) - 8));
  assert.deepEqual(analyse(noisy).perceptualHash, new BigUint64Array(3));
});

Deno.test("brightness and contrast leave the hash alone, a mirror image does not", () => {
  const random = seededRandom(11);
  const waves = Array.from(
    { length: 12 },
    () => [random() / 15, random() / 9, random() * 6, 4 + random() * 8],
  );
  const scene = (x: number, y: number) =>
    waves.reduce((sum, [fx, fy, phase, size]) => sum + size! * Math.sin(fx! * x + fy! * y + phase!), 110);
  const { perceptualHash } = analyse([
    plane(scene),
    plane((x, y) => scene(x, y) + 20),
    plane((x, y) => 110 + (scene(x, y) - 110) * 0.8),
    plane((x, y) => scene(PLANE_WIDTH - 1 - x, y)),
  ]);
  const distance = (frame: number) => hammingDistance(perceptualHash[0]!, perceptualHash[frame]!);
  assert.ok(distance(1) <= 2, `brighter: ${distance(1)}`);
  assert.ok(distance(2) <= 4, `less contrast: ${distance(2)}`);
  assert.ok(distance(3) >= 18, `mirrored: ${distance(3)}`);
});

Deno.test("the filter and its reference implementation agree exactly on random planes at any alignment", () => {
  const random = seededRandom(2024);
  const planes = Array.from({ length: 240 }, (_, i) => randomPlane(random, i % 8));
  const columns = analyse(planes, (frame) => (frame * 97) % (filter.staging.length - FRAME_BYTES));
  assert.equal(columns.count, planes.length);
  referenceSignals(planes).forEach((expected, row) => {
    const { perceptualHash, lumaMean, flickerScore, ghostingScore, noiseVarianceScore } = columns;
    const actual = {
      perceptualHash: perceptualHash[row],
      lumaMean: lumaMean[row],
      flickerScore: flickerScore[row],
      ghostingScore: ghostingScore[row],
      noiseVarianceScore: noiseVarianceScore[row],
    };
    assert.deepEqual(actual, expected, `plane ${row}`);
  });
});

Deno.test("a frame of which only a part is new measures as it does alone", async () => {
  const random = seededRandom(31);
  const alone = await FrameAnalyser.load();
  const frame = randomPlane(random, 6), other = randomPlane(random, 2);
  const [inFilm, byItself] = [emptyFrameSignals(), emptyFrameSignals()];
  filter.reset();
  for (let round = 0; round < 40; round++) {
    // Nothing is new in every fourth frame.
    const [width, height] = round % 4 === 3 ? [0, 0] : [1 + random() * 100, 1 + random() * 60];
    const [left, top] = [random() * 320, random() * 180];
    for (let y = Math.floor(top); y < Math.min(top + height, PLANE_HEIGHT); y++) {
      for (let x = Math.floor(left); x < Math.min(left + width, PLANE_WIDTH); x++) {
        frame[y * PLANE_WIDTH + x] = other[y * PLANE_WIDTH + x]! ^ round;
      }
    }
    alone.reset();
    for (const one of [filter, alone]) {
      one.staging.set(frame);
      one.push(0, 0);
    }
    filter.readRow(round, inFilm);
    alone.readRow(0, byItself);
    for (const name of ["hashLow", "hashHigh", "lumaMean", "noiseVarianceScore"] as const) {
      assert.equal(inFilm[name], byItself[name], `${name} of frame ${round}`);
    }
    const cellsOf = (one: FrameAnalyser) => one.rangeMeasures.cellSums.subarray(0, LUMA_CELLS);
    assert.deepEqual(cellsOf(filter), cellsOf(alone), `cells of frame ${round}`);
    assert.deepEqual(filter.rangeMeasures.profiles, alone.rangeMeasures.profiles, `lines of frame ${round}`);
  }
});

/**
 * A random plane by kind: uniform, gradients, noise, extremes, a checkerboard, a rectangle on black, bands, a
 * bright spot.
 */
function randomPlane(random: () => number, kind: number): Uint8Array {
  const [a, b, c, d] = [random(), random(), random(), random()];
  const kinds: ((x: number, y: number) => number)[] = [
    () => a * 256,
    (x, y) => 255 * (a * x / PLANE_WIDTH + (1 - a) * y / PLANE_HEIGHT),
    () => random() * 256,
    () => random() < a ? 0 : 255,
    (x, y) => (Math.floor(x / (1 + a * 60)) + Math.floor(y / (1 + b * 60))) % 2 * 255,
    (x, y) => x > a * 300 && x < a * 300 + 50 && y > b * 150 ? 40 + c * 200 : 0,
    (x, y) => 128 + 60 * Math.sin(x * a / 4 + c) + 60 * Math.sin(y * b / 4 + d) + random() * 8,
    (x, y) => 255 * Math.exp(-((x - a * 320) ** 2 + (y - b * 180) ** 2) / (50 + c * 9000)),
  ];
  return plane(kinds[kind]!);
}

Deno.test("columns hold every row, however often the ring has turned", () => {
  const random = seededRandom(3);
  const scenes = Array.from({ length: 5 }, (_, i) => randomPlane(random, [1, 2, 5, 6, 7][i]!));
  scenes.forEach((scene, i) => filter.staging.set(scene, i * FRAME_BYTES));
  const row = emptyFrameSignals();
  const check = (count: number) => {
    filter.reset();
    const cutScoresWhenFinal = new Float32Array(count);
    for (let frame = 0; frame < count; frame++) {
      filter.push((Math.floor(frame / 9) % 5) * FRAME_BYTES, frame * 33.25);
      const newestFinal = frame - filter.cutLookahead;
      if (newestFinal < 0) continue;
      filter.readRow(newestFinal, row);
      cutScoresWhenFinal[newestFinal] = row.cutScore;
    }
    assert.throws(() => filter.columns(), /before all frames have come/);
    filter.finish();
    const columns = filter.columns();
    assert.equal(columns.count, count);
    assert.deepEqual(columns.ptsMs, Float64Array.from({ length: count }, (_, frame) => frame * 33.25));
    assert.equal(columns.cutScore.some(Number.isNaN), false);
    const finalCount = Math.max(0, count - filter.cutLookahead);
    assert.deepEqual(columns.cutScore.subarray(0, finalCount), cutScoresWhenFinal.subarray(0, finalCount));
    // The scenes repeat every 45 frames, and so must everything that compares with the frame before.
    for (let frame = 46; frame < count; frame++) {
      const equal = columns.perceptualHash[frame] === columns.perceptualHash[frame - 45] &&
        columns.lumaMean[frame] === columns.lumaMean[frame - 45] &&
        columns.flickerScore[frame] === columns.flickerScore[frame - 45] &&
        columns.ghostingScore[frame] === columns.ghostingScore[frame - 45] &&
        columns.noiseVarianceScore[frame] === columns.noiseVarianceScore[frame - 45];
      assert.ok(equal, `frame ${frame} of ${count}`);
    }
  };
  for (const count of [0, 1, 2, 9, 2047, 2048, 4095, 4096, 4097, 6144, 6145, 8193, 12_300]) check(count);
});

Deno.test("a row is compared with the row before it, and tells of the strongest cut since then", () => {
  const random = seededRandom(23);
  const scenes = Array.from({ length: 7 }, (_, i) => randomPlane(random, [4, 5, 6, 7, 6, 4, 5][i]!));
  const frames = Array.from({ length: 700 }, () => plane(() => 0)).map((_, frame) => {
    // Shots of 8 to 14 frames, with a little noise.
    const scene = scenes[Math.floor(frame / (8 + Math.floor(frame / 100))) % scenes.length]!;
    return scene.map((sample) => Math.min(255, sample + Math.floor(random() * 4)));
  });
  const all = analyse(frames);
  const check = (rows: number[]) => {
    const isRow = new Set(rows);
    const alone = analyse(rows.map((frame) => frames[frame]!));
    filter.reset();
    const taken: number[] = [];
    frames.forEach((frame, index) => {
      filter.staging.set(frame);
      filter.push(0, index * 40, isRow.has(index));
      if (index % 50 === 0) taken.push(...filter.takeFinalRows().cutScore);
      // Nothing of a row can change any more once it is final.
      const lastRow = rows.findLastIndex((row) => row <= index);
      assert.ok(taken.length + filter.finalRows <= lastRow, "the newest row is open");
    });
    filter.finish();
    taken.push(...filter.takeFinalRows().cutScore);
    filter.reset();
    frames.forEach((frame, index) => {
      filter.staging.set(frame);
      filter.push(0, index * 40, isRow.has(index));
    });
    filter.finish();
    const columns = filter.columns();
    assert.equal(columns.count, rows.length);
    assert.deepEqual([...columns.ptsMs], rows.map((frame) => frame * 40));
    for (const name of MEASURED_COLUMNS) assert.deepEqual(columns[name], alone[name], name);
    rows.forEach((frame, row) => {
      const last = row === rows.length - 1 ? frames.length - 1 : frame;
      const interval = all.cutScore.subarray(row === 0 ? 0 : rows[row - 1]! + 1, last + 1);
      const highest = Math.max(...interval);
      assert.equal(columns.cutScore[row], highest, `row ${row}`);
      const at = last + 1 - interval.length + interval.indexOf(highest);
      assert.deepEqual(columns.cutPtsMs[row], highest >= 0.5 ? at * 40 : NaN, `row ${row}`);
    });
    assert.deepEqual(taken, [...columns.cutScore]);
    return columns.cutPtsMs.filter((ms) => !Number.isNaN(ms)).length;
  };
  const every = (step: number, from = 0) =>
    Array.from({ length: Math.ceil((frames.length - from) / step) }, (_, i) => from + i * step);
  assert.ok(check(every(1)) >= 40);
  assert.ok(check(every(3)) >= 40);
  assert.ok(check(every(25)) >= 20);
  check(every(170));
  assert.equal(check([0]), 1);
  check([0, 1, 2, 3, 300, 301, 690]);
});

Deno.test("columns are copies, and reset forgets every frame", () => {
  const first = analyse([black, white]);
  const second = analyse([white]);
  assert.deepEqual([...first.lumaMean], [0, 1]);
  assert.deepEqual([...second.flickerScore], [0]);
  assert.equal(second.count, 1);
});

Deno.test("a row reads as its columns say", () => {
  const columns = analyse([black, plane((x) => x), plane((x, y) => x ^ y)]);
  const row = emptyFrameSignals();
  for (let frame = 0; frame < 3; frame++) {
    filter.readRow(frame, row);
    const { hashLow, hashHigh, ...scores } = row;
    assert.equal((BigInt(hashHigh) << 32n) | BigInt(hashLow), columns.perceptualHash[frame]);
    assert.deepEqual(scores, {
      ptsMs: columns.ptsMs[frame],
      lumaMean: columns.lumaMean[frame],
      flickerScore: columns.flickerScore[frame],
      ghostingScore: columns.ghostingScore[frame],
      noiseVarianceScore: columns.noiseVarianceScore[frame],
      cutScore: columns.cutScore[frame],
    });
  }
});

Deno.test("the rows of a long decode are given away with their memory, and the next decode does not touch them", () => {
  const decode = (rows: number, stepMs: number) => {
    filter.reset();
    for (let frame = 0; frame < rows; frame++) filter.push(0, frame * stepMs);
    filter.finish();
    return filter.columns();
  };
  const long = decode(5000, 40);
  const times = Float64Array.from({ length: 5000 }, (_, frame) => frame * 40);
  assert.ok(long.ptsMs.buffer.byteLength > long.ptsMs.byteLength, "the memory of the collector itself");
  const short = decode(100, 10);
  assert.equal(short.ptsMs.buffer.byteLength, short.ptsMs.byteLength);
  assert.equal(short.ptsMs[99], 990);
  assert.deepEqual(decode(5000, 40).ptsMs, times);
  assert.deepEqual(long.ptsMs, times);
  assert.equal(long.perceptualHash.length, 5000);
});

Deno.test("a filter that keeps no rows can run without end, and its newest rows can be read", async () => {
  const live = await FrameAnalyser.load({ keepsRows: false });
  const row = emptyFrameSignals();
  for (let frame = 0; frame < 10_000; frame++) {
    live.push(0, frame);
    live.readRow(frame, row);
    assert.equal(row.ptsMs, frame);
  }
  live.readRow(10_000 - 2048, row);
  assert.equal(row.ptsMs, 10_000 - 2048);
  assert.throws(() => live.columns(), /without keeping rows/);
  assert.throws(() => live.readRow(10, row), RangeError);
});

Deno.test("a frame outside staging and a row that is not there are refused", () => {
  filter.reset();
  const last = filter.staging.length - FRAME_BYTES;
  for (const offset of [-1, last + 1, filter.staging.length, NaN, Infinity]) {
    assert.throws(() => filter.push(offset, 0), RangeError, `offset ${offset}`);
  }
  assert.equal(filter.count, 0);
  filter.push(last, 0);
  const row = emptyFrameSignals();
  for (const index of [-1, 1, NaN]) {
    assert.throws(() => filter.readRow(index, row), RangeError, `row ${index}`);
  }
});

Deno.test("on decoded video the hash survives recompression and differs between scenes", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const samples: bigint[] = [];
    const clips = [["bbb480.mp4", "30"], ["intel_bottle.mp4", "5"], ["own_screenrec.mp4", "5"]] as const;
    for (const [clip, seconds] of clips) {
      const source = new URL(`../../../fixtures/clips/${clip}`, import.meta.url).pathname;
      const better = `${folder}/better.mp4`;
      const worse = `${folder}/worse.mp4`;
      const encode = [
        "-t",
        seconds,
        "-i",
        source,
        "-an",
        "-r",
        "4",
        "-c:v",
        "libx264",
        "-preset",
        "ultrafast",
      ];
      await ffmpeg([...encode, "-crf", "18", better]);
      await ffmpeg([...encode, "-crf", "34", "-vf", "scale=426:240", worse]);
      const expected = analyse(await decode(better)).perceptualHash;
      const actual = analyse(await decode(worse)).perceptualHash;
      assert.equal(actual.length, expected.length);
      const distances = Array.from(expected, (hash, frame) => hammingDistance(hash, actual[frame]!)).sort((
        a,
        b,
      ) => a - b);
      const nearlyAll = distances[Math.floor(distances.length * 0.95)]!;
      assert.ok(nearlyAll <= 6, `${clip}: 95 % of the frames change at most ${nearlyAll} bits`);
      // One frame every five seconds of the animation, each from another shot.
      samples.push(...expected.filter((_, frame) => frame % (clip === "bbb480.mp4" ? 20 : 1000) === 0));
    }
    const pairs = samples.flatMap((a, i) => samples.slice(0, i).map((b) => hammingDistance(a, b)));
    const far = pairs.filter((distance) => distance >= 18).length;
    assert.ok(pairs.length >= 28 && far >= pairs.length * 0.9, `${far} of ${pairs.length} pairs: ${pairs}`);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

async function decode(path: string): Promise<Uint8Array[]> {
  const bytes = await ffmpeg([
    "-i",
    path,
    "-vf",
    "scale=320:180:flags=area:in_range=full:out_range=full,format=gray",
    "-f",
    "rawvideo",
    "-",
  ]);
  return Array.from(
    { length: bytes.length / PLANE_BYTES },
    (_, i) => bytes.subarray(i * PLANE_BYTES, (i + 1) * PLANE_BYTES),
  );
}

async function ffmpeg(args: string[]): Promise<Uint8Array> {
  const command = new Deno.Command("ffmpeg", {
    args: ["-v", "error", "-nostdin", "-y", ...args],
    stderr: "inherit",
  });
  const { success, stdout } = await command.output();
  assert.ok(success, `ffmpeg ${args.join(" ")}`);
  return stdout;
}
