/** Faults of frames: each kind is found where it is, and nothing is where only the content changes. */

import assert from "node:assert/strict";
import { ARTIFACT_KINDS } from "../../../../src/model/frames/detected_range.ts";
import { ARTIFACT_SCORE_THRESHOLD } from "../../../../src/model/frames/signals.ts";
import { faultsIn } from "../../../support/kernels/found_faults.ts";
import { seededRandom } from "../../../support/seeded_random.ts";
import {
  DrawnFilm,
  HEIGHT,
  landscape,
  mixed,
  noisy,
  type Picture,
  plain,
  relit,
  salted,
  WIDTH,
  withBox,
} from "../../../support/kernels/drawn_film.ts";

const LUMA = WIDTH * HEIGHT;
const pan = (n: number) => landscape(1, n);

/** A pan of 60 frames; from frame 25 on, `frames` of them are spoiled. */
function spoiled(frames: number, spoil: (picture: Picture, n: number) => Picture): Promise<string[]> {
  return faultsIn(60, (n) => n >= 25 && n < 25 + frames ? spoil(pan(n), n - 25) : pan(n));
}

/** Rows of luma from `top` on of one level, with chroma of another. */
function lowerPart(picture: Picture, top: number, luma: number, chroma: number): Picture {
  const result = picture.slice();
  result.fill(luma, top * WIDTH, LUMA);
  for (const plane of [LUMA, LUMA + LUMA / 4]) {
    result.fill(chroma, plane + top / 2 * WIDTH / 2, plane + LUMA / 4);
  }
  return result;
}

Deno.test("artifacts: one or two frames of another picture are foreign, three are not", async () => {
  assert.deepEqual(await spoiled(1, () => landscape(5)), ["foreign_frame 25-25"]);
  assert.deepEqual(await spoiled(2, () => landscape(5)), ["foreign_frame 25-26"]);
  assert.deepEqual(await spoiled(3, () => landscape(5)), []);
});

Deno.test("artifacts: frames that changed places", async () => {
  assert.deepEqual(await faultsIn(60, (n) => pan(n >= 24 && n < 36 ? n ^ 1 : n)), ["foreign_frame 24-35"]);
});

Deno.test("artifacts: brightness that alternates, each frame or every second", async () => {
  for (const hold of [1, 2]) {
    const found = await spoiled(
      16,
      (picture, n) => relit(picture, (luma) => luma * (Math.floor(n / hold) % 2 === 0 ? 1.15 : 0.85)),
    );
    assert.equal(found.length, 1, `${found}`);
    assert.match(found[0]!, hold === 1 ? /^flicker 25-40$/ : /^flicker 25-40$/);
  }
});

Deno.test("artifacts: decoder gray and a lost lower part are decode damage, until the picture comes back", async () => {
  assert.deepEqual(await spoiled(8, () => plain(128)), ["decode_damage 25-32"]);
  assert.deepEqual(await spoiled(8, (picture) => lowerPart(picture, 60, 128, 128)), ["decode_damage 25-32"]);
  assert.deepEqual(await spoiled(8, (picture) => lowerPart(picture, 90, 0, 0)), ["decode_damage 25-32"]);
  const receding = (picture: Picture, n: number) => lowerPart(picture, 20 + 20 * n, 128, 128);
  assert.deepEqual(await spoiled(8, receding), ["decode_damage 25-32"]);
});

Deno.test("artifacts: a chroma plane that is stuck, and planes that are swapped", async () => {
  const stuck = (picture: Picture) => {
    const result = picture.slice();
    result.fill(0, LUMA, LUMA + LUMA / 4);
    return result;
  };
  assert.deepEqual(await spoiled(10, stuck), ["chroma_fault 25-34"]);
  const swapped = (picture: Picture) => {
    const result = picture.slice();
    result.set(picture.subarray(LUMA, LUMA + LUMA / 4), LUMA + LUMA / 4);
    result.set(picture.subarray(LUMA + LUMA / 4), LUMA);
    return result;
  };
  assert.deepEqual(await spoiled(10, swapped), ["chroma_fault 25-34"]);
});

Deno.test("artifacts: a burst of noise, and of white lines", async () => {
  assert.deepEqual(await spoiled(6, (picture, n) => salted(picture, 0.1, n)), ["noise_burst 25-30"]);
  const lines = (picture: Picture, n: number) => {
    let result = picture;
    for (let row = 3 + n; row < HEIGHT; row += 16) {
      result = withBox(result, { x: (row * 7) % 40, y: row, width: 260, height: 1 }, 225);
    }
    return result;
  };
  assert.deepEqual(await spoiled(4, lines), ["noise_burst 25-28"]);
});

Deno.test("artifacts: rows of wrong blocks in a picture are decode damage, until they heal", async () => {
  const still = (n: number) => noisy(landscape(1), 6, n);
  const damaged = (n: number) => {
    const random = seededRandom(7);
    let result = still(n);
    for (let row = 0; row < 20; row++) {
      const x = Math.floor(random() * 28) * 8, y = Math.floor(random() * 29) * 6;
      for (let block = 0; block < 16; block++) {
        result = withBox(result, { x: x + block * 8, y, width: 8, height: 6 }, Math.floor(random() * 256));
      }
    }
    return result;
  };
  const draw = (n: number) => n >= 40 && n < 52 ? damaged(n) : still(n);
  const found = await faultsIn(80, draw, { width: 640, height: 480 });
  assert.deepEqual(found, ["decode_damage 40-51"]);
});

Deno.test("artifacts: a foreign frame that is only brighter is found, a shaken camera is none", async () => {
  const brighter = () => relit(landscape(5), (luma) => 235 - luma / 2);
  const dark = (n: number) => relit(pan(n), (luma) => luma / 2);
  assert.deepEqual(await faultsIn(60, dark), []);
  assert.deepEqual(await faultsIn(60, (n) => n === 25 ? brighter() : dark(n)), ["foreign_frame 25-25"]);
  const random = seededRandom(3);
  assert.deepEqual(await faultsIn(90, () => landscape(1, Math.floor(random() * 60))), []);
});

Deno.test("artifacts: cuts, a flash, a strobe, a fade, a dissolve, pans and a lamp are none", async () => {
  const bright = (n: number) => relit(pan(n), (luma) => luma * 1.6 + 40);
  assert.deepEqual(await faultsIn(90, (n) => landscape(1 + Math.floor(n / 15), n)), [], "cuts");
  assert.deepEqual(await faultsIn(60, (n) => n === 30 || n === 31 ? plain(240) : pan(n)), [], "white flash");
  assert.deepEqual(await faultsIn(60, (n) => n % 7 === 0 && n > 20 ? bright(n) : pan(n)), [], "strobe");
  assert.deepEqual(await faultsIn(60, (n) => mixed(pan(n), plain(16), Math.min(1, n / 40))), [], "fade");
  const dissolve = (n: number) => mixed(pan(n), landscape(4, n), Math.max(0, Math.min(1, (n - 20) / 20)));
  assert.deepEqual(await faultsIn(60, dissolve), [], "dissolve");
  assert.deepEqual(await faultsIn(60, (n) => landscape(1, 40 * n)), [], "whip pan");
  assert.deepEqual(
    await faultsIn(60, (n) => n < 30 ? pan(n) : relit(pan(n), (luma) => luma * 0.6)),
    [],
    "lamp",
  );
});

Deno.test("artifacts: noise from the first frame on, low light, a still picture and text that appears are none", async () => {
  assert.deepEqual(await faultsIn(60, (n) => noisy(pan(n), 20, n)), [], "noise");
  const dark = (n: number) => noisy(relit(pan(n), (luma) => 16 + luma / 12), 4, n);
  assert.deepEqual(await faultsIn(60, dark), [], "low light");
  assert.deepEqual(await faultsIn(60, () => landscape(2)), [], "still");
  const titled = (n: number) => {
    let picture = pan(n);
    for (let x = 40; n >= 30 && x < 280; x += 9) {
      picture = withBox(picture, { x, y: 150, width: 4, height: 12 }, 230);
    }
    return picture;
  };
  assert.deepEqual(await faultsIn(60, titled), [], "text");
});

Deno.test("artifacts: of sampled frames a row tells the worst one since the row before", async () => {
  const film = await DrawnFilm.start();
  for (let n = 0; n < 60; n++) {
    film.filter.staging.set(n === 33 ? landscape(5) : pan(n));
    film.filter.push(0, 40 * n, n % 10 === 0);
  }
  film.filter.finish();
  const { artifactScore, artifactKind } = film.filter.columns();
  assert.deepEqual([...artifactKind], [0, 0, 0, 0, 1 + ARTIFACT_KINDS.indexOf("foreign_frame"), 0]);
  assert.deepEqual([...artifactScore].map((score) => score >= ARTIFACT_SCORE_THRESHOLD), [
    ...[false, false, false, false],
    ...[true, false],
  ]);
});

Deno.test("artifacts: a picture that is lost and comes back is no cut; a new shot behind it is one", async () => {
  const green = (picture: Picture) => lowerPart(picture, 20, 0, 0);
  for (const shot of [1, 5]) {
    const film = await DrawnFilm.start();
    film.play(60, (n) => n < 25 ? landscape(1) : n < 33 ? green(landscape(1)) : landscape(shot));
    film.end();
    const { count, cutScore } = film.filter.columns();
    const cuts = Array.from({ length: count }, (_, n) => n).filter((n) => cutScore[n]! >= 0.5);
    assert.deepEqual(cuts, shot === 1 ? [] : [33]);
  }
});
