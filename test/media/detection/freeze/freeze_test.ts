/** Freezes: a moving picture that stands still, and what stands still without being frozen. */

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
import { MeasuredFilm, scattered } from "../../../support/kernels/measured_film.ts";

const pan = (n: number) => landscape(1, 2 * n);
const stand = () => pan(29);
const goOn = (n: number) => pan(30 + n);

/** 30 frames of motion, the last one `frames` times more, and motion again. */
function frozen(frames: number, framesPerSecond: number): Promise<DrawnFilm> {
  return DrawnFilm.of([[30, pan], [frames, stand], [30, goOn]], { framesPerSecond });
}

for (const framesPerSecond of [10, 25, 60]) {
  Deno.test(`freeze: at ${framesPerSecond} frames a second it is exact to the frame`, async () => {
    const frames = framesPerSecond;
    const film = await frozen(frames, framesPerSecond);
    const ranges = film.end();
    assert.deepEqual(told(ranges), [`freeze 30-${29 + frames}`]);
    const [{ startPtsMs, endPtsMs, confidence }] = ranges as [typeof ranges[number]];
    assert.deepEqual(Math.round(startPtsMs), Math.round(30_000 / framesPerSecond));
    assert.deepEqual(Math.round(endPtsMs), Math.round((29 + frames) * 1000 / framesPerSecond));
    assert(confidence > 0.7, `${confidence}`);
  });
}

Deno.test("freeze: five frames of 40 ms are one, four are not, nor twelve of 60 a second less one", async () => {
  assert.deepEqual(told((await frozen(5, 25)).end()), ["freeze 30-34"]);
  assert.deepEqual(told((await frozen(4, 25)).end()), []);
  assert.deepEqual(told((await frozen(12, 60)).end()), ["freeze 30-41"]);
  assert.deepEqual(told((await frozen(11, 60)).end()), []);
});

Deno.test("freeze: the codec's noise, and a keyframe that draws the picture again, do not end it", async () => {
  const film = await DrawnFilm.of([
    [30, pan],
    [10, (n) => noisy(pan(29), 0.6, n)],
    [10, () => noisy(pan(29), 3, 50)],
    [30, goOn],
  ]);
  assert.deepEqual(told(film.end()), ["freeze 30-49"]);
});

Deno.test("freeze: a keyframe that takes two frames does not end it, one that takes three does", async () => {
  for (const [frames, expected] of [[2, ["freeze 30-51"]], [3, ["freeze 30-39", "freeze 43-52"]]] as const) {
    const film = await DrawnFilm.of([
      [30, pan],
      [10, stand],
      [frames, (n) => noisy(pan(29), 3, n)],
      [10, () => noisy(pan(29), 3, frames - 1)],
      [30, goOn],
    ]);
    assert.deepEqual(told(film.end()).slice(0, 1), expected.slice(0, 1));
  }
});

Deno.test("freeze: after fast motion the codec leaves more, after slow motion that is motion", async () => {
  for (const [speed, expected] of [[12, ["freeze 30-49"]], [1, []]] as const) {
    const fast = (n: number) => landscape(1, speed * n);
    const film = await DrawnFilm.of([
      [30, fast],
      [20, (n) => noisy(fast(29), 0.85, n)],
      [30, (n) => fast(30 + n)],
    ]);
    assert.deepEqual(told(film.end("freeze")), [...expected]);
  }
});

Deno.test("freeze: sensor noise that stops for 600 ms is one", async () => {
  const room = (n: number) => noisy(landscape(2), 0.6, n);
  const film = await DrawnFilm.of([
    [40, room],
    [16, () => room(39)],
    [40, (n) => room(40 + n)],
  ]);
  assert.deepEqual(told(film.end("freeze")), ["freeze 40-55"]);
});

Deno.test("freeze: one after half a second in which the motion nearly dies down", async () => {
  const slow = (n: number) => landscape(1, 200 + n);
  const film = await DrawnFilm.of([
    [30, (n) => landscape(1, 12 * n)],
    [9, slow],
    [20, () => slow(8)],
    [30, (n) => slow(9 + n)],
  ]);
  assert.deepEqual(told(film.end("freeze")), ["freeze 39-58"]);
});

Deno.test("freeze: one that a cut ends", async () => {
  const film = await DrawnFilm.of([
    [30, pan],
    [12, stand],
    [30, (n) => landscape(3, 2 * n)],
  ]);
  assert.deepEqual(told(film.end("freeze")), ["freeze 30-41"]);
});

Deno.test("freeze: a picture that stays until the end is one after a second", async () => {
  for (const [frames, expected] of [[24, []], [26, ["freeze 30-55"]]] as const) {
    const film = await DrawnFilm.of([
      [30, pan],
      [frames, stand],
    ]);
    assert.deepEqual(told(film.end()), [...expected]);
  }
});

Deno.test("freeze: a subtitle that comes and goes does not end it", async () => {
  const subtitled = () => withBox(pan(29), { x: 40, y: 150, width: 240, height: 14 }, 230);
  const film = await DrawnFilm.of([[30, pan], [10, stand], [12, subtitled], [10, stand], [30, goOn]]);
  assert.deepEqual(told(film.end("freeze")), ["freeze 30-61"]);
});

const NONE: Readonly<Record<string, (film: DrawnFilm) => void>> = {
  "a slide between two moving shots": (film) => {
    film.play(30, pan);
    film.play(40, () => landscape(4));
    film.play(30, pan);
  },
  "a slide whose text changes": (film) => {
    const slide = landscape(4);
    for (let n = 0; n < 6; n++) {
      film.play(20, () => withBox(slide, { x: 20, y: 10 + 20 * n, width: 200, height: 12 }, 230));
    }
  },
  "a screen with a small window that moves and stops": (film) => {
    const window = (n: number) => withBox(plain(200), { x: 20 + 2 * n, y: 40, width: 60, height: 40 }, 60);
    film.play(30, window);
    film.play(30, () => window(29));
    film.play(30, (n) => window(30 + n));
  },
  "a still room with sensor noise": (film) => film.play(120, (n) => noisy(landscape(2), 2, n)),
  "a still room whose noise the codec leaves out for half a second": (film) => {
    film.play(40, (n) => noisy(landscape(2), 0.6, n));
    film.play(12, () => noisy(landscape(2), 0.6, 39));
    film.play(40, (n) => noisy(landscape(2), 0.6, 40 + n));
  },
  "a camera that comes to rest and stays": (film) => {
    film.play(30, (n) => landscape(1, 60 * Math.sin(n / 19)));
    film.play(30, (n) => noisy(landscape(1, 60), 0.5, n));
    film.play(20, (n) => withBox(landscape(1, 60), { x: 10 + n, y: 20, width: 16, height: 30 }, 30));
  },
  "a still shot that begins some frames after a cut": (film) => {
    film.play(30, pan);
    film.play(1, () => landscape(4));
    film.play(1, () => noisy(landscape(4), 4, 1));
    film.play(40, () => noisy(landscape(4), 3, 2));
    film.play(30, (n) => landscape(4, 2 * n));
  },
  "6 frames a second shown at 30": (film) => film.play(120, (n) => pan(5 * Math.floor(n / 5))),
  "a title between two fades": (film) => {
    const title = withBox(plain(220), { x: 60, y: 60, width: 200, height: 40 }, 60);
    film.play(20, (n) => relit(title, (luma) => 235 + (luma - 235) * n / 20));
    film.play(40, () => title);
    film.play(20, (n) => relit(title, (luma) => luma + (235 - luma) * n / 20));
  },
  "a fade to white that stays white": (film) => {
    film.play(30, pan);
    film.play(20, (n) => relit(pan(30 + n), (luma) => luma + (235 - luma) * (n + 1) / 20));
    film.play(20, () => plain(235));
    film.play(20, (n) => relit(pan(70 + n), (luma) => 235 + (luma - 235) * (n + 1) / 20));
  },
};

for (const [name, play] of Object.entries(NONE)) {
  Deno.test(`freeze: none in ${name}`, async () => {
    const film = await DrawnFilm.start(name.includes("30") ? 30 : 25);
    play(film);
    assert.deepEqual(told(film.end("freeze")), []);
  });
}

Deno.test("freeze: nothing of an earlier stream is left", async () => {
  const film = await frozen(20, 25);
  film.filter.reset();
  film.detectors.reset();
  film.play(3, (n): Picture => pan(n));
  assert.deepEqual(film.end(), []);
});

Deno.test("freeze: in a second stream the same is found as in the first", () => {
  const film = new MeasuredFilm("freeze");
  const level = (n: number) => (cell: number) => 120 + (cell % 2 ? 60 : -60) + 3 * scattered(n, cell);
  const play = () => {
    film.play(5, (n) => ({ mean: level(n), moved: () => 5 }));
    film.play(12, () => ({ mean: level(4), moved: () => 0 }));
    film.play(30, (n) => ({ mean: level(5 + n), moved: () => 5 }));
    return film.end();
  };
  const first = play();
  film.again();
  assert.deepEqual(play(), first);
  assert.deepEqual(first, ["freeze 5-16"]);
});
