/** Where the measures of the newest 32 frames are in memory, and their units. */

/*
 * Frame i is in slot i % 32. A decision looks back at most 29 frames from the newest one.
 *
 *   FINE       60 x 80 x i16   luma, sums of 4x3 samples: 12 a level
 *   MIDDLE     30 x 40 x i16   luma, sums of 8x6 samples: 48 a level
 *   CELLS      20 x 40 x i16   luma, sums of 8x9 samples / 8 - 1152: 9 a level; bars are covered
 *   CHROMA     2 x 10 x 20 x i16   U and V, sums of 8x9 samples / 8: 9 a level; 25 vectors each
 *   PROFILES   3 x 80 and 4 x 64 x i16   mean luma of the columns of three bands, and of the rows of four
 *   MEANS      10 x 10 x i16   mean of each block of 8x6 fine cells
 *   LUMA_BINS  32 x u16, COLOR_BINS 256 x u16   smoothed histograms
 */

export const SLOTS: i32 = 32;
export const COLUMNS: i32 = 40;
export const ROWS: i32 = 20;
export const ROW_BYTES: i32 = 80;

export const CELLS_BYTES: i32 = 20 * 80;
export const CELLS: usize = memory.data(32 * 20 * 80, 16);
export const FINE_ROW_BYTES: i32 = 160;
export const FINE_BYTES: i32 = 60 * 80 * 2;
export const FINE: usize = memory.data(32 * 60 * 80 * 2, 16);
export const MIDDLE_BYTES: i32 = 30 * 40 * 2;
export const MIDDLE: usize = memory.data(32 * 30 * 40 * 2, 16);
export const CHROMA_BYTES: i32 = 2 * 200 * 2;
export const CHROMA: usize = memory.data(32 * 2 * 200 * 2, 16);
export const PROFILE_BYTES: i32 = (3 * 80 + 4 * 64) * 2;
export const PROFILES: usize = memory.data(32 * (3 * 80 + 4 * 64) * 2, 16);
export const MEANS_BYTES: i32 = 208;
export const MEANS: usize = memory.data(32 * 208, 16);
export const BINS_BYTES: i32 = (32 + 256) * 2;
export const BINS: usize = memory.data(32 * (32 + 256) * 2, 16);
/** 2 x 30 x 40 x i16: U and V of the newest frame only, sums of 4x3 samples, 12 a level. */
export const COLOR_CELLS: usize = memory.data(2 * 30 * 40 * 2, 16);
/** Numbers of a frame, f32 each: see the indexes below. */
export const NUMBERS: usize = memory.data(32 * 16 * 4, 16);
export const TEXTURE: i32 = 0;
export const PROFILE_CONTRAST: i32 = 1;
export const STRUCTURE_MEAN: i32 = 3;
export const LUMA_MEAN: i32 = 4;
export const WHITE: i32 = 5;
export const BLACK: i32 = 6;
export const GRAY: i32 = 7;
export const SHARE: i32 = 8;
export const LOST: i32 = 9;
export const PALE: i32 = 10;

export function numberAt(slot: i32, index: i32): f32 {
  return load<f32>(NUMBERS + (((slot << 4) + index) << 2));
}

export function setNumber(slot: i32, index: i32, value: f32): void {
  store<f32>(NUMBERS + (((slot << 4) + index) << 2), value);
}
