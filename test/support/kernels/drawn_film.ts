/** Films of drawn pictures, 320x180 yuv420p, that are pushed through the frame filter and the detectors of
 * ranges.
 */

import type { DetectedRange, Detector } from "../../../src/model/frames/detected_range.ts";
import { seededRandom } from "../seeded_random.ts";
import { RangeDetectors } from "../../../src/media/detection/range_detectors.ts";
import { FrameAnalyser } from "../../../src/media/detection/frame_analyser.ts";
import { FRAME_BYTES } from "../../../src/media/kernels/frame_planes.ts";
import { copyLines, LINES_BYTES } from "../../../src/media/kernels/picture_lines.ts";

export const WIDTH = 320;
export const HEIGHT = 180;
const LUMA = WIDTH * HEIGHT;
const CHROMA_WIDTH = WIDTH / 2;
const CHROMA = LUMA / 4;

export type Picture = Uint8Array<ArrayBuffer>;

/** A picture of one colour. */
export function plain(luma: number, u = 128, v = 128): Picture {
  const picture = new Uint8Array(FRAME_BYTES);
  picture.fill(luma, 0, LUMA);
  picture.fill(u, LUMA, LUMA + CHROMA);
  picture.fill(v, LUMA + CHROMA);
  return picture;
}

/** Landscapes are drawn once, so large, and repeat beyond. */
const FIELD_WIDTH = 1024;
const FIELD_HEIGHT = 256;

/**
 * A coloured landscape from its own seed, seen from the whole numbers `x`, `y`: smooth hills of several
 * sizes, levels 40 to 200. Moving the place is a pan.
 */
export function landscape(seed: number, x = 0, y = 0): Picture {
  const picture = new Uint8Array(FRAME_BYTES);
  const [luma, u, v] = fieldsOf(seed);
  crop(luma!, FIELD_WIDTH, Math.round(x), Math.round(y), picture.subarray(0, LUMA), WIDTH);
  for (const [field, at] of [[u!, LUMA], [v!, LUMA + CHROMA]] as const) {
    const plane = picture.subarray(at, at + CHROMA);
    crop(field, FIELD_WIDTH / 2, Math.round(x / 2), Math.round(y / 2), plane, CHROMA_WIDTH);
  }
  return picture;
}

const drawn = new Map<number, Uint8Array[]>();

function fieldsOf(seed: number): Uint8Array[] {
  const known = drawn.get(seed);
  if (known) return known;
  const fields = [
    field(FIELD_WIDTH, FIELD_HEIGHT, (x, y) => 120 + 80 * hills(seed, x, y)),
    ...[7, 8].map((n) =>
      field(FIELD_WIDTH / 2, FIELD_HEIGHT / 2, (x, y) => 128 + 40 * hills(seed + n, 2 * x, 2 * y))
    ),
  ];
  drawn.set(seed, fields);
  return fields;
}

function field(width: number, height: number, at: (x: number, y: number) => number): Uint8Array {
  return Uint8Array.from({ length: width * height }, (_, i) => at(i % width, Math.floor(i / width)));
}

function crop(field: Uint8Array, stride: number, x: number, y: number, plane: Uint8Array, width: number) {
  const rows = field.length / stride;
  for (let at = 0, row = y; at < plane.length; at += width, row++) {
    const from = ((row % rows) + rows) % rows * stride;
    for (let column = 0; column < width; column++) {
      plane[at + column] = field[from + ((x + column) % stride + stride) % stride]!;
    }
  }
}

/** A value in [-1,1]. */
function hills(seed: number, x: number, y: number): number {
  const turn = seed * 1.7;
  return 0.4 * Math.sin(x / 37 + turn) * Math.cos(y / 29 - turn) +
    0.35 * Math.sin((x * Math.cos(turn) + y * Math.sin(turn)) / 13 + seed * 5) +
    0.25 * Math.sin(x / 5.3 - y / 7.1 + seed * 3);
}

/** A mix of two pictures: `weight` of `to` and the rest of `from`, sample by sample. */
export function mixed(from: Picture, to: Picture, weight: number): Picture {
  return Uint8Array.from(from, (sample, at) => Math.round(sample + (to[at]! - sample) * weight));
}

/** A picture with each luma sample changed by `map`; chroma stays. */
export function relit(picture: Picture, map: (luma: number) => number): Picture {
  return Uint8Array.from(
    picture,
    (sample, at) => at < LUMA ? Math.max(0, Math.min(255, Math.round(map(sample)))) : sample,
  );
}

/** The picture with a rectangle of one luma level. */
export function withBox(
  picture: Picture,
  box: { x: number; y: number; width: number; height: number },
  luma: number,
): Picture {
  const result = picture.slice();
  for (let row = box.y; row < box.y + box.height; row++) {
    result.fill(luma, row * WIDTH + box.x, row * WIDTH + box.x + box.width);
  }
  return result;
}

/** Luma with noise of up to `reach` levels, the same for the same seed. */
export function noisy(picture: Picture, reach: number, seed: number): Picture {
  const random = seededRandom(seed);
  return relit(picture, (luma) => luma + (random() * 2 - 1) * reach);
}

/** A part of the luma samples is black or white, the same for the same seed. */
export function salted(picture: Picture, part: number, seed: number): Picture {
  const random = seededRandom(seed);
  return relit(picture, (luma) => random() < part ? (random() < 0.5 ? 16 : 235) : luma);
}

/** A part of a film: how many pictures, and how each is drawn from its number in the part. */
export type Part = readonly [frames: number, draw: (n: number) => Picture];

/** Frames are pushed one by one; their times follow from the rate. */
export class DrawnFilm {
  readonly filter: FrameAnalyser;
  readonly detectors: RangeDetectors;
  readonly #msPerFrame: number;

  private constructor(filter: FrameAnalyser, framesPerSecond: number, wanted?: readonly Detector[]) {
    this.filter = filter;
    this.#msPerFrame = 1000 / framesPerSecond;
    this.detectors = new RangeDetectors(filter, wanted);
  }

  static async start(framesPerSecond = 25, wanted?: readonly Detector[]): Promise<DrawnFilm> {
    return new DrawnFilm(await FrameAnalyser.load(), framesPerSecond, wanted);
  }

  /** A film of parts, which are played one after the other. */
  static async of(
    parts: readonly Part[],
    { framesPerSecond = 25, wanted }: { framesPerSecond?: number; wanted?: readonly Detector[] } = {},
  ): Promise<DrawnFilm> {
    const film = await DrawnFilm.start(framesPerSecond, wanted);
    for (const [frames, draw] of parts) film.play(frames, draw);
    return film;
  }

  /** Frames so far: the number of the next one. */
  get at(): number {
    return this.filter.count;
  }

  show(picture: Picture): void {
    const ms = this.at * this.#msPerFrame;
    copyLines(picture, WIDTH, { x: 0, y: 0, width: WIDTH, height: HEIGHT }, this.filter.staging);
    this.filter.staging.set(picture, LINES_BYTES);
    this.filter.push(LINES_BYTES, ms, true, true);
    this.detectors.push(this.filter.rangeMeasures, ms);
  }

  /** Plays `frames` pictures, drawn from their number. */
  play(frames: number, draw: (n: number) => Picture): void {
    for (let n = 0; n < frames; n++) this.show(draw(n));
  }

  /** What was found, all ranges or those of one type. */
  end(type?: Detector): DetectedRange[] {
    this.filter.finish();
    const ranges = this.detectors.finish();
    return type ? ranges.filter((range) => range.type === type) : ranges;
  }
}

/** "freeze 30-50", with the first and the last frame. */
export function told(ranges: readonly DetectedRange[]): string[] {
  return ranges.map(({ type, startFrame, endFrame }) => `${type} ${startFrame}-${endFrame}`);
}
