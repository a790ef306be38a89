/** The reference implementation of `assembly/cut.ts`: the same arithmetic in plain TypeScript, for every frame of a video at once. */

const WIDTH = 320;
const HEIGHT = 180;
const COLUMNS = 40;
const ROWS = 20;
const CELL_WIDTH = WIDTH / COLUMNS;
const CELL_HEIGHT = HEIGHT / ROWS;
/** The sum of a cell of middle gray, divided by 8. */
const CELL_BIAS = 128 * CELL_WIDTH * CELL_HEIGHT / 8;
const BLOCK_COLUMNS = 8;
const BLOCK_ROWS = 5;
/** The scaled variance of a block whose cells vary by one luma level: a level is 9 in the units of a cell. */
const VARIANCE_UNIT = (BLOCK_COLUMNS * BLOCK_ROWS * 9) ** 2;
const f32 = Math.fround;

/** Cut scores of all frames, given as 320x180 luma planes; exactly those of the kernel. */
export function referenceCutScores(planes: readonly Uint8Array[]): Float32Array {
  const video = new Video(planes.map(reduce));
  return Float32Array.from(planes, (_, frame) => video.score(frame));
}

/** Sums of the samples in each cell, divided by 8, with middle gray at 0. */
function reduce(plane: Uint8Array): Int16Array {
  const cells = new Int16Array(COLUMNS * ROWS);
  for (let cell = 0; cell < cells.length; cell++) {
    const left = (cell % COLUMNS) * CELL_WIDTH;
    const top = Math.floor(cell / COLUMNS) * CELL_HEIGHT;
    let sum = 0;
    for (let y = top; y < top + CELL_HEIGHT; y++) {
      for (let x = left; x < left + CELL_WIDTH; x++) sum += plane[y * WIDTH + x]!;
    }
    cells[cell] = (sum >> 3) - CELL_BIAS;
  }
  return coverBars(plane, cells);
}

/** Fills the cells that black bars touch with the mirror image of the rest. */
function coverBars(plane: Uint8Array, cells: Int16Array): Int16Array {
  const rowAt = (y: number) => plane.subarray(y * WIDTH, (y + 1) * WIDTH);
  const columnAt = (x: number) => Uint8Array.from({ length: HEIGHT }, (_, y) => plane[y * WIDTH + x]!);
  const top = touched((i) => rowAt(i), CELL_HEIGHT, BAR_ROWS_MAX);
  const bottom = touched((i) => rowAt(HEIGHT - 1 - i), CELL_HEIGHT, BAR_ROWS_MAX);
  const left = touched((i) => columnAt(i), CELL_WIDTH, BAR_COLUMNS_MAX);
  const right = touched((i) => columnAt(WIDTH - 1 - i), CELL_WIDTH, BAR_COLUMNS_MAX);
  return cells.map((_, cell) => {
    const row = mirrored(Math.floor(cell / COLUMNS), top, ROWS - 1 - bottom);
    return cells[row * COLUMNS + mirrored(cell % COLUMNS, left, COLUMNS - 1 - right)]!;
  });
}

/** Wider bars, in cells, are taken for dark content. */
const BAR_ROWS_MAX = 7;
const BAR_COLUMNS_MAX = 15;

/** How many cells a bar touches, including its blended edge; 0 for more than `limit`. */
function touched(lineAt: (index: number) => Uint8Array, cellSamples: number, limit: number): number {
  let samples = 0;
  while (samples < limit * cellSamples + 1 && isBar(lineAt(samples))) samples++;
  const cells = samples === 0 ? 0 : Math.floor(samples / cellSamples) + 1;
  return cells > limit ? 0 : cells;
}

function isBar(line: Uint8Array): boolean {
  const brightest = Math.max(...line);
  return brightest <= 40 && brightest - Math.min(...line) <= 12;
}

function mirrored(index: number, first: number, last: number): number {
  if (index < first) return mirrored(2 * first - 1 - index, first, last);
  return index > last ? mirrored(2 * last + 1 - index, first, last) : index;
}

class Video {
  readonly #frames: readonly Int16Array[];
  readonly #similarities = new Map<string, number>();

  constructor(frames: readonly Int16Array[]) {
    this.#frames = frames;
  }

  score(frame: number): number {
    if (frame === 0) return 0;
    const difference = this.#difference(frame);
    const change = difference < f32(0.2) ? difference : this.#change(frame, [1, 2, 4, 6], [0, 1, 3, 5]);
    let before = this.#differences(frame - 4, frame - 1);
    let after = this.#differences(frame + 1, frame + 4);
    const beforeNear = before.length > 0 ? before.slice(-2) : after.slice(0, 2);
    const afterNear = after.length > 0 ? after.slice(0, 2) : before.slice(-2);
    if (before.length === 0) before = after;
    if (after.length === 0) after = before;
    const unrest = Math.min(mean(before), mean(after));
    const jolt = Math.min(Math.max(0, ...beforeNear), Math.max(0, ...afterNear));
    const z = f32(f32(f32(f32(24 * change) - f32(9 * unrest)) - f32(14 * jolt)) - f32(8.6));
    const confidence = f32(0.5 + f32(0.5 * f32(z / f32(Math.sqrt(f32(f32(z * z) + 4))))));
    if (z < 0) return confidence;
    const isOverruled = this.#isGray(frame - 1) || !this.#isLargestNearby(frame);
    return isOverruled ? f32(confidence * f32(0.49)) : confidence;
  }

  /** 1 - the largest similarity of any frame `before` and any frame `after`. */
  #change(frame: number, before: readonly number[], after: readonly number[]): number {
    let largest = 0;
    for (const a of after) {
      for (const b of before) {
        if (frame + a >= this.#frames.length || frame - b < 0) continue;
        largest = Math.max(largest, this.#similarity(frame + a, frame - b));
      }
    }
    return f32(1 - largest);
  }

  #isLargestNearby(frame: number): boolean {
    const change = (at: number) => this.#change(at, [1, 2, 4], [0, 1, 3]);
    const own = change(frame);
    for (let at = Math.max(1, frame - 2); at < frame; at++) if (change(at) >= own) return false;
    const last = Math.min(frame + 2, this.#frames.length - 1);
    for (let at = frame + 1; at <= last; at++) if (change(at) > own) return false;
    return true;
  }

  /** Differences to the frame before, for those of `first` to `last` that have one. */
  #differences(first: number, last: number): number[] {
    const result = [];
    for (let at = Math.max(1, first); at <= Math.min(last, this.#frames.length - 1); at++) {
      result.push(this.#difference(at));
    }
    return result;
  }

  #difference(frame: number): number {
    return f32(1 - this.#similarity(frame, frame - 1));
  }

  #isGray(frame: number): boolean {
    return this.#frames[frame]!.filter((cell) => Math.abs(cell) <= 18).length >= 600;
  }

  #similarity(later: number, earlier: number): number {
    const key = `${later} ${earlier}`;
    const known = this.#similarities.get(key);
    if (known !== undefined) return known;
    const similarity = compare(this.#frames[later]!, this.#frames[earlier]!);
    this.#similarities.set(key, similarity);
    return similarity;
  }
}

function compare(later: Int16Array, earlier: Int16Array): number {
  let strong = 0;
  let strongSum = 0;
  let weak = 0;
  let weakSum = 0;
  for (let row = 0; row < ROWS; row += BLOCK_ROWS) {
    for (let column = 0; column < COLUMNS; column += BLOCK_COLUMNS) {
      const match = blockMatch(later, earlier, row, column);
      const a = structure(windowAt(later, row, column));
      const b = structure(windowAt(earlier, row, column));
      strong = f32(strong + Math.max(a, b));
      strongSum = f32(strongSum + f32(Math.max(a, b) * match));
      weak = f32(weak + Math.min(a, b));
      weakSum = f32(weakSum + f32(Math.min(a, b) * match));
    }
  }
  const whole = f32(f32(strongSum + f32(0.2)) / f32(strong + f32(0.2)));
  const shared = f32(weakSum / f32(weak + f32(0.6)));
  return Math.max(whole, shared);
}

/** The best correlation with the nine windows around, 1 from .85 on. */
function blockMatch(later: Int16Array, earlier: Int16Array, row: number, column: number): number {
  const own = windowAt(later, row, column);
  let best = 0;
  for (let y = Math.max(row - 1, 0); y <= Math.min(row + 1, ROWS - BLOCK_ROWS); y++) {
    for (let x = Math.max(column - 1, 0); x <= Math.min(column + 1, COLUMNS - BLOCK_COLUMNS); x++) {
      const other = windowAt(earlier, y, x);
      const covariance = 40 * dot(own, other) - sum(own) * sum(other);
      best = Math.max(best, f32(f32(f32(covariance) * scale(own)) * scale(other)));
    }
  }
  return Math.min(f32(best / f32(0.85)), 1);
}

function windowAt(cells: Int16Array, row: number, column: number): number[] {
  const window = [];
  for (let y = row; y < row + BLOCK_ROWS; y++) {
    for (let x = column; x < column + BLOCK_COLUMNS; x++) window.push(cells[y * COLUMNS + x]!);
  }
  return window;
}

function dot(a: readonly number[], b: readonly number[]): number {
  return a.reduce((total, value, i) => total + value * b[i]!, 0);
}

function sum(window: readonly number[]): number {
  return window.reduce((total, value) => total + value, 0);
}

function variance(window: readonly number[]): number {
  return f32(40 * dot(window, window) - sum(window) ** 2);
}

function structure(window: readonly number[]): number {
  const own = variance(window);
  return f32(own / f32(own + 16 * VARIANCE_UNIT));
}

function scale(window: readonly number[]): number {
  return f32(1 / f32(Math.sqrt(f32(variance(window) + 4 * VARIANCE_UNIT))));
}

function mean(values: readonly number[]): number {
  if (values.length === 0) return 0;
  return f32(values.reduce((total, value) => f32(total + value), 0) / values.length);
}
