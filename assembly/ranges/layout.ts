/** The measures of the newest frames that ranges are found in, and where their kernels write what they
 * measure.
 */

/*
 * Frame i is in slot i % FRAMES; the caller writes its cells, moves and profiles there.
 *
 *   CELLS     256 x 360 x u16   sums of cells: 240 of luma, 20 columns in 12 rows, then 120 of chroma
 *   MOVES     256 x 240 x u16   how much the samples of each luma cell moved
 *   PROFILES  256 x 496 x i16   mean luma of columns and rows
 *   NUMBERS   8 x f64           what was measured last; each function says what it writes
 */

export const FRAMES: i32 = 256;
export const CELLS: usize = memory.data(256 * 360 * 2, 16);
export const MOVES: usize = memory.data(256 * 240 * 2, 16);
export const PROFILES: usize = memory.data(256 * 496 * 2, 16);
export const NUMBERS: usize = memory.data(8 * 8, 16);

export const LUMA_CELLS: i32 = 240;
export const CELLS_OF_ALL: i32 = 360;
export const LUMA_BYTES: usize = 240 * 2;
export const CELL_BYTES: usize = 360 * 2;
export const PROFILE_BYTES: usize = 496 * 2;
/** Samples of a cell. */
export const CELL_SAMPLES: i32 = 240;

export function cellsOf(frame: i32): usize {
  return CELLS + (frame & (FRAMES - 1)) * CELL_BYTES;
}

export function movesOf(frame: i32): usize {
  return MOVES + (frame & (FRAMES - 1)) * LUMA_BYTES;
}

export function profilesOf(frame: i32): usize {
  return PROFILES + (frame & (FRAMES - 1)) * PROFILE_BYTES;
}

export function putNumber(index: i32, value: f64): void {
  store<f64>(NUMBERS + (index << 3), value);
}

/** The frame that is so many of `parts` of the way between two, rounded. */
export function placeBetween(one: i32, other: i32, part: i32, parts: i32): i32 {
  return one + (2 * (other - one) * part + parts) / (2 * parts);
}
