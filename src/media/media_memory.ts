/** How much memory a program takes at most that decodes, by the size of the pictures and by what it does with them. */

import { LIMITS } from "../model/limits.ts";

const MIB = 2 ** 20;

/** What the memory of a decode follows from. */
export interface MediaSize {
  readonly width: number;
  readonly height: number;
  /** ffmpeg's name of it. */
  readonly pixelFormat: string;
  /** Of the file; 0 for a stream. */
  readonly sizeBytes: number;
}

/** Of the video that is taken; of a source without one, of no picture at all. */
export function mediaSizeOf({ video, sizeBytes }: {
  readonly video: Omit<MediaSize, "sizeBytes"> | null;
  readonly sizeBytes: number;
}): MediaSize {
  const { width = 0, height = 0, pixelFormat = "unknown" } = video ?? {};
  return { width, height, pixelFormat, sizeBytes };
}

/** Work on media, each kind of which holds another number of pictures at once. */
export type MediaWork = "probe" | "stream_probe" | "decode" | "window" | "live" | "jpeg";

/** Programs, their libraries and their queues of packets, without pictures: 65 MB for two processors. */
const OWN_BYTES = 96 * MIB;
/** The most that H.264 and its successors refer to, and the one that is decoded. */
const REFERENCES = 17;
/** Of ffmpeg, whatever the number of processors. */
const DECODER_THREADS_MAX = 16;

/** Pictures in the memory of a program at once, by the number of processors. */
const PICTURES: Readonly<Record<MediaWork, (processors: number) => number>> = {
  probe: () => 8,
  stream_probe: () => 8,
  /** Each thread has a picture, and filters and the queues between them have eight. */
  decode: (processors) => REFERENCES + Math.min(processors + 1, DECODER_THREADS_MAX) + 8,
  /** The same, queues of pictures before the encoder, and two for each thread of it, of which there are three for two processors. */
  window: (processors) => PICTURES.decode(processors) + 24 + 3 * processors,
  /** On one thread. */
  live: () => REFERENCES + 3,
  jpeg: () => 6,
};

/** Pictures of a source may become as large as these on the way, whatever they are at first. */
const GROWN: MediaSize = { width: 1920, height: 1080, pixelFormat: "yuv420p", sizeBytes: 0 };
/** For work that begins before the size is known, and for sources whose size may change at any time. */
const LARGEST = LIMITS.media.picturePixelsMax * 1.5;
/** The pictures of nearly all cameras. Larger ones have room as well, as a probe of a stream sees few of them. */
const CAMERA: MediaSize = { width: 3840, height: 2160, pixelFormat: "yuv420p", sizeBytes: 0 };

/** The index of a file takes so much less than the file, and no more than a film of days has. */
const INDEX_SHARE = 16;
const INDEX_BYTES_MAX = 1024 * MIB;

/** Bytes that a program may fill; `size` is null where it is not known. */
export function memoryBytes(work: MediaWork, size: MediaSize | null, processors: number): number {
  const index = Math.min(INDEX_BYTES_MAX, (size?.sizeBytes ?? 0) / INDEX_SHARE);
  return Math.ceil(OWN_BYTES + index + PICTURES[work](processors) * pictureOf(work, size));
}

function pictureOf(work: MediaWork, size: MediaSize | null): number {
  if (work === "stream_probe") return pictureBytes(CAMERA);
  if (work === "probe" || work === "live" || size === null) return LARGEST;
  return work === "jpeg" ? pictureBytes(size) : Math.max(pictureBytes(GROWN), pictureBytes(size));
}

/** One picture in memory, with the edges that decoders add. No larger one is decoded than is allowed, whatever `size` says. */
function pictureBytes({ width, height, pixelFormat }: MediaSize): number {
  const pixels = padded(width) * padded(height);
  return Math.min(pixels, PADDED_PIXELS_MAX) * bytesPerPixel(pixelFormat);
}

/** Edges are multiples of 64 and have as much around them. */
function padded(edge: number): number {
  return Math.ceil(edge / 64) * 64 + 64;
}

/** Of a picture of one line, which takes the edges of a hundred. */
const PADDED_PIXELS_MAX = 4 * LIMITS.media.picturePixelsMax;

/** Of names such as `yuv420p10le`, `gbrp`, `rgba64be`. An unknown one has four samples of 16 bits. */
export function bytesPerPixel(pixelFormat: string): number {
  const samples = SAMPLES.find(([pattern]) => pattern.test(pixelFormat))?.[1];
  if (samples === undefined) return 8;
  const depth = DEPTH.find(([pattern]) => pattern.test(pixelFormat))?.[1] ?? 1;
  return samples * depth;
}

/** Samples for each pixel: the first row that matches. */
const SAMPLES: readonly (readonly [RegExp, number])[] = [
  [/^(yuva444|gbrap|rgba|bgra|argb|abgr|[0a]?rgb0?$|[0a]?bgr0?$|[0x]?[rb]g[br]0$|ayuv)/, 4],
  [/^yuva42/, 3],
  [/^(yuvj?444|gbr|rgb|bgr|xyz|nv24|nv42|p4\d\d)/, 3],
  [/^(yuvj?422|yuvj?440|nv16|nv20|yuyv|uyvy|yvyu|y210|p2\d\d|ya)/, 2],
  [/^(yuvj?42[01]|yuvj?41[01]|nv12|nv21|p0\d\d|uyyvyy)/, 1.5],
  [/^(gray|mono|pal8|bayer)/, 4],
];
const DEPTH: readonly (readonly [RegExp, number])[] = [
  [/f32/, 4],
  [/(9|10|12|14|16|48|64)(le|be)$|^p\d\d\d|^y2\d\d/, 2],
];
