/** The rules of faults beside what only looks like one: light, motion, flashes, coarse encoders, grain, and
 * blinds.
 */

import assert from "node:assert/strict";
import { ArtifactMeasures, MEASURES } from "../../../../src/media/detection/faults/artifact_measures.ts";
import { MEASURE_COUNT } from "../../../../src/media/kernels/frame_filter.ts";
import { chromaStep } from "../../../../src/media/detection/faults/chroma_step.ts";
import {
  DrawnFilm,
  HEIGHT,
  landscape,
  mixed,
  noisy,
  type Picture,
  plain,
  relit,
  WIDTH,
  withBox,
} from "../../../support/kernels/drawn_film.ts";
import { faultsIn } from "../../../support/kernels/found_faults.ts";
import { seededRandom } from "../../../support/seeded_random.ts";

const LUMA = WIDTH * HEIGHT;
const pan = (n: number, speed = 2) => landscape(1, speed * n);

/** A picture with both chroma planes changed by `map`. */
function recoloured(picture: Picture, map: (sample: number) => number): Picture {
  return Uint8Array.from(picture, (sample, at) => at < LUMA ? sample : map(sample));
}

Deno.test("fault rules: an old frame that is shown again every third frame is out of order, from the first one to the last", async () => {
  const shown = (n: number) => n >= 30 && n <= 42 && n % 3 === 0 ? pan(n - 4) : pan(n);
  assert.deepEqual(await faultsIn(70, shown), ["foreign_frame 30-42"]);
});

Deno.test("fault rules: one old frame is out of order too", async () => {
  assert.deepEqual(await faultsIn(60, (n) => n === 30 ? pan(n - 4) : pan(n)), ["foreign_frame 30-30"]);
});

Deno.test("fault rules: a pan that turns round, one that halts, and a shaken camera are in order", async () => {
  assert.deepEqual(await faultsIn(60, (n) => pan(30 - Math.abs(30 - n))), [], "turns");
  assert.deepEqual(await faultsIn(60, (n) => pan(n < 30 ? n : n < 35 ? 30 : n - 5)), [], "halts");
  const random = seededRandom(9);
  const places = Array.from({ length: 150 }, () => [random() * 14, random() * 14] as const);
  assert.deepEqual(await faultsIn(150, (n) => landscape(1, ...places[n]!)), [], "shaken");
  const late = (n: number) => n < 40 ? pan(n) : landscape(1, 80 + places[n]![0], places[n]![1]);
  assert.deepEqual(await faultsIn(150, late), [], "shaken behind a pan");
});

Deno.test("fault rules: frames that change places for long are out of order to the last one, also where a few are hard to tell", async () => {
  const place = (n: number) => 2 * n + (n > 40 ? 12 : 0);
  const swapped = (n: number) => landscape(1, place(n >= 30 && n < 54 ? n ^ 1 : n));
  assert.deepEqual(await faultsIn(80, swapped), ["foreign_frame 30-53"]);
});

Deno.test("fault rules: an old film that jumps in its gate while its light changes is in order", async () => {
  const random = seededRandom(2);
  const jumps = Array.from({ length: 120 }, () => [random(), random(), random()] as const);
  const film = (n: number) => {
    const [x, y, light] = jumps[n]!;
    return relit(landscape(1, n + 8 * x, 8 * y), (luma) => (0.94 + 0.12 * light) * luma);
  };
  assert.deepEqual(await faultsIn(120, film), []);
});

Deno.test("fault rules: the light of an old film, which breathes, is neither a flicker nor out of order", async () => {
  const random = seededRandom(5);
  const gains = Array.from({ length: 300 }, () => 1 + 0.05 * (random() + random() + random() - 1.5));
  const film = (n: number) => relit(landscape(1, n / 8), (luma) => gains[n]! * luma);
  assert.deepEqual(await faultsIn(300, film), []);
});

Deno.test("fault rules: light that alternates is a flicker beside fast motion too", async () => {
  const lit = (n: number) => {
    const gain = n < 30 || n >= 46 ? 1 : n % 2 === 0 ? 1.25 : 0.8;
    return relit(pan(n, 6), (luma) => gain * luma);
  };
  assert.deepEqual(await faultsIn(70, lit), ["flicker 30-45"]);
});

Deno.test("fault rules: a flicker that holds each light for two frames, not quite steadily, is found whole", async () => {
  const random = seededRandom(4);
  const gains = Array.from({ length: 16 }, (_, n) => 1 + (n % 4 < 2 ? 1 : -1) * (0.2 + 0.07 * random()));
  const lit = (n: number) => relit(pan(n), (luma) => (gains[n - 30] ?? 1) * luma);
  assert.deepEqual(await faultsIn(70, lit), ["flicker 30-45"]);
});

Deno.test("fault rules: a camera that is shaken across a bright place, and two flashes, are no flicker", async () => {
  const bright = (n: number) => {
    const x = n < 20 ? 0 : n % 2 === 0 ? 60 : 110;
    return withBox(landscape(1, 2 * n), { x, y: 0, width: n % 2 === 0 ? 120 : 150, height: 180 }, 210);
  };
  assert.deepEqual((await faultsIn(60, bright)).filter((text) => text.startsWith("flicker")), [], "shaken");
  const twice = (n: number) => relit(pan(n), (luma) => n === 30 || n === 32 ? luma * 1.4 + 20 : luma);
  assert.deepEqual(await faultsIn(60, twice), [], "flashes");
});

Deno.test("fault rules: chroma that a coarse encoder catches up with is no fault, chroma that is stuck in fast motion is", async () => {
  const gray = (n: number) => recoloured(pan(n, 1), () => n < 30 ? 128 : 131);
  assert.deepEqual(await faultsIn(60, gray), []);
  const stuck = (n: number) => n >= 30 && n < 40 ? recoloured(pan(n, 9), () => 30) : pan(n, 9);
  assert.deepEqual(await faultsIn(60, stuck), ["chroma_fault 30-39"]);
});

/**
 * How clearly the last frame is wrong in its colours, where chroma changed by these and luma by two levels
 * from frame to frame.
 */
function chromaStepOf(changes: readonly number[]): number {
  const measures = new ArtifactMeasures();
  const row = new Float32Array(MEASURE_COUNT);
  row[MEASURES.luma1] = 2;
  row[MEASURES.contrast] = 20;
  for (const change of changes) {
    row[MEASURES.chroma1] = change;
    measures.push(row);
  }
  return chromaStep(measures, changes.length - 1, false).strength;
}

Deno.test("fault rules: chroma that is mended every few frames is no fault, nor where nothing shows yet what is usual", () => {
  const rest = [1.3, 1.3, 1.3, 1.3, 1.3];
  assert.ok(chromaStepOf([...rest, ...rest, 6]) > 1);
  assert.equal(chromaStepOf([...rest, 6, ...rest, 6]), 0);
  assert.ok(chromaStepOf([...rest, 6, ...rest, ...rest, 6]) > 1, "long ago");
  assert.ok(chromaStepOf([...rest, 3.9, ...rest, 6]) > 1, "much less before");
  assert.equal(chromaStepOf([0, 1.3, 6]), 0);
  assert.ok(chromaStepOf([0, 1.3, 1.3, 1.3, 6]) > 1);
});

Deno.test("fault rules: glaring chroma is a fault in a picture of little contrast too, and the way back is none", async () => {
  const misty = (n: number) => relit(pan(n), (luma) => 110 + luma / 8);
  const spoiled = (n: number) => n >= 30 && n < 36 ? recoloured(misty(n), () => 255) : misty(n);
  assert.deepEqual(await faultsIn(100, spoiled), ["chroma_fault 30-35"]);
});

Deno.test("fault rules: a coloured flash over a page is no fault of chroma", async () => {
  const page = relit(landscape(1), (luma) => 170 + luma / 8);
  const coloured = mixed(page, plain(187, 95, 165), 0.85);
  assert.deepEqual(await faultsIn(60, (n) => n === 30 ? coloured : page), []);
});

Deno.test("fault rules: grain that comes back with a key frame is no burst of noise", async () => {
  const grain = (n: number) => noisy(pan(n, 1), n === 30 ? 11 : 3, n);
  assert.deepEqual(await faultsIn(60, grain), []);
});

Deno.test("fault rules: a few torn lines are a burst, blinds that open are none", async () => {
  const lines = (n: number, from: number, height: number) => {
    let picture = landscape(1, n);
    for (let row = from; row < HEIGHT - height; row += 26) {
      picture = withBox(picture, { x: 20, y: row, width: 240, height }, 20);
    }
    return picture;
  };
  const torn = (n: number) => n >= 30 && n < 33 ? lines(n, 3 + 11 * (n - 30), 1) : landscape(1, n);
  assert.deepEqual(await faultsIn(60, torn), ["noise_burst 30-32"]);
  const blinds = (n: number) => {
    let picture = landscape(1, n);
    for (let row = 3; n >= 30 && n < 56 && row < HEIGHT - 26; row += 26) {
      picture = withBox(picture, { x: 0, y: row, width: 320, height: n - 29 }, 20);
    }
    return n < 56 ? picture : plain(20);
  };
  const bursts = (await faultsIn(60, blinds)).filter((text) => text.startsWith("noise_burst"));
  assert.deepEqual(bursts, [], "blinds");
});

Deno.test("fault rules: lines that take a dark picture away are a burst, and neither their first frame nor the next picture is a cut", async () => {
  const random = seededRandom(2);
  const dark = (n: number) => relit(pan(n, 1), (luma) => luma / 5);
  const torn = (n: number) => {
    let picture = dark(n);
    for (let row = 1; row < HEIGHT; row += 4 + Math.floor(3 * random())) {
      const x = Math.floor(120 * random());
      picture = withBox(picture, { x, y: row, width: 320 - x - Math.floor(100 * random()), height: 1 }, 230);
    }
    return picture;
  };
  const film = await DrawnFilm.of([[70, (n) => n >= 30 && n < 36 ? torn(n) : dark(n)]]);
  film.end();
  const { cutScore, artifactScore } = film.filter.columns();
  const from = (scores: Float32Array) => [...scores.keys()].filter((n) => scores[n]! >= 0.5);
  assert.deepEqual(from(artifactScore), [30, 31, 32, 33, 34, 35]);
  assert.deepEqual(from(cutScore), []);
});

Deno.test("fault rules: a little salt and pepper is a burst", async () => {
  const salted = (n: number) => {
    const random = seededRandom(n);
    return relit(pan(n), (luma) => random() < 0.04 ? (random() < 0.5 ? 16 : 235) : luma);
  };
  assert.deepEqual(await faultsIn(60, (n) => n >= 30 && n < 35 ? salted(n) : pan(n)), ["noise_burst 30-34"]);
});

Deno.test("fault rules: a flash that is brightest in its middle is no foreign frame", async () => {
  const glow = relit(landscape(1), () => 0);
  for (let at = 0; at < LUMA; at++) {
    const x = at % WIDTH - 200, y = Math.floor(at / WIDTH) - 60;
    glow[at] = Math.max(0, 1 - (Math.hypot(x, y) / 250) ** 3) * 255;
  }
  const dark = (n: number) => relit(pan(n), (luma) => luma / 3);
  const flash = (n: number) => {
    const picture = dark(n);
    return Uint8Array.from(
      picture,
      (sample, at) => at < LUMA ? sample + (240 - sample) * 0.85 * glow[at]! / 255 : sample,
    );
  };
  assert.deepEqual(await faultsIn(60, (n) => n === 30 || n === 31 ? flash(n) : dark(n)), []);
});

Deno.test("fault rules: frames that are held in a smooth motion are found, until it is smooth again", async () => {
  const held = (n: number) => pan(n >= 30 && n < 50 ? n & ~1 : n);
  assert.deepEqual(await faultsIn(80, held), ["foreign_frame 30-49"]);
  const slow = (n: number) => pan(n >= 30 && n < 50 ? n & ~1 : n, 1);
  const faint = (n: number) => mixed(plain(120), slow(n), 0.3);
  assert.deepEqual(await faultsIn(80, faint), ["foreign_frame 30-49"], "faint");
  const early = (n: number) => n < 20 ? landscape(5, n) : pan(n >= 32 && n < 50 ? n & ~1 : n);
  assert.deepEqual(await faultsIn(80, early), ["foreign_frame 32-49"], "behind a cut");
});

Deno.test("fault rules: frames of a film of fifty frames a second are held too, and not where its motion only slows down", async () => {
  const held = (n: number) => pan(n >= 30 && n < 50 ? n & ~1 : n);
  const size = { width: WIDTH, height: HEIGHT }, reports = () => 0;
  assert.deepEqual(await faultsIn(80, held, size, reports, 50), ["foreign_frame 30-49"]);
  const slower = (n: number) => landscape(1, n < 30 ? 6 * n : 180 + (n - 30 & ~1) * 13 / 4);
  assert.deepEqual(await faultsIn(70, slower, size, reports, 50), []);
});

Deno.test("fault rules: a film of half the rate, one that halts at times, and one that grows slower are not held", async () => {
  assert.deepEqual(await faultsIn(80, (n) => pan(n & ~1)), [], "half the rate");
  assert.deepEqual(await faultsIn(120, (n) => pan(n - Math.floor(n / 9))), [], "halts at times");
  assert.deepEqual(await faultsIn(80, (n) => pan(n < 40 ? 2 * n : 80 + (n - 40 & ~1) / 2)), [], "slower");
  const rests = (n: number) => pan(n < 40 ? n : 40 + 4 * Math.floor(Math.max(0, n - 43) / 2));
  assert.deepEqual(await faultsIn(80, rests), [], "rests, then half the rate");
});
