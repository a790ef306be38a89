/** What changes at once, passes or covers the picture, and is no fault. */

import assert from "node:assert/strict";
import { CUT_SCORE_THRESHOLD } from "../../../../src/model/frames/signals.ts";
import {
  DrawnFilm,
  HEIGHT,
  landscape,
  type Picture,
  plain,
  WIDTH,
  withBox,
} from "../../../support/kernels/drawn_film.ts";
import { faultsIn } from "../../../support/kernels/found_faults.ts";
import { TEST_SCENES } from "../../../support/kernels/test_scenes.ts";

const LUMA = WIDTH * HEIGHT, CHROMA = LUMA / 4;
const isIn = (n: number, start: number, end: number) => n >= start && n < end;

/** A picture with a box in which both chroma planes are u and v. */
function colouredBox(
  picture: Picture,
  box: { x: number; y: number; width: number; height: number },
  luma: number,
  [u, v]: readonly [number, number],
): Picture {
  const result = withBox(picture, box, luma);
  for (let row = box.y >> 1; row < (box.y + box.height) >> 1; row++) {
    const from = LUMA + row * WIDTH / 2 + (box.x >> 1), to = from + (box.width >> 1);
    result.fill(u, from, to);
    result.fill(v, from + CHROMA, to + CHROMA);
  }
  return result;
}

/** A white page with lines of text between dark margins. */
function page(): Picture {
  let picture = withBox(plain(16), { x: 80, y: 0, width: 202, height: HEIGHT }, 235);
  for (let y = 8; y < 172; y += 8) {
    for (let x = 90 + y % 16; x < 180; x += 5) picture = withBox(picture, { x, y, width: 1, height: 3 }, 30);
  }
  return picture;
}

/** Light from the left, through which the page is seen. */
function veiled(picture: Picture): Picture {
  return Uint8Array.from(picture, (sample, at) => {
    if (at >= LUMA) return sample - 20;
    const x = at % WIDTH;
    return x < 80 ? 200 : x < 282 ? Math.round(114 + 0.45 * sample) : sample + 64;
  });
}

Deno.test("harmless changes: a window of another colour that opens in a still picture is no wrong chroma", async () => {
  const window = colouredBox(page(), { x: 184, y: 20, width: 80, height: 80 }, 220, [60, 160]);
  assert.deepEqual(await faultsIn(90, (n) => isIn(n, 30, 60) ? window : page()), []);
});

Deno.test("harmless changes: coloured light through which a page is seen is no foreign frame", async () => {
  assert.deepEqual(await faultsIn(60, (n) => isIn(n, 30, 32) ? veiled(page()) : page()), []);
});

Deno.test("harmless changes: a thing with stripes that passes a picture at rest brings no old frames", async () => {
  const still = landscape(1);
  const shown = (n: number) => {
    let picture = still;
    [220, 60, 90, 150, 220, 30, 220].forEach((luma, stripe) => {
      const left = Math.max(0, 300 - 60 * (n - 30) + 44 * stripe);
      const right = Math.min(WIDTH, 300 - 60 * (n - 30) + 44 * (stripe + 1));
      if (right > left) {
        picture = withBox(picture, { x: left, y: 0, width: right - left, height: HEIGHT }, luma);
      }
    });
    return picture;
  };
  assert.deepEqual(await faultsIn(70, (n) => n < 30 ? still : shown(n)), []);
});

Deno.test("harmless changes: motion that rests twice and then goes on more slowly is not held", async () => {
  const steps = [6, 0, 6, 0, 6, 1, 3];
  let place = 0;
  const places = Array.from({ length: 80 }, (_, n) => place += steps[n - 30] ?? 4);
  assert.deepEqual(await faultsIn(80, (n) => landscape(1, places[n])), []);
});

Deno.test("harmless changes: one frame of a shaken camera that looks far away is not foreign, in a calm shot it is", async () => {
  const shaken = [0, 7, -6, 5, -7, 6, -5];
  const film = (shake: number) => (n: number) =>
    n === 41 ? landscape(1, 60, 40) : landscape(1, Math.round(shake * shaken[n % 7]!));
  assert.deepEqual(await faultsIn(70, film(0.45)), []);
  assert.deepEqual(await faultsIn(70, film(0)), ["foreign_frame 41-41"]);
});

Deno.test("harmless changes: scenes of generators of test pictures have no cut and no fault", async () => {
  for (const [name, draw] of Object.entries(TEST_SCENES)) {
    assert.deepEqual(await faultsIn(80, draw), [], name);
    const film = await DrawnFilm.of([[80, draw]]);
    film.end();
    const cuts = film.filter.columns().cutScore.filter((score) => score >= CUT_SCORE_THRESHOLD);
    assert.equal(cuts.length, 0, name);
  }
});
