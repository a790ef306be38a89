/** Films that move, stand still and move again, with bounds of what is a freeze: inside of each it is one,
 * outside it is none.
 */

import assert from "node:assert/strict";
import { MeasuredFilm, scattered } from "./measured_film.ts";

const LUMA_CELLS = 240;

/**
 * Motion in a share of the cells; `moved` is the mean of all cells, `change` by how much cells change at
 * most.
 */
export interface Motion {
  readonly frames?: number;
  readonly moved?: number;
  readonly change?: number;
  readonly share?: number;
  /** Motion of the other cells, of a frame by its number. */
  readonly others?: number | ((n: number) => number);
  /** Another motion of a frame, by its number. */
  readonly at?: (n: number) => number | undefined;
}

/** The picture before it, plus `offset` for each frame and cell. */
export interface Still {
  readonly frames?: number;
  /** Mean of all cells, in a share of them. */
  readonly moved?: (n: number) => number;
  readonly share?: number;
  readonly offset?: (n: number, cell: number) => number;
}

export interface Stretch {
  readonly before?: Motion;
  readonly still?: Still;
  /** Motion after the still frames; null where the stream ends with them. */
  readonly after?: Motion | null;
  readonly framesPerSecond?: number;
  readonly cuts?: readonly number[];
  /** Levels between the darkest and the brightest cell, about. */
  readonly range?: number;
}

/** Freezes in 30 frames that move, 20 that stand still, and 30 that move. */
function freezesIn({ before = {}, still = {}, after = {}, range = 120, ...options }: Stretch): string[] {
  const film = new MeasuredFilm("freeze", options);
  const base = (cell: number) => cell >= LUMA_CELLS ? 128 : 120 + range / 2 * (cell % 2 ? 1 : -1);
  let mean = base;
  const move = ({ frames = 30, moved = 5, change = 6, share = 1, others = 0, at }: Motion, first: number) => {
    film.play(frames, (n) => {
      const moves = (cell: number) => cell < share * LUMA_CELLS;
      const own = at?.(n) ?? moved;
      const rest = typeof others === "number" ? others : others(n);
      mean = (cell) =>
        base(cell) + (moves(cell) || cell >= LUMA_CELLS ? change / 2 * scattered(first + n, cell) : 0);
      return { mean, moved: (cell) => moves(cell) ? own / share : rest };
    });
  };
  move(before, 0);
  const held = mean;
  const { frames = 20, moved = () => 0, share = 1, offset = () => 0 } = still;
  film.play(frames, (n) => ({
    mean: (cell) => held(cell) + offset(n, cell),
    moved: (cell) => cell < share * LUMA_CELLS ? moved(n) / share : 0,
  }));
  if (after) move(after, 1000);
  return film.end();
}

export interface FreezeBound {
  readonly inside: number;
  readonly outside: number;
  readonly film: (value: number) => Stretch;
  /** What is found inside, the whole stretch unless given, and outside, nothing unless given. */
  readonly found?: readonly string[];
  readonly other?: readonly string[];
}

/** A test for each bound, by its name. */
export function testFreezeBounds(bounds: Readonly<Record<string, FreezeBound>>): void {
  for (
    const [name, { inside, outside, film, found = ["freeze 30-49"], other = [] }] of Object.entries(bounds)
  ) {
    Deno.test(`freeze: ${name}`, () => {
      assert.deepEqual(freezesIn(film(inside)), found, `${inside}`);
      assert.deepEqual(freezesIn(film(outside)), other, `${outside}`);
    });
  }
}
