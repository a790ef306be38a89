/** A small picture as 768 numbers: the colours and edges of each of its cells, by arithmetic alone. */

/*
 * A classical descriptor without training: it finds that pictures look alike, and not that two views show the
 * same object.
 */

/** The picture that is described: RGB, 8 bits a channel, row by row. */
export const PICTURE_EDGE = 64;
export const PICTURE_BYTES = PICTURE_EDGE * PICTURE_EDGE * 3;

/*
 * 8x8 cells of 8x8 pixels, row by row, and of each cell 12 numbers:
 *
 *   0  luma          \  means over the cell, each around its middle, and how much luma varies
 *   1  blue - luma    | COLOUR
 *   2  red - luma     |
 *   3  contrast      /
 *   4  edges of 8 directions, from 0 to 180 degrees                                            EDGES
 */
const CELLS = 8;
const CELL_EDGE = PICTURE_EDGE / CELLS;
const CELL_PIXELS = CELL_EDGE * CELL_EDGE;
const DIRECTIONS = 8;
const COLOURS = 4;
const CELL_NUMBERS = COLOURS + DIRECTIONS;
export const DESCRIPTOR_NUMBERS = CELLS * CELLS * CELL_NUMBERS;

/** Share of the squared length that colours have; edges have the rest. */
const COLOUR_SHARE = 0.6;
/** Differences of colour are smaller than those of luma and as important. */
const CHROMA_WEIGHT = 2;
const CONTRAST_WEIGHT = 1;
/** With less than this length a part is not scaled up, because what it contains is noise. */
const COLOUR_LENGTH_MIN = 1.2;
const EDGE_LENGTH_MIN = 1.5;

/** Smaller steps of luma from pixel to pixel come from noise and compression and are no edges. */
const EDGE_MIN = 0.015;
/** Added to every number, so that a grey picture has a direction too, one that noise hardly changes. */
const FLOOR = 0.1 / Math.sqrt(DESCRIPTOR_NUMBERS);

/** A vector of length 1. */
export function describePicture(rgb: Uint8Array): Float32Array<ArrayBuffer> {
  if (rgb.length !== PICTURE_BYTES) {
    throw new RangeError(`Cannot describe a picture unless it has ${PICTURE_BYTES} bytes: got ${rgb.length}`);
  }
  const luma = new Float32Array(PICTURE_EDGE * PICTURE_EDGE);
  const descriptor = new Float32Array(DESCRIPTOR_NUMBERS);
  addColours(descriptor, luma, rgb);
  addEdges(descriptor, luma);
  scaleParts(descriptor);
  return descriptor;
}

/** Fills `luma` as well, with values in [0,1]. */
function addColours(descriptor: Float32Array, luma: Float32Array, rgb: Uint8Array): void {
  for (let pixel = 0; pixel < luma.length; pixel++) {
    const red = rgb[pixel * 3]! / 255;
    const green = rgb[pixel * 3 + 1]! / 255;
    const blue = rgb[pixel * 3 + 2]! / 255;
    const y = 0.299 * red + 0.587 * green + 0.114 * blue;
    luma[pixel] = y;
    const at = cellOf(pixel % PICTURE_EDGE, Math.floor(pixel / PICTURE_EDGE));
    descriptor[at]! += (y - 0.5) / CELL_PIXELS;
    descriptor[at + 1]! += (blue - y) * CHROMA_WEIGHT / CELL_PIXELS;
    descriptor[at + 2]! += (red - y) * CHROMA_WEIGHT / CELL_PIXELS;
    descriptor[at + 3]! += y * y / CELL_PIXELS;
  }
  for (let at = 0; at < descriptor.length; at += CELL_NUMBERS) {
    const mean = descriptor[at]! + 0.5;
    descriptor[at + 3] = Math.sqrt(Math.max(0, descriptor[at + 3]! - mean * mean)) * CONTRAST_WEIGHT;
  }
}

/** Each pixel adds the strength of its edge to the two directions that it lies between. */
function addEdges(descriptor: Float32Array, luma: Float32Array): void {
  for (let y = 1; y < PICTURE_EDGE - 1; y++) {
    for (let x = 1; x < PICTURE_EDGE - 1; x++) {
      const pixel = y * PICTURE_EDGE + x;
      const dx = luma[pixel + 1]! - luma[pixel - 1]!;
      const dy = luma[pixel + PICTURE_EDGE]! - luma[pixel - PICTURE_EDGE]!;
      const strength = Math.hypot(dx, dy) - EDGE_MIN;
      if (strength <= 0) continue;
      const turn = Math.atan2(dy, dx) / Math.PI;
      const direction = (turn < 0 ? turn + 1 : turn) * DIRECTIONS;
      const lower = Math.floor(direction) % DIRECTIONS;
      const share = direction - Math.floor(direction);
      const at = cellOf(x, y) + COLOURS;
      descriptor[at + lower]! += strength * (1 - share);
      descriptor[at + (lower + 1) % DIRECTIONS]! += strength * share;
    }
  }
  // Without the root, one hard contour would outweigh everything else.
  for (let at = 0; at < descriptor.length; at++) {
    if (at % CELL_NUMBERS >= COLOURS) descriptor[at] = Math.sqrt(descriptor[at]! / CELL_PIXELS);
  }
}

function scaleParts(descriptor: Float32Array): void {
  let colours = 0;
  let edges = 0;
  for (let at = 0; at < descriptor.length; at++) {
    const square = descriptor[at]! ** 2;
    if (at % CELL_NUMBERS < COLOURS) colours += square;
    else edges += square;
  }
  const colourScale = Math.sqrt(COLOUR_SHARE) / Math.max(Math.sqrt(colours), COLOUR_LENGTH_MIN);
  const edgeScale = Math.sqrt(1 - COLOUR_SHARE) / Math.max(Math.sqrt(edges), EDGE_LENGTH_MIN);
  let length = 0;
  for (let at = 0; at < descriptor.length; at++) {
    const scale = at % CELL_NUMBERS < COLOURS ? colourScale : edgeScale;
    descriptor[at] = descriptor[at]! * scale + FLOOR;
    length += descriptor[at]! ** 2;
  }
  const scale = 1 / Math.sqrt(length);
  for (let at = 0; at < descriptor.length; at++) descriptor[at]! *= scale;
}

function cellOf(x: number, y: number): number {
  return (Math.floor(y / CELL_EDGE) * CELLS + Math.floor(x / CELL_EDGE)) * CELL_NUMBERS;
}
