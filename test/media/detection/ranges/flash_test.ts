/** Flashes: light that comes and goes within one shot, and bright moments that are something else. */

import assert from "node:assert/strict";
import {
  DrawnFilm,
  landscape,
  mixed,
  plain,
  relit,
  told,
  withBox,
} from "../../../support/kernels/drawn_film.ts";

const dusk = (n: number) => relit(landscape(1, n), (luma) => 0.6 * luma);
const lit = (n: number, strength: number) => mixed(dusk(n), plain(240), strength);

/** 30 frames of a slow pan with `strengths` of white from frame 10 on. */
async function film(strengths: readonly number[], framesPerSecond = 25): Promise<DrawnFilm> {
  const film = await DrawnFilm.start(framesPerSecond, ["flash"]);
  film.play(40 + strengths.length, (n) => lit(n, strengths[n - 10] ?? 0));
  return film;
}

for (const framesPerSecond of [10, 25, 60]) {
  Deno.test(`flash: one to four frames at ${framesPerSecond} a second, exact to the frame`, async () => {
    for (const frames of [1, 2, 4]) {
      const ranges = (await film(new Array(frames).fill(0.6), framesPerSecond)).end();
      assert.deepEqual(told(ranges), [`flash 10-${9 + frames}`]);
      assert.equal(Math.round(ranges[0]!.startPtsMs), Math.round(10_000 / framesPerSecond));
      assert(ranges[0]!.confidence > 0.7);
    }
  });
}

Deno.test("flash: a white picture without any structure, and a faint one", async () => {
  assert.deepEqual(told((await film([1, 1])).end()), ["flash 10-11"]);
  assert.deepEqual(told((await film([0.05])).end()), ["flash 10-10"]);
  assert.deepEqual(told((await film([0.03])).end()), []);
});

Deno.test("flash: an explosion ends where its light is gone, each light of a strobe is one", async () => {
  assert.deepEqual(told((await film([1, 0.8, 0.6, 0.4, 0.25, 0.1, 0.05])).end()), ["flash 10-14"]);
  assert.deepEqual(told((await film([0.7, 0.7, 0, 0, 0, 0, 0.7, 0.7])).end()), [
    "flash 10-11",
    "flash 16-17",
  ]);
});

Deno.test("flash: light of up to 400 ms is one, of half a second is none", async () => {
  assert.deepEqual(told((await film(new Array(10).fill(0.5))).end()), ["flash 10-19"]);
  assert.deepEqual(told((await film(new Array(12).fill(0.5))).end()), []);
});

const NONE: Readonly<Record<string, (film: DrawnFilm) => void>> = {
  "a lamp that goes on": (film) => film.play(60, (n) => lit(n, n < 20 ? 0 : 0.4)),
  "a lamp that goes off for four frames": (film) => film.play(40, (n) => lit(n, n >= 20 && n < 24 ? 0 : 0.4)),
  "a bright shot of another thing": (film) =>
    film.play(30, (n) => n >= 12 && n < 16 ? landscape(6, n) : dusk(n)),
  "a bright thing that passes": (film) =>
    film.play(
      30,
      (n) =>
        withBox(dusk(n), {
          x: Math.max(0, Math.min(240, 60 * (n - 10))),
          y: 20,
          width: n < 10 || n > 15 ? 1 : 80,
          height: 140,
        }, 235),
    ),
  "light that comes slowly": (film) =>
    film.play(40, (n) => lit(n, Math.max(0, 0.5 - 0.1 * Math.abs(n - 20)))),
  "a cut to a bright shot": (film) => film.play(40, (n) => n < 20 ? dusk(n) : landscape(5, n)),
};

for (const [name, play] of Object.entries(NONE)) {
  Deno.test(`flash: not ${name}`, async () => {
    const film = await DrawnFilm.start(25, ["flash"]);
    play(film);
    assert.deepEqual(told(film.end()), []);
  });
}
