/** A second implementation of the edges and the novelty that faults are decided on: sample by sample, from
 * their definitions.
 */

const WIDTH = 320, HEIGHT = 180;
const CELLS_WIDE = 80, CELLS_HIGH = 45;

/** Numbers of places, in the order of the measures 17 to 30. */
export function referenceCounts(frames: readonly Uint8Array[]): number[] {
  const back = (lag: number) => frames[Math.max(0, frames.length - 1 - lag)]!;
  const cells = [0, 1, 2, 3].map((lag) => fineCells(back(lag)));
  return [
    ...compareEdges(edgesAcross(back(0)), edgesAcross(back(1)), 10, 10, 5),
    ...compareEdges(edgesDown(back(0)), edgesDown(back(1)), 1, 3, 2),
    ...novelty(cells),
  ];
}

function compareEdges(
  now: number[],
  before: number[],
  stride: number,
  least: number,
  none: number,
): number[] {
  const around = (counts: number[], at: number) =>
    Math.max(counts[at - stride] ?? 0, counts[at]!, counts[at + stride] ?? 0);
  const places = [...now.keys()];
  return [
    places.filter((at) => now[at]! >= least).length,
    places.filter((at) => now[at]! >= least && around(before, at) < none).length,
    places.filter((at) => before[at]! >= least && around(now, at) < none).length,
  ];
}

function edgesAcross(luma: Uint8Array): number[] {
  const step = (x: number, y: number) => Math.abs(luma[y * WIDTH + x]! - luma[(y - 1) * WIDTH + x]!);
  return Array.from({ length: HEIGHT * 10 }, (_, at) => {
    const y = Math.floor(at / 10), left = at % 10 * 32;
    if (y < 3 || y > HEIGHT - 3) return 0;
    const isEdge = (x: number) => step(x, y) - Math.max(step(x, y - 2), step(x, y + 2)) > 7;
    return Array.from({ length: 16 }, (_, n) => left + n).filter(isEdge).length;
  });
}

function edgesDown(luma: Uint8Array): number[] {
  const step = (x: number, y: number) => Math.abs(luma[y * WIDTH + x]! - luma[y * WIDTH + x - 1]!);
  return Array.from({ length: 9 * WIDTH }, (_, at) => {
    const x = at % WIDTH, top = Math.floor(at / WIDTH) * 20;
    if (x < 3 || x > WIDTH - 3) return 0;
    const isEdge = (y: number) => step(x, y) - Math.max(step(x - 2, y), step(x + 2, y)) > 7;
    return [0, 4, 8, 12, 16].filter((line) => isEdge(top + line)).length;
  });
}

function fineCells(luma: Uint8Array): number[] {
  return Array.from({ length: CELLS_WIDE * CELLS_HIGH }, (_, cell) => {
    const x = cell % CELLS_WIDE * 4, y = Math.floor(cell / CELLS_WIDE) * 4;
    let sum = 0;
    for (let n = 0; n < 16; n++) sum += luma[(y + (n >> 2)) * WIDTH + x + (n & 3)]!;
    return (sum + 8) >> 4;
  });
}

function novelty([own, last, , third]: number[][]): number[] {
  const places = [...own!.keys()];
  const added = places.map((at) => outside(own![at]!, around(last!, at)));
  const gone = places.map((at) => outside(last![at]!, around(own!, at)));
  const count = (is: (at: number) => boolean) => places.filter(is).length;
  const isCalm = (at: number) => (added[at] ?? 0) < 3;
  const isStrip = (at: number) => added[at]! > 8;
  const above = (at: number) => isCalm(at - 2 * CELLS_WIDE),
    below = (at: number) => isCalm(at + 2 * CELLS_WIDE);
  const hasReturned = (at: number) =>
    Math.abs(own![at]! - last![at]!) > 10 && Math.abs(own![at]! - third![at]!) <= 2;
  return [
    count((at) => added[at]! > 6),
    count((at) => added[at]! > 12),
    count((at) => gone[at]! > 6),
    count((at) => gone[at]! > 12),
    count((at) => isStrip(at) && above(at) && below(at)),
    count((at) => isStrip(at) && (above(at) || below(at))),
    count(hasReturned),
  ];
}

/** The 3x3 cells; beside the ends of a row are the cells of the rows next to it. */
function around(cells: number[], at: number): number[] {
  const row = (index: number) => Math.max(0, Math.min(CELLS_HIGH - 1, Math.floor(index / CELLS_WIDE)));
  const found: number[] = [];
  for (const beside of [at - 1, at, at + 1]) {
    if (beside < 0 || beside >= cells.length) continue;
    const column = beside % CELLS_WIDE;
    for (const y of [beside - CELLS_WIDE, beside, beside + CELLS_WIDE]) {
      found.push(cells[row(y) * CELLS_WIDE + column]!);
    }
  }
  return found;
}

function outside(value: number, range: number[]): number {
  return Math.max(0, value - Math.max(...range), Math.min(...range) - value);
}

/**
 * The measures of combing of the newest of some frames of lines: the first lines of eight groups, the second
 * ones, and so on.
 */
export function referenceCombing(
  frames: readonly Uint8Array[],
): { alternation: number; apart: number; before: number } {
  const lines = (lag: number) => frames[Math.max(0, frames.length - 1 - lag)]!;
  const next = 8 * WIDTH;
  const places = Array.from({ length: next }, (_, at) => at);
  const steps = (frame: Uint8Array, place: number) =>
    [0, 1, 2].map((n) => frame[place + (n + 1) * next]! - frame[place + n * next]!);
  /**
   * How lines alternate at a place: above 0 where they go up, down and up, below it where they go down, up
   * and down.
   */
  const way = (frame: Uint8Array, place: number) => {
    const [one, two, three] = steps(frame, place);
    const up = Math.min(one!, -two!, three!) - 2, down = Math.min(-one!, two!, -three!) - 2;
    return up > 0 ? up : down > 0 ? -down : 0;
  };
  const ways = places.map((place) => way(lines(0), place));
  const sum = ways.reduce((all, one) => all + Math.abs(one), 0);
  const alternation = sum / places.length;
  if (sum < 256) return { alternation, apart: 0, before: 0 };
  const newly = places.filter((place, n) =>
    ways[n] !== 0 && (frames.length === 1 || Math.sign(way(lines(1), place)) !== Math.sign(ways[n]!))
  );
  const difference = (lag: number, line: number) =>
    newly.reduce((all, place) => {
      const at = place + line * next, other = lines(lag);
      const mean = (other[at - next]! + other[at + next]! + 1) >> 1;
      return all + Math.abs(lines(0)[at]! - mean);
    }, 0);
  const odd = difference(0, 1), even = difference(0, 2);
  const lags = [1, 2, 3].map((lag) => {
    const oddOlder = difference(lag, 1), evenOlder = difference(lag, 2);
    const all = Math.max(odd + even, oddOlder + evenOlder) + 1280;
    return {
      apart: (evenOlder - even - oddOlder + odd) / all,
      before: (odd + even - oddOlder - evenOlder) / all,
    };
  });
  const apart = lags.reduce((most, lag) => Math.abs(lag.apart) > Math.abs(most) ? lag.apart : most, 0);
  return { alternation, apart, before: lags[0]!.before };
}
