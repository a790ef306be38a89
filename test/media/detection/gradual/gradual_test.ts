/** Gradual transitions: one picture becomes another step by step; and movement that only looks so. */

import assert from "node:assert/strict";
import type { DetectedRange } from "../../../../src/model/frames/detected_range.ts";
import {
  DrawnFilm,
  HEIGHT,
  landscape,
  mixed,
  noisy,
  type Picture,
  plain,
  relit,
  told,
  WIDTH,
  withBox,
} from "../../../support/kernels/drawn_film.ts";

const LUMA = WIDTH * HEIGHT;

/** How `from` becomes `to` at a progress between 0 and 1. */
type Change = (from: Picture, to: Picture, progress: number) => Picture;

const dissolve: Change = mixed;

const wipe: Change = (from, to, progress) => {
  const picture = from.slice();
  const luma = Math.round(progress * WIDTH), chroma = Math.round(progress * WIDTH / 2);
  for (let row = 0; row < HEIGHT; row++) {
    picture.set(to.subarray(row * WIDTH, row * WIDTH + luma), row * WIDTH);
  }
  for (let at = WIDTH * HEIGHT; at < picture.length; at += WIDTH / 2) {
    picture.set(to.subarray(at, at + chroma), at);
  }
  return picture;
};

/** The new picture moves in from the left: behind the old one that it pushes out, or over it. */
function slide(pushes: boolean): Change {
  return (from, to, progress) => {
    const place = 2 * Math.round(progress * WIDTH / 2);
    const picture = from.slice();
    for (
      const [at, end, width, moved] of [[0, LUMA, WIDTH, place], [LUMA, from.length, WIDTH / 2, place / 2]]
    ) {
      for (let row = at!; row < end!; row += width!) {
        if (pushes) picture.set(from.subarray(row, row + width! - moved!), row + moved!);
        picture.set(to.subarray(row + width! - moved!, row + width!), row);
      }
    }
    return picture;
  };
}

/** 40 frames of a landscape with some noise, `frames` mixed frames, 40 frames of another landscape. */
async function between(frames: number, change: Change, framesPerSecond = 25): Promise<DrawnFilm> {
  const film = await DrawnFilm.start(framesPerSecond, ["gradual_transition"]);
  const from = (n: number) => noisy(landscape(1), 3, n), to = (n: number) => noisy(landscape(4), 3, 500 + n);
  film.play(40, from);
  film.play(frames, (n) => change(from(40 + n), to(n), (n + 1) / (frames + 1)));
  film.play(40, (n) => to(frames + n));
  return film;
}

for (const [name, change] of Object.entries({ dissolve, wipe, push: slide(true) })) {
  for (const framesPerSecond of [12, 25, 60]) {
    Deno.test(`gradual: a ${name} of 0.8 s at ${framesPerSecond} frames a second, exact to the frame`, async () => {
      const frames = Math.round(0.8 * framesPerSecond);
      const ranges = (await between(frames, change, framesPerSecond)).end();
      assert.deepEqual(told(ranges), [`gradual_transition 40-${39 + frames}`]);
      assert.equal(Math.round(ranges[0]!.startPtsMs), Math.round(40_000 / framesPerSecond));
      assert.equal(Math.round(ranges[0]!.endPtsMs), Math.round((39 + frames) * 1000 / framesPerSecond));
      assert(ranges[0]!.confidence > 0.7);
    });
  }
}

Deno.test("gradual: a slide over the old picture, of which the first frames show little", async () => {
  const [{ startFrame, endFrame }, ...others] = (await between(20, slide(false))).end() as [DetectedRange];
  assert.deepEqual(others, []);
  assert.ok(startFrame >= 40 && startFrame <= 45, `begins at ${startFrame}`);
  assert.ok(endFrame >= 57 && endFrame <= 60, `ends at ${endFrame}`);
});

Deno.test("gradual: a dissolve of 6 frames, and one of two seconds", async () => {
  assert.deepEqual(told((await between(6, dissolve)).end()), ["gradual_transition 40-45"]);
  assert.deepEqual(told((await between(50, dissolve)).end()), ["gradual_transition 40-89"]);
});

/** A fade out of 12 frames, `hold` frames of one colour, a fade in of 12. */
async function fade(colour: Picture, hold: number): Promise<string[]> {
  const film = await DrawnFilm.start(25, ["gradual_transition"]);
  film.play(30, (n) => noisy(landscape(1), 3, n));
  film.play(12, (n) => mixed(landscape(1), colour, (n + 1) / 13));
  film.play(hold, () => colour);
  film.play(12, (n) => mixed(colour, landscape(4), (n + 1) / 13));
  film.play(30, (n) => noisy(landscape(4), 3, n));
  return told(film.end());
}

Deno.test("gradual: a fade out and in is one with up to half a second between, else two", async () => {
  for (const colour of [plain(16), plain(235), plain(90, 100, 160)]) {
    assert.deepEqual(await fade(colour, 12), ["gradual_transition 30-65"]);
    assert.deepEqual(await fade(colour, 14), ["gradual_transition 30-41", "gradual_transition 56-67"]);
  }
});

Deno.test("gradual: a fade in at the start, after some black", async () => {
  const film = await DrawnFilm.start(25, ["gradual_transition"]);
  film.play(8, () => plain(16));
  film.play(15, (n) => mixed(plain(16), landscape(1), (n + 1) / 16));
  film.play(30, (n) => noisy(landscape(1), 3, n));
  assert.deepEqual(told(film.end()), ["gradual_transition 8-22"]);
});

Deno.test("gradual: a fade in whose first frame alone is black", async () => {
  const film = await DrawnFilm.start(25, ["gradual_transition"]);
  film.play(16, (n) => mixed(plain(16), landscape(1), n / 16));
  film.play(30, (n) => noisy(landscape(1), 3, n));
  assert.deepEqual(told(film.end()), ["gradual_transition 1-15"]);
});

Deno.test("gradual: not a change from a picture of which a video shows only its first frame, or to one of which only its last", async () => {
  for (const [before, after] of [[1, 40], [40, 1], [2, 40]] as const) {
    const film = await DrawnFilm.start(25, ["gradual_transition"]);
    film.play(before, () => landscape(1));
    film.play(20, (n) => noisy(mixed(landscape(1), landscape(4), (n + 1) / 21), 3, n));
    film.play(after, (n) => noisy(landscape(4), 3, n));
    assert.deepEqual(
      told(film.end()),
      before === 2 ? ["gradual_transition 2-21"] : [],
      `${before}, ${after}`,
    );
  }
});

const NONE: Readonly<Record<string, (n: number) => Picture>> = {
  "a hard cut": (n) => landscape(n < 40 ? 1 : 4, n / 4),
  "a slow pan": (n) => landscape(1, n),
  "a fast pan that begins and ends": (n) => landscape(1, 12 * Math.max(0, Math.min(15, n - 30))),
  "a lamp that is dimmed in a second": (n) =>
    relit(landscape(1), (luma) => luma * (1 - 0.5 * Math.max(0, Math.min(1, (n - 30) / 25)))),
  "a thing that crosses the picture": (n) =>
    withBox(
      landscape(1),
      { x: Math.max(0, Math.min(220, 4 * (n - 20))), y: 40, width: 100, height: 100 },
      230,
    ),
  "noise": (n) => noisy(landscape(1), 12, n),
};

for (const [name, draw] of Object.entries(NONE)) {
  Deno.test(`gradual: not ${name}`, async () => {
    const film = await DrawnFilm.start(25, ["gradual_transition"]);
    film.play(90, draw);
    assert.deepEqual(told(film.end()), []);
  });
}
