/** How much of a frame is explained by motion from another: of blocks, and of the whole picture. */

import { MIDDLE, MIDDLE_BYTES, numberAt, PROFILE_BYTES, PROFILE_CONTRAST, PROFILES } from "./layout";
import { sum4, sum8 } from "../lanes";

/** What is left of 5x5 blocks of 8x6 cells after the best motion of up to `reach` cells, of their texture. */
export function residual(later: i32, earlier: i32, reach: i32): f32 {
  const a = MIDDLE + later * MIDDLE_BYTES;
  const b = MIDDLE + earlier * MIDDLE_BYTES;
  const ones = i16x8.splat(1);
  let left = 0;
  let texture = 0;
  for (let row = 0; row < 30; row += 6) {
    for (let column = 0; column < 40; column += 8) {
      const at = a + row * 80 + column * 2;
      const l0 = v128.load(at),
        l1 = v128.load(at, 80),
        l2 = v128.load(at, 160),
        l3 = v128.load(at, 240),
        l4 = v128.load(at, 320),
        l5 = v128.load(at, 400);
      // Two cells of at most 12240 fit an i16.
      let sums = i32x4.dot_i16x8_s(i16x8.add(l0, l1), ones);
      sums = i32x4.add(sums, i32x4.dot_i16x8_s(i16x8.add(l2, l3), ones));
      sums = i32x4.add(sums, i32x4.dot_i16x8_s(i16x8.add(l4, l5), ones));
      const mean = i16x8.splat(<i16> (sum4(sums) / 48));
      let spread = twoApart(l0, mean, l1, mean);
      spread = i32x4.add(spread, twoApart(l2, mean, l3, mean));
      spread = i32x4.add(spread, twoApart(l4, mean, l5, mean));
      const own = sum4(spread);
      let best = own + 48 * 48 * 2;
      texture += own;
      // What has not moved at all needs no search.
      const there = b + row * 80 + column * 2;
      let still = twoApart(l0, v128.load(there), l1, v128.load(there, 80));
      still = i32x4.add(still, twoApart(l2, v128.load(there, 160), l3, v128.load(there, 240)));
      still = i32x4.add(still, twoApart(l4, v128.load(there, 320), l5, v128.load(there, 400)));
      if (!v128.any_true(still)) continue;
      const yEnd = min(row + reach, 24), xEnd = min(column + reach, 32);
      for (let y = max(row - reach, 0); y <= yEnd; y++) {
        for (let x = max(column - reach, 0); x <= xEnd; x++) {
          const o = b + y * 80 + x * 2;
          let d = twoApart(l0, v128.load(o), l1, v128.load(o, 80));
          d = i32x4.add(d, twoApart(l2, v128.load(o, 160), l3, v128.load(o, 240)));
          d = i32x4.add(d, twoApart(l4, v128.load(o, 320), l5, v128.load(o, 400)));
          best = min(best, sum4(d));
        }
      }
      left += best;
    }
  }
  return <f32> left / (<f32> texture + <f32> (1200 * 48 * 0.6));
}

/** |a - b| + |c - d| in four partial sums, of cells of at most 12240. */
function twoApart(a: v128, b: v128, c: v128, d: v128): v128 {
  const both = i16x8.add(i16x8.abs(i16x8.sub(a, b)), i16x8.abs(i16x8.sub(c, d)));
  return i32x4.dot_i16x8_s(both, i16x8.splat(1));
}

/** What is left of the profiles after the best shift of the whole picture, of their contrast. */
export function panResidual(later: i32, earlier: i32): f32 {
  const a = PROFILES + later * PROFILE_BYTES;
  const b = PROFILES + earlier * PROFILE_BYTES;
  let across = 0x7fffffff;
  for (let shift = -24; shift <= 24; shift++) {
    const from = (12 + (shift >> 1)) << 1;
    const to = from - (shift << 1);
    // 21 differences of at most 1912 fit a u16.
    let d = i16x8.splat(0);
    for (let band = 0; band < 480; band += 160) {
      for (let x = 0; x < 112; x += 16) {
        const apart = i16x8.sub(v128.load(a + band + from + x), v128.load(b + band + to + x));
        d = i16x8.add(d, i16x8.abs(apart));
      }
    }
    across = min(across, sum8(d));
  }
  let along = 0x7fffffff;
  for (let shift = -18; shift <= 18; shift++) {
    const from = 480 + ((10 + (shift >> 1)) << 1);
    const to = from - (shift << 1);
    let d = i16x8.splat(0);
    for (let band = 0; band < 512; band += 128) {
      for (let x = 0; x < 80; x += 16) {
        const apart = i16x8.sub(v128.load(a + band + from + x), v128.load(b + band + to + x));
        d = i16x8.add(d, i16x8.abs(apart));
      }
    }
    along = min(along, sum8(d));
  }
  const contrast = min(numberAt(later, PROFILE_CONTRAST), numberAt(earlier, PROFILE_CONTRAST)) + 8;
  return min(<f32> across / (3 * 56), <f32> along / (4 * 40)) / contrast;
}
