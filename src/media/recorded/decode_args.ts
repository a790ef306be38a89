/** The words for ffmpeg: how frames are sampled, cropped and reduced, and how they are written into a pipe. */

import type { ImageCoordinates } from "../../model/frames/coordinates.ts";
import { type SamplingPlan, takesEveryFrame } from "../../model/frames/sampling.ts";
import { PLANE_HEIGHT, PLANE_WIDTH } from "../kernels/frame_filter.ts";
import type { MediaInput } from "../input.ts";
import type { MediaInfo } from "../probe.ts";

/** What is decoded and which rectangle of it is looked at. */
export interface DecodeSubject {
  readonly input: MediaInput;
  readonly info: MediaInfo;
  readonly plan: SamplingPlan;
  readonly coordinates: ImageCoordinates;
}

/** Pictures in the shape that a model is shown them in; even dimensions in pixels. */
export interface JpegSize {
  readonly width: number;
  readonly height: number;
  /** ffmpeg's scale of MJPEG, 2 (best) to 31. */
  readonly quantizer: number;
}

/** What comes before the outputs. `seekS` skips what lies before a key frame before it; times stay as they are. */
export function inputArgs({ input }: DecodeSubject, seekS = 0): string[] {
  const seek = ["-ss", seekS.toFixed(3), "-noaccurate_seek", "-copyts", "-start_at_zero"];
  return ["-nostdin", "-v", "error", ...(seekS > 0 ? seek : []), ...input.args, "-i", input.url];
}

/** Writes 320x180 luma planes of `maxFrames` sampled frames into the pipe at `fifoPath`; `select` passes only some. */
export function planeOutput(
  subject: DecodeSubject,
  { maxFrames, fifoPath, select }: { maxFrames: number; fifoPath: string; select?: string },
): string[] {
  return [
    ...videoOnly(subject, maxFrames),
    // The planes are too small to share among threads: two threads cost a fifth more CPU in all at 720p.
    ...["-filter_threads", "1", "-vf", [...sampled(subject, select), ...reduced(subject)].join(",")],
    ...sourceTimes(subject),
    // One thread, as the raw "encoder" only copies, and writes as large as the pipe, not one a frame: together they save
    // 5 % of a decode's wall at 1080p. Without an index ffmpeg's memory does not grow with the number of frames.
    ...["-c:v", "rawvideo", "-threads", "1", "-f", "nut", "-write_index", "0", "-flush_packets", "0"],
    ...["-blocksize", String(PIPE_BYTES), "-y", `file:${fifoPath}`],
  ];
}

/**
 * Writes JPEGs of the frames that `select` passes to stdout, `maxFrames` of them. The fixed Huffman tables cost a tenth
 * more bytes and save a fifth of the encoder's time. With two threads the encoder works while ffmpeg filters on, and
 * gives each picture when the next one or two are chosen.
 */
export function jpegOutput(
  subject: DecodeSubject,
  { maxFrames, select, size, threads }: {
    maxFrames: number;
    select: string;
    size: JpegSize;
    threads: 1 | 2;
  },
): string[] {
  const filters = [...sampled(subject, select), ...cropped(subject), ...pictured(subject, size)];
  return [
    ...videoOnly(subject, maxFrames),
    ...["-filter_threads", "1", "-vf", filters.join(",")],
    ...sourceTimes(subject),
    ...["-c:v", "mjpeg", "-q:v", String(size.quantizer), "-huffman", "default", "-flags:v", "+bitexact"],
    ...["-threads", String(threads), "-f", "nut", "-write_index", "0", "-flush_packets", "1", "-y", "pipe:1"],
  ];
}

/** What a pipe holds on Linux. */
const PIPE_BYTES = 64 * 1024;

function videoOnly({ info }: DecodeSubject, maxFrames: number): string[] {
  return [
    ...["-map", `0:${info.video!.streamIndex}`, "-an", "-sn", "-dn"],
    ...["-map_metadata", "-1", "-map_chapters", "-1", "-frames:v", String(maxFrames)],
  ];
}

/** Every frame as it is; in the source's own time base, so that its time is exact. */
function sourceTimes({ plan }: DecodeSubject): string[] {
  return ["-fps_mode", "passthrough", ...(takesEveryFrame(plan) ? ["-enc_time_base", "-1"] : [])];
}

/** Drops frames first, before anything looks at their pixels. */
function sampled({ info, plan }: DecodeSubject, select: string | undefined): string[] {
  return [
    ...(takesEveryFrame(plan) ? [] : [steadyRate(info, plan.sampleFps)]),
    ...(select === undefined ? [] : [`select='${select}'`]),
  ];
}

/** Exact where chroma is coarser than the crop. */
function cropped({ info, coordinates }: DecodeSubject): string[] {
  const { width, height, x, y } = coordinates.resolved_region;
  const isWhole = width === info.video!.width && height === info.video!.height;
  return isWhole ? [] : [`crop=${width}:${height}:${x}:${y}:exact=1`];
}

/**
 * Drops the pixels outside the crop; the scaler then reads no other plane than luma. Saying that both sides are full
 * range keeps it from stretching what was written as 16..235: the samples stay as they are (D6).
 */
function reduced(subject: DecodeSubject): string[] {
  return [
    ...(HAS_LUMA_PLANE.test(subject.info.video!.pixelFormat) ? [] : ["format=gray"]),
    ...cropped(subject),
    `scale=${PLANE_WIDTH}:${PLANE_HEIGHT}:flags=area:in_range=full:out_range=full`,
    "format=gray",
  ];
}

/**
 * JPEG is full range, video mostly is not. The scaler stands here even where it has nothing to scale, as a source may
 * change its size on the way. Without a change of size every one of its methods gives the same samples, and `neighbor` is
 * three times as fast as the default.
 */
function pictured({ info, coordinates }: DecodeSubject, { width, height }: JpegSize): string[] {
  const { resolved_region: region } = coordinates;
  const isSameGrid = width === region.width && height === region.height &&
    SAME_GRID_AS_JPEG.test(info.video!.pixelFormat);
  const method = isSameGrid ? "neighbor" : "bilinear";
  return [`scale=${width}:${height}:flags=${method}:out_range=full`, "format=yuvj420p", "setsar=1"];
}

/**
 * Contract 2.3. The end of the medium is rounded to a whole number of samples, which would be none for a medium below
 * half a sampling period: two frames at 23 frames a second, sampled at 2, last 0.17 periods.
 */
function steadyRate(info: MediaInfo, sampleFps: number): string {
  const isShort = info.durationMs !== null && info.durationMs * sampleFps < 1000;
  return `fps=${sampleFps.toFixed(3)}${isShort ? ":eof_action=pass" : ""}`;
}

/** Pixel formats from which luma can be taken as it is; the others (RGB, palettes) have to be converted. */
const HAS_LUMA_PLANE = /^(yuv|yuyv|uyvy|yvyu|nv\d|p[024]1\d|gray(?!f)|ya\d)/;
/** One chroma sample for four of luma, as in the JPEGs that we write. */
const SAME_GRID_AS_JPEG = /^(yuvj?420p|nv12)/;
