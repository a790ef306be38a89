/** Combing: frames of two moments are found, and patterns, text, noise and cuts are none. */

import assert from "node:assert/strict";
import { ArtifactMeasures, MEASURES } from "../../../../src/media/detection/faults/artifact_measures.ts";
import { MEASURE_COUNT } from "../../../../src/media/kernels/frame_filter.ts";
import { CombedFrames } from "../../../../src/media/detection/faults/combed_frames.ts";
import { ARTIFACT_KINDS } from "../../../../src/model/frames/detected_range.ts";
import {
  DrawnFilm,
  HEIGHT,
  landscape,
  noisy,
  type Picture,
  plain,
  WIDTH,
} from "../../../support/kernels/drawn_film.ts";
import { seededRandom } from "../../../support/seeded_random.ts";

const pan = (n: number) => landscape(2, 3 * n);

/** The even lines of one picture and the odd ones of another. */
function woven(even: Picture, odd: Picture): Picture {
  const picture = even.slice();
  const rows = picture.length / (WIDTH / 2);
  const lumaRows = HEIGHT;
  for (let row = 1; row < lumaRows; row += 2) {
    picture.set(odd.subarray(row * WIDTH, (row + 1) * WIDTH), row * WIDTH);
  }
  for (let row = 2 * lumaRows + 1; row < rows; row += 2) {
    picture.set(odd.subarray(row * WIDTH / 2, (row + 1) * WIDTH / 2), row * WIDTH / 2);
  }
  return picture;
}

/** The numbers of the frames that are combing, as ranges, and the other kinds. */
function combed(film: DrawnFilm): string[] {
  film.end();
  const { count, artifactKind } = film.filter.columns();
  const found: string[] = [];
  for (let start = 0, end = 1; start < count; start = end++) {
    while (end < count && artifactKind[end] === artifactKind[start]) end++;
    if (artifactKind[start] !== 0) {
      found.push(`${ARTIFACT_KINDS[artifactKind[start]! - 1]} ${start}-${end - 1}`);
    }
  }
  return found;
}

async function combedIn(frames: number, draw: (n: number) => Picture): Promise<string[]> {
  return combed(await DrawnFilm.of([[frames, draw]]));
}

/** A pan of 60 frames, of which 20 to 39 are woven of themselves and the frame `back` before. */
const wovenPan = (back: number) => (n: number) => n >= 20 && n < 40 ? woven(pan(n), pan(n - back)) : pan(n);

Deno.test("fields of two moments are combing in exactly the frames that have them, whichever field is older", async () => {
  for (const back of [1, 2, 3]) {
    assert.deepEqual(await combedIn(60, wovenPan(back)), ["combing 20-39"], `odd lines ${back} before`);
    const even = (n: number) => n >= 20 && n < 40 ? woven(pan(n - back), pan(n)) : pan(n);
    assert.deepEqual(await combedIn(60, even), ["combing 20-39"], `even lines ${back} before`);
  }
});

Deno.test("fields half a frame apart are combing, as of an interlaced camera", async () => {
  const half = (n: number) => woven(landscape(2, 4 * n), landscape(2, 4 * n + 2));
  assert.deepEqual(await combedIn(40, half), ["combing 1-39"]);
});

Deno.test("fields in a wrong order are combing", async () => {
  const turned = (n: number) => n >= 20 && n < 40 ? woven(pan(n), pan(n % 2 === 0 ? n + 1 : n - 1)) : pan(n);
  assert.deepEqual(await combedIn(60, turned), ["combing 20-39"]);
});

Deno.test("a comb under noise is found, and one that rests for two frames goes on", async () => {
  const noise = (n: number) => noisy(wovenPan(2)(n), 4, n);
  assert.deepEqual(await combedIn(60, noise), ["combing 20-39"]);
  const resting = (n: number) => {
    const at = n < 30 ? n : Math.max(29, n - 2);
    return n === 30 || n === 31 ? pan(29) : wovenPan(1)(at);
  };
  assert.deepEqual(await combedIn(60, resting), ["combing 20-41"]);
});

/** The upper `rows` of one picture, and below them another one. */
function below(upper: Picture, rows: number, lower: Picture): Picture {
  const picture = lower.slice();
  picture.set(upper.subarray(0, rows * WIDTH));
  return picture;
}

Deno.test("a comb of a part of the height is found, wherever it is", async () => {
  for (const [from, to] of [[0, 36], [72, 108], [144, 180]] as const) {
    const part = (n: number) => below(below(pan(0), from, wovenPan(2)(n)), to, pan(0));
    assert.deepEqual(await combedIn(60, part), ["combing 20-39"], `rows ${from} to ${to}`);
  }
});

/** Alternation, fields apart, fields before; how far samples stick out along rows; and contrast. */
type Measured = readonly [number, number, number, number?, number?];

/** Whether each frame is combed where these were measured. */
function judged(
  frames: readonly Measured[],
  cuts: readonly number[] = [],
): string {
  const measures = new ArtifactMeasures(), detector = new CombedFrames(measures);
  const row = new Float32Array(MEASURE_COUNT);
  let found = "";
  const step = () => {
    detector.step(found.length, cuts.includes(found.length));
    found += detector.strength > 0 ? "x" : ".";
  };
  for (const [alternation, apart, before, spikesAcross = 0, contrast = 0] of frames) {
    row[MEASURES.alternation] = alternation;
    row[MEASURES.fieldsApart] = apart;
    row[MEASURES.fieldsBefore] = before;
    row[MEASURES.spikesAcross] = spikesAcross;
    row[MEASURES.contrast] = contrast;
    measures.push(row);
    if (measures.count > 5) step();
  }
  while (found.length < measures.count) step();
  return found;
}

const times = <T>(count: number, value: T): T[] => Array.from({ length: count }, () => value);

Deno.test("lines that alternate at once need less to be combing: the same field is always a little older", () => {
  const still = times(8, [0.01, 0, 0] as const);
  const check = (frame: readonly [number, number, number]) =>
    judged([...still, ...times(8, frame), ...still]);
  assert.equal(check([0.2, 0.09, 0.13]), "........xxxxxxxx........");
  assert.equal(check([0.2, -0.09, 0.13]), "........xxxxxxxx........");
  assert.equal(check([0.2, 0.05, 0.13]), ".".repeat(24));
  assert.equal(check([0.2, 0.09, 0.08]), ".".repeat(24));
  const blended = [...still, [0.06, 0, 0] as const, [0.19, 0.05, 0.1] as const];
  assert.match(
    judged([...blended, ...times(8, [0.4, 0.09, 0.13] as const), ...still]),
    /^\.{9,10}x{8,9}\.{8}$/,
  );
  const restless = times(8, [0.03, 0, 0] as const);
  assert.equal(judged([...restless, ...times(8, [0.2, 0.09, 0.13] as const)]), ".".repeat(16));
  const inTurn = times(8, 0).map((_, n) => [0.2, n % 2 === 0 ? 0.09 : -0.09, 0.13] as const);
  assert.equal(judged([...still, ...inTurn]), ".".repeat(16));
});

Deno.test("less is enough to be combing in eight frames in a row, as soon as five later ones show them", () => {
  const film = (frames: number, apart: number) =>
    judged([...times(3, [0.3, 0, 0] as const), ...times(frames, [0.3, apart, 0] as const)]);
  assert.equal(film(8, -0.22), ".....xxxxxx");
  assert.equal(film(20, 0.22), "....." + "x".repeat(18));
  assert.equal(film(7, 0.22), ".".repeat(10));
  assert.equal(film(20, 0.18), ".".repeat(23));
});

Deno.test("a comb that came at once goes on while its lines alternate", () => {
  const film = (...rest: number[]) =>
    judged([
      ...times(8, [0.02, 0, 0] as const),
      ...times(5, [1, 0.4, 0.3] as const),
      ...rest.map((alternation) => [alternation, 0.02, 0.02] as const),
    ]);
  assert.equal(film(0.3, 0.2, 0.16, 0.01, 0.01), "........xxxxxxxx..");
  assert.equal(film(0.3, 0.1, 0.3, 0.01, 0.01), "........xxxxxx....");
});

Deno.test("fine texture that alternates a little while it moves is no combing, nor where it came at once; more that came at once is", () => {
  const film = (alternation: number, apart: number, inTurn = 1) =>
    judged(times(20, 0).map((_, n) => [alternation, apart * inTurn ** n, 0.2, 8] as const));
  assert.equal(film(0.5, -0.35), ".".repeat(20));
  assert.equal(film(0.5, -0.25), ".".repeat(20));
  assert.equal(film(0.5, 0.35, -1), ".".repeat(20));
  assert.equal(film(2, -0.35), "." + "x".repeat(19));
  const still = times(8, [0.01, 0, 0, 8] as const);
  assert.equal(judged([...still, ...times(8, [0.5, 0.35, 0.2, 8] as const)]), ".".repeat(16));
  assert.equal(judged([...still, ...times(8, [1, 0.35, 0.2, 8] as const)]), "........xxxxxxxx");
});

Deno.test("fine lines that a flash had covered came at no once: the picture before did not show them", () => {
  const film = (contrast: number) => {
    const before = times(8, [0.01, 0, 0, 8, contrast] as const);
    return judged([...before, ...times(8, [1, 0.35, 0.2, 8, 20] as const)]);
  };
  assert.equal(film(11), ".".repeat(16));
  assert.equal(film(13), "........xxxxxxxx");
});

Deno.test("a pattern that came at once and moves later on is no combing", () => {
  const film = (waits: number) => {
    const waiting = times(waits, [6, 0, 0] as const).map((_, n) =>
      [6, n % 2 === 0 ? 0.03 : -0.03, 0.2] as const
    );
    return judged([...times(8, [0, 0, 0] as const), ...waiting, ...times(12, [6, -0.09, 0.2] as const)]);
  };
  assert.equal(film(30), ".".repeat(50));
  assert.match(film(4), /^\.{8,12}x{12,}$/);
});

Deno.test("what differs across a new picture says nothing of the fields", () => {
  const noise = times(8, 0).map((_, n) => [2, 0.01, n % 2 === 0 ? 0.3 : 0.24] as const);
  const cut = [1.8, 0, -0.8] as const;
  assert.equal(judged([...noise, cut, ...noise], [8]), ".".repeat(17));
});

/** Rows that are light in turn of `period`, on moving hills, `speed` rows a frame down. */
function striped(n: number, period: number, speed: number): Picture {
  const picture = landscape(3, 2 * n).slice();
  for (let at = 0; at < WIDTH * HEIGHT; at++) {
    const row = Math.floor(at / WIDTH) + speed * n;
    if (row % period === 0) picture[at] = Math.min(235, picture[at]! + 60);
  }
  return picture;
}

/** Small glyphs of random strokes, `speed` rows a frame up. */
function text(n: number, speed: number): Picture {
  const picture = plain(225);
  for (let row = 0; row < HEIGHT; row++) {
    const line = row + speed * n, random = seededRandom(1 + Math.floor(line / 9) * 16 + line % 9);
    for (let glyph = 0; line % 9 < 7 && glyph < 40; glyph++) {
      const strokes = Math.floor(random() * 64);
      for (let x = 0; x < 6; x++) if (strokes >> x & 1) picture[row * WIDTH + glyph * 8 + x] = 30;
    }
  }
  return picture;
}

Deno.test("patterns of lines and text that scrolls or stands are no combing", async () => {
  for (const [period, speed] of [[2, 0], [2, 1], [2, 2], [3, 0], [3, 3], [4, 0], [4, 1], [4, 2]] as const) {
    assert.deepEqual(await combedIn(40, (n) => striped(n, period, speed)), [], `${period}, ${speed}`);
  }
  for (const speed of [0, 1, 2, 3, 5]) {
    assert.deepEqual(await combedIn(40, (n) => text(n, speed)), [], `text, ${speed}`);
  }
});

Deno.test("noise, cuts between pictures of lines, and a lone woven frame are no combing", async () => {
  const noise = (reach: number) => (n: number) => noisy(pan(n), reach, n);
  for (const reach of [6, 20, 60]) assert.deepEqual(await combedIn(60, noise(reach)), [], `${reach}`);
  const cuts = await DrawnFilm.of([[20, (n) => striped(n, 2, 0)], [20, (n) => text(n, 0)], [20, pan]]);
  assert.deepEqual(combed(cuts).filter((fault) => fault.startsWith("combing")), []);
  const lone = await combedIn(60, (n) => n === 30 ? woven(pan(n), pan(n - 2)) : pan(n));
  assert.deepEqual(lone.filter((fault) => fault.startsWith("combing")), []);
});
