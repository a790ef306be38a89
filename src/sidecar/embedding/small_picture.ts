/** JPEG files to small RGB pictures. */

import jpeg from "jpeg-js";
import { PICTURE_BYTES, PICTURE_EDGE } from "./picture_descriptor.ts";

/** The file is no JPEG, or it is cut off, or it has more pixels than a camera makes. */
export class UndecodableJpeg extends Error {
  override readonly name = "UndecodableJpeg";
}

const LIMITS_OF_FILE = { maxResolutionInMP: 64, maxMemoryUsageInMB: 512 } as const;

/** 64x64 pixels, RGB, each the mean of the area below it. Throws UndecodableJpeg. */
export function smallPicture(file: Uint8Array): Uint8Array {
  const { width, height, data } = decoded(file);
  const columns = samplesBelow(width), rows = samplesBelow(height);
  const picture = new Uint8Array(PICTURE_BYTES);
  for (let pixel = 0; pixel < PICTURE_EDGE ** 2; pixel++) {
    let red = 0, green = 0, blue = 0;
    for (const [row, high] of rows[Math.floor(pixel / PICTURE_EDGE)]!) {
      for (const [column, wide] of columns[pixel % PICTURE_EDGE]!) {
        const at = (row * width + column) * 3, share = high * wide;
        red += share * data[at]!;
        green += share * data[at + 1]!;
        blue += share * data[at + 2]!;
      }
    }
    picture.set([red, green, blue].map(Math.round), pixel * 3);
  }
  return picture;
}

function decoded(file: Uint8Array) {
  try {
    const options = { useTArray: true, formatAsRGBA: false, tolerantDecoding: false } as const;
    return jpeg.decode(file, { ...options, ...LIMITS_OF_FILE });
  } catch {
    throw new UndecodableJpeg("the file is no whole JPEG of a usual size");
  }
}

/**
 * For each row or column of the small picture those of a large one below it, with the share that each has in
 * it.
 */
function samplesBelow(length: number): [sample: number, share: number][][] {
  const step = length / PICTURE_EDGE;
  return Array.from({ length: PICTURE_EDGE }, (_, at) => {
    const from = at * step, to = Math.min(length, from + step);
    const below: [number, number][] = [];
    for (let sample = Math.floor(from); sample < to; sample++) {
      below.push([sample, (Math.min(sample + 1, to) - Math.max(sample, from)) / step]);
    }
    return below;
  });
}
