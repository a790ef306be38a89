/** How much memory a program takes at most that decodes, by the size of the pictures and by what it does with
 * them.
 */

import { LIMITS } from "../contract/limits.ts";

const MIB = 2 ** 20;

/** What the memory of a decode follows from. */
export interface MediaSize {
  readonly width: number;
  readonly height: number;
  /** ffmpeg's name of the pixel format. */
  readonly pixelFormat: string;
  /** Bytes of the file; 0 for a stream. */
  readonly sizeBytes: number;
}

/** The size of the video that is taken; for a source without one, that of no picture at all. */
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
/**
 * Most pictures that a decoder keeps for others to refer to. The largest pictures, of more than three
 * quarters of what is allowed, have fewer: eight of AV1 and VP9, six of H.265.
 */
const REFERENCES = 17;
const REFERENCES_LARGE = 10;
/** Most threads of a decoder in ffmpeg, whatever the number of processors. */
const DECODER_THREADS_MAX = 16;
/** Pictures in filters and in the queues between them. */
const FILTERED = 8;

interface Held {
  /** Pictures of the source in memory at once. */
  readonly decoded: number;
  /** Pictures for an encoder, in 4:2:0 with 8 bits. */
  readonly encoded?: number;
}

/** Pictures that each kind of work holds, by the number of processors and the references of a picture. */
const HELD: Readonly<Record<MediaWork, (processors: number, references: number) => Held>> = {
  probe: () => ({ decoded: 8 }),
  stream_probe: () => ({ decoded: 8 }),
  /** A decode has a picture for each thread. */
  decode: (processors, references) => ({
    decoded: references + Math.min(processors + 1, DECODER_THREADS_MAX) + FILTERED,
  }),
  /**
   * A window has the pictures of a decode, and two for each thread of the encoder, of which there are three
   * for two processors.
   */
  window: (processors, references) => ({
    ...HELD.decode(processors, references),
    encoded: 24 + 3 * processors,
  }),
  /** A live decode runs on one thread. */
  live: () => ({ decoded: REFERENCES + 3 }),
  jpeg: () => ({ decoded: 6 }),
};

/**
 * Bytes of a pixel in 4:2:0. LARGEST is the picture for work that begins before the size is known, and for
 * sources whose size may change at any time.
 */
const YUV420 = 1.5;
const LARGEST: PictureInMemory = {
  pixels: LIMITS.media.picturePixelsMax,
  bytes: LIMITS.media.picturePixelsMax * YUV420,
};
/**
 * The size of a file over that of its index, at least. INDEX_BYTES_MAX is the most memory for an index: that
 * of a film of days.
 */
const INDEX_SHARE = 16;
const INDEX_BYTES_MAX = 1024 * MIB;

/** Bytes that a program may fill; `size` is null where it is not known. */
export function memoryBytes(work: MediaWork, size: MediaSize | null, processors: number): number {
  const index = Math.min(INDEX_BYTES_MAX, (size?.sizeBytes ?? 0) / INDEX_SHARE);
  const { pixels, bytes } = pictureOf(work, size);
  const isLarge = pixels > LIMITS.media.picturePixelsMax * 0.75;
  const { decoded, encoded = 0 } = HELD[work](processors, isLarge ? REFERENCES_LARGE : REFERENCES);
  return Math.ceil(OWN_BYTES + index + decoded * bytes + encoded * pixels * YUV420);
}

interface PictureInMemory {
  readonly pixels: number;
  readonly bytes: number;
}

function pictureOf(work: MediaWork, size: MediaSize | null): PictureInMemory {
  if (work === "stream_probe") return inMemory(CAMERA);
  if (work === "probe" || work === "live" || size === null) return LARGEST;
  const picture = inMemory(size);
  return work === "jpeg" || picture.bytes > GROWN.bytes ? picture : GROWN;
}

/**
 * One picture in memory, with the edges that decoders add. No larger one is decoded than is allowed, whatever
 * `size` says.
 */
function inMemory({ width, height, pixelFormat }: Omit<MediaSize, "sizeBytes">): PictureInMemory {
  const pixels = Math.min(padded(width) * padded(height), PADDED_PIXELS_MAX);
  return { pixels, bytes: pixels * bytesPerPixel(pixelFormat) };
}

/** An edge of a picture in memory, in pixels: a multiple of 64, with as much around it. */
function padded(edge: number): number {
  return Math.ceil(edge / 64) * 64 + 64;
}

/**
 * Most pixels of a picture in memory with its edges: a picture of one line would otherwise count with the
 * edges of a hundred.
 */
const PADDED_PIXELS_MAX = 4 * LIMITS.media.picturePixelsMax;

/**
 * Bytes of a pixel for names such as `yuv420p10le`, `gbrp`, `rgba64be`. An unknown format counts as four
 * samples of 16 bits.
 */
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

/** Pictures of a source may become as large as these on the way, whatever they are at first. */
const GROWN = inMemory({ width: 1920, height: 1080, pixelFormat: "yuv420p" });
/**
 * The pictures of nearly all cameras. Larger ones have room as well, as a probe of a stream sees few of them.
 */
const CAMERA = { width: 3840, height: 2160, pixelFormat: "yuv420p" };
