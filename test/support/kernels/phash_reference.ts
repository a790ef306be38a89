/** The reference implementation of `assembly/phash.ts`: the same hash, written like its definition. */

/**
 * Cells of 10x5 pixels, 32 columns and 36 rows; cosines in units of 1/8192; doubles represent every value
 * exactly.
 */
const COLUMNS = 32;
const ROWS = 36;

/** A quarter of a grey level of amplitude, in the units of a coefficient. */
const FLOOR = 0.25 * 50 * (COLUMNS / 2) * (ROWS / 2) * 2 ** 8;

/** The 64-bit DCT hash of a 320x180 plane. */
export function referenceHash(plane: Uint8Array): bigint {
  const cells = boxSums(plane);
  const coefficients: number[] = [];
  for (let v = 0; v < 8; v++) {
    for (let u = 0; u < 8; u++) coefficients.push(coefficient(cells, u, v));
  }
  const sorted = coefficients.slice(1).sort((a, b) => a - b);
  const threshold = sorted[31]! + FLOOR;
  let hash = 0n;
  for (let bit = 1; bit < 64; bit++) if (coefficients[bit]! > threshold) hash |= 1n << BigInt(bit);
  return hash;
}

function boxSums(plane: Uint8Array): number[] {
  const cells = new Array<number>(COLUMNS * ROWS).fill(0);
  for (let y = 0; y < 180; y++) {
    for (let x = 0; x < 320; x++) {
      cells[Math.floor(y / 5) * COLUMNS + Math.floor(x / 10)]! += plane[y * 320 + x]!;
    }
  }
  return cells.map((sum) => sum - 6375);
}

/** The DCT-II coefficient (u, v), rounded down to 1/256. */
function coefficient(cells: number[], u: number, v: number): number {
  let sum = 0;
  for (let y = 0; y < ROWS; y++) {
    let rowSum = 0;
    for (let x = 0; x < COLUMNS; x++) rowSum += cells[y * COLUMNS + x]! * cosine(u, x, COLUMNS);
    sum += rowSum * cosine(v, y, ROWS);
  }
  return Math.floor(sum / 2 ** 18);
}

function cosine(frequency: number, position: number, length: number): number {
  return COSINES[length]![frequency]![position]!;
}

const COSINES: Record<number, number[][]> = Object.fromEntries(
  [COLUMNS, ROWS].map((length) => [
    length,
    Array.from(
      { length: 8 },
      (_, frequency) =>
        Array.from(
          { length },
          (_, position) =>
            Math.round(8192 * Math.cos(((2 * position + 1) * frequency * Math.PI) / (2 * length))),
        ),
    ),
  ]),
);
