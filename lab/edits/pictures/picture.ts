/** A picture of 8 bits in YUV 4:2:0, and what is done to whole pictures: copy, mix, crop, light, noise, blur.
 */

import type { Random } from "../random.ts";

export interface Size {
  readonly width: number;
  readonly height: number;
}

/** A part of a picture, in luma samples; fractions are allowed. */
export interface Part extends Size {
  readonly x: number;
  readonly y: number;
}

export interface Plane extends Size {
  readonly data: Uint8Array;
}

/** The size `factor` times as large, made even. */
export function scaled({ width, height }: Size, factor: number): Size {
  return { width: 2 * Math.round(width * factor / 2), height: 2 * Math.round(height * factor / 2) };
}

/** A picture, whose width and height are even. */
export class Picture implements Size {
  readonly width: number;
  readonly height: number;
  readonly data: Uint8Array<ArrayBuffer>;
  readonly y: Uint8Array;
  readonly u: Uint8Array;
  readonly v: Uint8Array;

  constructor({ width, height }: Size) {
    if (width % 2 !== 0 || height % 2 !== 0) throw new Error(`${width}x${height}: both must be even`);
    this.width = width;
    this.height = height;
    const luma = width * height;
    this.data = new Uint8Array(luma * 3 / 2);
    this.y = this.data.subarray(0, luma);
    this.u = this.data.subarray(luma, luma * 5 / 4);
    this.v = this.data.subarray(luma * 5 / 4);
    this.u.fill(128);
    this.v.fill(128);
  }

  planes(): readonly [Plane, Plane, Plane] {
    const { width, height } = this;
    const chroma = { width: width / 2, height: height / 2 };
    return [{ data: this.y, width, height }, { data: this.u, ...chroma }, { data: this.v, ...chroma }];
  }

  copyFrom(other: Picture): this {
    this.data.set(other.data);
    return this;
  }

  clone(): Picture {
    return new Picture(this).copyFrom(this);
  }

  fill(y: number, u = 128, v = 128): this {
    this.y.fill(y);
    this.u.fill(u);
    this.v.fill(v);
    return this;
  }
}

/** Mixes two pictures: `to` becomes `weight` of `b` and the rest of `a`. */
export function blend(a: Picture, b: Picture, weight: number, to: Picture): void {
  const part = Math.round(256 * weight);
  const rest = 256 - part;
  for (let i = 0; i < to.data.length; i++) to.data[i] = (a.data[i]! * rest + b.data[i]! * part + 128) >> 8;
}

/**
 * Mixes by a map of the moments (0 to 255) at which each sample changes over; `soft` is the width of the
 * edge.
 */
export function blendByMap(
  a: Picture,
  b: Picture,
  map: readonly [Uint8Array, Uint8Array],
  progress: number,
  soft: number,
  to: Picture,
): void {
  const edge = Math.max(1, soft);
  const reached = progress * (255 + edge + 1);
  const weights = new Uint16Array(256);
  for (let moment = 0; moment < 256; moment++) {
    weights[moment] = Math.round(256 * Math.max(0, Math.min(1, (reached - moment) / edge)));
  }
  const planesA = a.planes(), planesB = b.planes(), planesTo = to.planes();
  for (let p = 0; p < 3; p++) {
    const moments = map[p === 0 ? 0 : 1];
    const da = planesA[p]!.data, db = planesB[p]!.data, out = planesTo[p]!.data;
    for (let i = 0; i < out.length; i++) {
      const weight = weights[moments[i]!]!;
      out[i] = (da[i]! * (256 - weight) + db[i]! * weight + 128) >> 8;
    }
  }
}

/** Fills `to` with a part of `from`, interpolated; where the part leaves the picture its edge is repeated. */
export function sample(from: Picture, part: Part, to: Picture): void {
  const planesFrom = from.planes(), planesTo = to.planes();
  for (let p = 0; p < 3; p++) {
    const scale = p === 0 ? 1 : 0.5;
    samplePlane(planesFrom[p]!, {
      x: part.x * scale,
      y: part.y * scale,
      width: part.width * scale,
      height: part.height * scale,
    }, planesTo[p]!);
  }
}

function samplePlane(from: Plane, part: Part, to: Plane): void {
  const columns = steps(part.x, part.width, to.width, from.width);
  const rows = steps(part.y, part.height, to.height, from.height);
  for (let row = 0, out = 0; row < to.height; row++) {
    const top = rows.first[row]! * from.width;
    const bottom = Math.min(rows.first[row]! + 1, from.height - 1) * from.width;
    const down = rows.weight[row]!;
    for (let column = 0; column < to.width; column++, out++) {
      const left = columns.first[column]!;
      const right = left + 1 < from.width ? left + 1 : left;
      const over = columns.weight[column]!;
      const upper = from.data[top + left]! * (256 - over) + from.data[top + right]! * over;
      const lower = from.data[bottom + left]! * (256 - over) + from.data[bottom + right]! * over;
      to.data[out] = (upper * (256 - down) + lower * down + 32768) >> 16;
    }
  }
}

function steps(start: number, length: number, count: number, limit: number) {
  const first = new Int32Array(count);
  const weight = new Int32Array(count);
  for (let i = 0; i < count; i++) {
    const place = Math.max(0, Math.min(limit - 1, start + (i + 0.5) * length / count - 0.5));
    first[i] = Math.floor(place);
    weight[i] = Math.round(256 * (place - Math.floor(place)));
  }
  return { first, weight };
}

/** Pastes `from` with its top left corner at even `x` and `y`; what lies outside is left out. */
export function paste(from: Picture, to: Picture, x: number, y: number): void {
  const planesFrom = from.planes(), planesTo = to.planes();
  for (let p = 0; p < 3; p++) {
    const source = planesFrom[p]!, target = planesTo[p]!;
    const left = Math.round(p === 0 ? x : x / 2), top = Math.round(p === 0 ? y : y / 2);
    const begin = Math.max(0, -left), end = Math.min(source.width, target.width - left);
    if (begin >= end) continue;
    for (let row = Math.max(0, -top); row < source.height && top + row < target.height; row++) {
      const at = row * source.width;
      target.data.set(source.data.subarray(at + begin, at + end), (top + row) * target.width + left + begin);
    }
  }
}

/**
 * Changes the light: luma becomes `gain` times itself plus `offset`, chroma is stretched around grey by
 * `chroma`.
 */
export function light(
  picture: Picture,
  gain: number,
  offset: number,
  chroma = 1,
  tintU = 0,
  tintV = 0,
): void {
  const luma = table((value) => 16 + (value - 16) * gain + offset);
  const { y, u, v } = picture;
  for (let i = 0; i < y.length; i++) y[i] = luma[y[i]!]!;
  if (chroma === 1 && tintU === 0 && tintV === 0) return;
  const tableU = table((value) => 128 + (value - 128) * chroma + tintU);
  const tableV = table((value) => 128 + (value - 128) * chroma + tintV);
  for (let i = 0; i < u.length; i++) {
    u[i] = tableU[u[i]!]!;
    v[i] = tableV[v[i]!]!;
  }
}

function table(map: (value: number) => number): Uint8Array {
  return Uint8Array.from({ length: 256 }, (_, value) => Math.max(0, Math.min(255, Math.round(map(value)))));
}

/** Adds normally distributed noise of the deviation `sigma` to luma and, weaker, to chroma. */
export function addNoise(picture: Picture, random: Random, sigma: number, chroma = 0.5): void {
  const noise = random.noise();
  const planes = picture.planes();
  for (let p = 0; p < (chroma > 0 ? 3 : 1); p++) {
    const { data, width, height } = planes[p]!;
    const gain = Math.round(256 * sigma * (p === 0 ? 1 : chroma) / 16);
    for (let row = 0; row < height; row++) {
      let from = random.int(0, noise.length - width);
      for (let i = row * width; i < (row + 1) * width; i++, from++) {
        const value = data[i]! + ((noise[from]! * gain + 128) >> 8);
        data[i] = value < 0 ? 0 : value > 255 ? 255 : value;
      }
    }
  }
}

/** Blurs along rows (or columns) over `length` samples, as a fast turn of the camera does. */
export function blurAlong(picture: Picture, length: number, vertical = false): void {
  picture.planes().forEach(({ data, width, height }, p) => {
    const reach = Math.max(0, Math.round(length / (p === 0 ? 2 : 4)));
    if (reach === 0) return;
    const [lines, count, stride, step] = vertical ? [width, height, 1, width] : [height, width, width, 1];
    const line = new Uint8Array(count);
    for (let l = 0; l < lines; l++) {
      for (let i = 0; i < count; i++) line[i] = data[l * stride + i * step]!;
      let sum = 0;
      for (let i = -reach; i <= reach; i++) sum += line[Math.max(0, Math.min(count - 1, i))]!;
      for (let i = 0; i < count; i++) {
        data[l * stride + i * step] = sum / (2 * reach + 1);
        sum += line[Math.min(count - 1, i + reach + 1)]! - line[Math.max(0, i - reach)]!;
      }
    }
  });
}

/** Mean absolute difference, and the largest one of 32x32 blocks, over every fourth column and third row. */
export function difference(a: Picture, b: Picture): { mean: number; luma: number; block: number } {
  const { width, height } = a;
  const across = Math.ceil(width / 32);
  const sums = new Float64Array(across * Math.ceil(height / 32));
  const counts = new Float64Array(sums.length);
  let luma = 0, chroma = 0, lumaCount = 0, chromaCount = 0;
  for (let row = 0; row < height; row += 3) {
    for (let column = 0; column < width; column += 4) {
      const i = row * width + column;
      const c = (row >> 1) * (width >> 1) + (column >> 1);
      const step = Math.abs(a.y[i]! - b.y[i]!);
      const colour = Math.abs(a.u[c]! - b.u[c]!) + Math.abs(a.v[c]! - b.v[c]!);
      const block = (row >> 5) * across + (column >> 5);
      sums[block] = sums[block]! + step + colour;
      counts[block] = counts[block]! + 1;
      luma += step;
      chroma += colour;
      lumaCount++;
      chromaCount++;
    }
  }
  let block = 0;
  for (let i = 0; i < sums.length; i++) block = Math.max(block, sums[i]! / counts[i]!);
  return { mean: luma / lumaCount + chroma / chromaCount, luma: luma / lumaCount, block };
}
