/** Bounds of black: what is just inside of each is black, what is just outside is not. */

import assert from "node:assert/strict";
import { MeasuredFilm } from "../../../support/kernels/measured_film.ts";

const LUMA_CELLS = 240;

interface Dark {
  /** Mean luma of all cells but one; 18 unless given. */
  readonly luma?: (n: number) => number;
  /** How much brighter one cell is, and whether it is another one in each frame. */
  readonly spot?: (n: number) => number;
  readonly moves?: boolean;
  readonly chroma?: number;
  readonly brightSamples?: number;
}

/** 10 bright frames, 10 dark ones, 10 bright ones. */
function blackIn(
  { luma = () => 18, spot = () => 0, moves = false, chroma = 128, brightSamples = 0 }: Dark,
): string[] {
  const film = new MeasuredFilm("black");
  const bright = () => ({ mean: () => 100 });
  return film.play(10, bright).play(10, (n) => ({
    mean: (cell) => cell >= LUMA_CELLS ? chroma : luma(n) + (cell === (moves ? 7 + n % 2 : 7) ? spot(n) : 0),
    brightSamples,
  })).play(10, bright).end();
}

interface Bound {
  readonly inside: number;
  readonly outside: number;
  readonly dark: (value: number) => Dark;
  /** What is found outside, nothing unless given. */
  readonly other?: readonly string[];
}

const BOUNDS: Readonly<Record<string, Bound>> = {
  "a mean of 23": { inside: 22.8, outside: 23.2, dark: (luma) => ({ luma: () => luma }) },
  "a mean of 25 while it lasts": {
    ...{ inside: 24.7, outside: 25.3, other: ["black 10-12"] },
    dark: (luma) => ({ luma: (n) => n < 3 ? 22 : luma }),
  },
  "cells that are 4 levels apart": {
    inside: 3.8,
    outside: 4.2,
    dark: (spot) => ({ spot: () => spot, moves: true }),
  },
  "cells that are 5 levels apart while it lasts": {
    ...{ inside: 4.8, outside: 5.2, other: ["black 10-12"] },
    dark: (spot) => ({ spot: (n) => n < 3 ? 0 : spot, moves: true }),
  },
  "cells that are 7 levels apart and stand still": {
    inside: 6.8,
    outside: 7.2,
    dark: (spot) => ({ spot: () => spot }),
  },
  "what stands still changes by 0.6 levels": {
    ...{ inside: 0.55, outside: 0.65 },
    dark: (change) => ({ spot: (n) => 5 + change * (n % 2) }),
  },
  "8 bright samples": { inside: 8, outside: 9, dark: (brightSamples) => ({ brightSamples }) },
  "chroma that is 6 levels from neutral": { inside: 133.8, outside: 134.2, dark: (chroma) => ({ chroma }) },
};

for (const [name, { inside, outside, dark, other = [] }] of Object.entries(BOUNDS)) {
  Deno.test(`black: ${name}`, () => {
    assert.deepEqual(blackIn(dark(inside)), ["black 10-19"], `${inside}`);
    assert.deepEqual(blackIn(dark(outside)), other, `${outside}`);
  });
}
