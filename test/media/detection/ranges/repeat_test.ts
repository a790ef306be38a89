/** Repeats: a stretch that plays again at once, and pictures that only look the same again. */

import assert from "node:assert/strict";
import {
  DrawnFilm,
  landscape,
  mixed,
  noisy,
  type Picture,
  plain,
  relit,
  told,
  withBox,
} from "../../../support/kernels/drawn_film.ts";

const pan = (n: number) => landscape(1, 3 * n);

/** 20 frames, then `period` frames `copies` times, then 30 frames more. */
async function looped(period: number, copies: number, framesPerSecond = 25, noise = 0): Promise<DrawnFilm> {
  const film = await DrawnFilm.start(framesPerSecond, ["repeat"]);
  const show = (n: number): Picture => noise > 0 ? noisy(pan(n), noise, film.at) : pan(n);
  film.play(20, show);
  film.play(copies * period, (n) => show(20 + n % period));
  film.play(30, (n) => show(20 + period + n));
  return film;
}

for (const framesPerSecond of [10, 25, 60]) {
  Deno.test(`repeat: a stretch that plays three times at ${framesPerSecond} frames a second`, async () => {
    const ranges = (await looped(24, 3, framesPerSecond)).end();
    assert.deepEqual(told(ranges), ["repeat 20-91"]);
    assert.equal(Math.round(ranges[0]!.startPtsMs), Math.round(20_000 / framesPerSecond));
    assert.equal(Math.round(ranges[0]!.endPtsMs), Math.round(91_000 / framesPerSecond));
    assert(ranges[0]!.confidence > 0.7);
  });
}

Deno.test("repeat: twice is enough, from nine frames on; the noise of the codec does not hide it", async () => {
  assert.deepEqual(told((await looped(30, 2)).end()), ["repeat 20-79"]);
  assert.deepEqual(told((await looped(9, 2)).end()), ["repeat 20-37"]);
  assert.deepEqual(told((await looped(30, 2, 25, 4)).end()), ["repeat 20-79"]);
});

Deno.test("repeat: a stretch of nine seconds is remembered", async () => {
  assert.deepEqual(told((await looped(225, 2)).end()), ["repeat 20-469"]);
});

for (const frames of [600, 1500, 20_000]) {
  Deno.test(`repeat: one of ${frames} frames is told from its beginning`, { timeout: 300_000 }, async () => {
    const pictures = Array.from({ length: 25 }, (_, n) => pan(20 + n));
    const film = await DrawnFilm.start(25, ["repeat"]);
    film.play(20, pan);
    film.play(frames, (n) => pictures[n % 25]!);
    film.play(30, (n) => pan(45 + n));
    const ranges = film.end();
    assert.deepEqual(told(ranges), [`repeat 20-${19 + frames}`]);
    assert.equal(ranges[0]!.startPtsMs, 800);
    assert.equal(ranges[0]!.endPtsMs, (19 + frames) * 40);
  });
}

Deno.test("repeat: one that lasts until the end", async () => {
  const film = await DrawnFilm.start(25, ["repeat"]);
  film.play(100, (n) => pan(n % 25));
  assert.deepEqual(told(film.end()), ["repeat 0-99"]);
});

const NONE: Readonly<Record<string, (n: number) => Picture>> = {
  "a still picture": () => landscape(2),
  "a still picture with noise": (n) => noisy(landscape(2), 4, n),
  "a cursor that blinks": (n) =>
    n % 30 < 15 ? landscape(2) : withBox(landscape(2), { x: 90, y: 80, width: 3, height: 14 }, 20),
  "light that flickers over a still picture, again and again in the same way": (n) =>
    relit(landscape(2), (luma) => luma - [0, 16, 8, 24, 0, 20, 4, 12, 24, 2][n % 10]!),
  "flashes over a still picture": (n) => n % 10 === 0 ? mixed(landscape(2), plain(240), 0.6) : landscape(2),
  "a pan": (n) => landscape(2, 3 * n),
  "two cameras in turn": (n) => Math.floor(n / 20) % 2 === 0 ? landscape(1, n) : landscape(2, n),
  "half a stretch again": (n) => pan(n < 60 ? n : n - 30 < 50 ? n - 30 : n + 200),
};

for (const [name, draw] of Object.entries(NONE)) {
  Deno.test(`repeat: not ${name}`, async () => {
    const film = await DrawnFilm.start(25, ["repeat"]);
    film.play(150, draw);
    assert.deepEqual(told(film.end()), []);
  });
}
