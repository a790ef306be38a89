/** Shapes drawn into pictures: rectangles, discs, and lines of made-up letters. */

import type { Picture } from "./picture.ts";
import type { Random } from "../random.ts";

/** Luma and the two chroma values. */
export type Colour = readonly [number, number, number];

export const BLACK: Colour = [16, 128, 128];
export const WHITE: Colour = [235, 128, 128];

export function rectangle(
  picture: Picture,
  x: number,
  y: number,
  width: number,
  height: number,
  [luma, u, v]: Colour,
): void {
  const planes = picture.planes();
  [luma, u, v].forEach((value, p) => {
    const plane = planes[p]!;
    const scale = p === 0 ? 1 : 2;
    const left = clamp(Math.round(x / scale), plane.width);
    const right = clamp(Math.round((x + width) / scale), plane.width);
    const bottom = clamp(Math.round((y + height) / scale), plane.height);
    for (let row = clamp(Math.round(y / scale), plane.height); row < bottom; row++) {
      plane.data.fill(value, row * plane.width + left, row * plane.width + Math.max(left, right));
    }
  });
}

/**
 * An ellipse; `weightOf` is asked with the distance from the centre (1 at the rim) and says how much of it
 * covers.
 */
export function ellipse(
  picture: Picture,
  centreX: number,
  centreY: number,
  radiusX: number,
  radiusY: number,
  [luma, u, v]: Colour,
  weightOf: (distance: number) => number = () => 1,
): void {
  const weights = new Uint16Array(257);
  for (let i = 0; i <= 256; i++) weights[i] = Math.round(256 * weightOf(Math.sqrt(i / 256)));
  const planes = picture.planes();
  [luma, u, v].forEach((value, p) => {
    const { data, width, height } = planes[p]!;
    const scale = p === 0 ? 1 : 2;
    const cx = centreX / scale, cy = centreY / scale, rx = radiusX / scale, ry = radiusY / scale;
    for (let row = clamp(Math.ceil(cy - ry), height); row < clamp(cy + ry, height); row++) {
      const dy = ((row - cy) / ry) ** 2;
      for (let column = clamp(Math.ceil(cx - rx), width); column < clamp(cx + rx, width); column++) {
        const distance = dy + ((column - cx) / rx) ** 2;
        if (distance > 1) continue;
        const weight = weights[Math.floor(256 * distance)]!;
        const i = row * width + column;
        data[i] = (data[i]! * (256 - weight) + value * weight + 128) >> 8;
      }
    }
  });
}

function clamp(place: number, limit: number): number {
  return Math.max(0, Math.min(limit, place));
}

/** A letter: five columns and seven rows, a bit a cell. */
type Glyph = readonly number[];

/** Letters of no language: strokes that look like writing at a distance. */
export class Script {
  readonly #glyphs: Glyph[] = [];

  constructor(random: Random) {
    for (let g = 0; g < 26; g++) {
      const rows = new Array<number>(7).fill(0);
      for (let stroke = random.int(2, 4); stroke > 0; stroke--) {
        if (random.chance(0.5)) {
          const column = random.pick([0, 2, 4]);
          const top = random.int(0, 2), bottom = random.int(4, 6);
          for (let row = top; row <= bottom; row++) rows[row]! |= 1 << column;
        } else {
          const row = random.pick([0, 3, 6]);
          rows[row]! |= random.pick([0b11111, 0b01110, 0b00111, 0b11100]);
        }
      }
      this.#glyphs.push(rows);
    }
  }

  /** Words of 2 to 9 letters, as indexes; -1 is a space. */
  line(random: Random, length: number): number[] {
    const line: number[] = [];
    for (let left = random.int(2, 9); line.length < length; left--) {
      if (left > 0) line.push(random.int(0, 25));
      else {
        line.push(-1);
        left = random.int(3, 10);
      }
    }
    return line;
  }

  /** Writes letters. One is `6 * scale` wide and `9 * scale` high, the gap to the next included. */
  write(
    picture: Picture,
    line: readonly number[],
    x: number,
    y: number,
    scale: number,
    [luma, u, v]: Colour,
  ): void {
    const { width, height } = picture;
    line.forEach((letter, place) => {
      const glyph = this.#glyphs[letter];
      const left = Math.round(x + place * 6 * scale);
      if (!glyph || left < 0 || left + 5 * scale > width) return;
      for (let row = 0; row < 7 * scale; row++) {
        const bits = glyph[Math.floor(row / scale)]!;
        const line = Math.round(y) + row;
        if (line < 0 || line >= height) continue;
        for (let column = 0; column < 5 * scale; column++) {
          if (!(bits & (1 << Math.floor(column / scale)))) continue;
          picture.y[line * width + left + column] = luma;
          const c = (line >> 1) * (width >> 1) + ((left + column) >> 1);
          picture.u[c] = u;
          picture.v[c] = v;
        }
      }
    });
  }
}
