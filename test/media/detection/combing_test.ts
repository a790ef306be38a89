/** Combing: frames of two moments are found, and patterns, text, noise and cuts are none. */

import assert from "node:assert/strict";
import { ARTIFACT_KINDS } from "../../../src/model/frames/detected_range.ts";
import {
  DrawnFilm,
  HEIGHT,
  landscape,
  noisy,
  type Picture,
  plain,
  WIDTH,
} from "../../support/kernels/drawn_film.ts";
import { seededRandom } from "../../support/seeded_random.ts";

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
