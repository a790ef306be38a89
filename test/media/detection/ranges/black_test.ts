/** Black: frames without light, and dark scenes that are not black. */

import assert from "node:assert/strict";
import {
  DrawnFilm,
  landscape,
  noisy,
  type Picture,
  plain,
  relit,
  told,
  withBox,
} from "../../../support/kernels/drawn_film.ts";

async function between(frames: number, black: (n: number) => Picture, framesPerSecond = 25) {
  const film = await DrawnFilm.of([
    [10, (n) => landscape(1, 2 * n)],
    [frames, black],
    [10, (n) => landscape(2, 2 * n)],
  ], { framesPerSecond, wanted: ["black"] });
  return film.end();
}

for (const framesPerSecond of [10, 60]) {
  Deno.test(`black: exact to the frame at ${framesPerSecond} frames a second`, async () => {
    const ranges = await between(7, () => plain(16), framesPerSecond);
    assert.deepEqual(told(ranges), ["black 10-16"]);
    assert.deepEqual(Math.round(ranges[0]!.endPtsMs), Math.round(16_000 / framesPerSecond));
    assert.deepEqual(ranges[0]!.confidence, 1);
  });
}

Deno.test("black: black of full range, lifted black, and noise of the sensor", async () => {
  assert.deepEqual(told(await between(5, () => plain(0))), ["black 10-14"]);
  assert.deepEqual(told(await between(5, () => plain(22))), ["black 10-14"]);
  assert.deepEqual(told(await between(5, (n) => noisy(plain(20), 4, n))), ["black 10-14"]);
  assert.deepEqual(told(await between(1, () => plain(16))), ["black 10-10"]);
});

Deno.test("black: a little structure is black if it stands still", async () => {
  const stained = (level: number) => withBox(plain(18), { x: 32, y: 30, width: 64, height: 60 }, level);
  assert.deepEqual(told(await between(6, () => stained(24))), ["black 10-15"]);
  assert.deepEqual(told(await between(6, () => stained(26))), []);
  assert.deepEqual(told(await between(6, (n) => stained(23 + n % 2))), []);
});

Deno.test("black: the dark ends of fades are left out", async () => {
  const dim = (n: number) => relit(landscape(1, n), (luma) => 16 + (luma - 16) * (1 - (n + 1) / 11));
  const film = await DrawnFilm.start(25, ["black"]);
  film.play(10, (n) => landscape(1, n));
  film.play(10, dim);
  film.play(6, () => plain(16));
  film.play(10, (n) => dim(9 - n));
  assert.deepEqual(told(film.end()), ["black 20-25"]);
});

Deno.test("black: it ends with the stream", async () => {
  const film = await DrawnFilm.of([
    [5, () => landscape(1)],
    [10, () => plain(16)],
  ]);
  assert.deepEqual(told(film.end("black")), ["black 5-14"]);
});

const NONE: Readonly<Record<string, (n: number) => Picture>> = {
  "a dark gray": () => plain(25),
  "a dark scene": (n) => relit(landscape(1, n), (luma) => 16 + (luma - 16) * 0.08),
  "a small bright thing in the dark": (n) =>
    withBox(plain(16), { x: 40 + n, y: 60, width: 5, height: 4 }, 200),
  "a sky of faint stars": () =>
    Array.from({ length: 24 }, (_, n) => ({ x: 13 * n, y: 7 * n + 5, width: 1, height: 1 }))
      .reduce((sky, star) => withBox(sky, star, 33), plain(16)),
  "a dark blue": () => plain(18, 150, 118),
};

for (const [name, draw] of Object.entries(NONE)) {
  Deno.test(`black: not ${name}`, async () => assert.deepEqual(told(await between(20, draw)), []));
}
