/** ffmpeg's arguments for recorded media: sampling, cropping and scaling of frames, and how they are written
 * into pipes.
 */

import type { ImageCoordinates } from "../../model/frames/coordinates.ts";
import type { SamplingPlan } from "../../model/frames/sampling.ts";
import { stackingFilters } from "../kernels/picture_lines.ts";
import { reductionFilters } from "../kernels/taken_lines.ts";
import type { DecodeDevices, HardwareDecoder } from "../../base/program_paths.ts";
import { inputOptions, inputUrl, type MediaInput } from "../input.ts";
import type { MediaInfo } from "../probe.ts";
import { downloadFilters, hardwareArgs } from "./hardware_args.ts";
import {
  NUMBERING_TIME_BASE,
  numberingFilters,
  RISING_DECODE_TIMES,
  sourceClock,
  SourceTimes,
} from "./source_times.ts";
import { SteadyRate } from "./steady_rate.ts";

/** What is decoded, and which rectangle of it is analysed. */
export interface DecodeSubject {
  readonly input: MediaInput;
  readonly info: MediaInfo;
  readonly plan: SamplingPlan;
  readonly coordinates: ImageCoordinates;
}

/** The part of a request that the job of a decode needs: callers pass requests with more. */
export function subjectOf({ input, info, plan, coordinates }: DecodeSubject): DecodeSubject {
  return { input, info, plan, coordinates };
}

/** Size and quality of JPEGs; width and height are even. */
export interface JpegSize {
  readonly width: number;
  readonly height: number;
  /** Quantizer of ffmpeg's MJPEG encoder, 2 (best) to 31. */
  readonly quantizer: number;
}

interface InputOptions {
  readonly seekS?: number;
  readonly byOneThread?: boolean;
  readonly log?: readonly string[];
  /** The hardware that decodes; absent for the CPU. */
  readonly hardware?: HardwareDecoder;
  readonly devices?: DecodeDevices;
}

/**
 * The arguments before the outputs. With `seekS` above 0, decoding begins at the last key frame before that
 * time; frames keep their times. `log` is what ffmpeg logs.
 */
export function inputArgs(
  { input, info }: DecodeSubject,
  { seekS = 0, byOneThread = false, log = ["-v", "error"], hardware, devices = {} }: InputOptions = {},
): string[] {
  const seek = ["-ss", seekS.toFixed(3), "-noaccurate_seek"];
  return [
    ...["-nostdin", ...log, "-cpuflags", `+${SLOW_GATHER}`],
    ...(byOneThread ? ["-threads", "1"] : []),
    ...(hardware ? hardwareArgs(hardware, devices) : []),
    ...(seekS > 0 ? seek : []),
    ...OWN_CLOCK,
    ...[...inputOptions(input, info), "-i", inputUrl(input)],
  ];
}

/**
 * Options that keep the container's own times, from its start on: ffmpeg closes no gap and corrects no jump.
 * `FrameClock` does that, which sees more frames.
 */
const OWN_CLOCK = ["-copyts", "-start_at_zero"];

/**
 * Says that this processor reads scattered bytes slowly, so that the scaler loads them one by one: the same
 * samples, and on AMD processors half the scaler's time, a fifth of a decode of 1080p. The number of ffmpeg's
 * flag `slowgather`, whose name is known to x86 alone, and not to versions before 5.0; those ignore the
 * number.
 */
const SLOW_GATHER = 0x2000000;

/** Which frames become JPEGs, or are written for the signals a second time. */
export interface FrameSelection {
  /** Chooses among all decoded frames, or among the sampled ones where `isSampled`. */
  readonly select: string;
  readonly isSampled?: boolean;
}

/**
 * Writes frames, reduced to 320x180 yuv420p below some lines of the picture as they are, into the pipe at
 * `fifoPath`: all decoded ones, of which the decode Worker chooses those that keep to the rate, or those of
 * the selection.
 */
export function planeOutput(
  subject: DecodeSubject,
  { fifoPath, maxFrames, selection, isOnDevice = false }: {
    readonly fifoPath: string;
    /** How many frames are written; null where the reader closes the pipe, or all frames are written. */
    readonly maxFrames: number | null;
    readonly selection: FrameSelection | null;
    /** Whether decoded frames are in the memory of a device; false unless given. */
    readonly isOnDevice?: boolean;
  },
): string[] {
  return [
    ...videoOnly(subject, maxFrames),
    // The frames are too small to share among threads: two threads cost a fifth more CPU in all at 720p.
    ...[
      "-filter_threads",
      "1",
      "-vf",
      [
        ...(isOnDevice ? downloadFilters(subject.info.video!.pixelFormat) : []),
        ...deinterlacing(subject.info),
        ...(selection ? [`select='${selection.select}'`] : []),
        new SourceTimes(sourceClock(subject.info)).filter,
        ...planeScaling(subject),
      ].join(","),
    ],
    ...ownTimes(subject.info.video!.timeBase),
    ...RISING_DECODE_TIMES,
    // One thread, because the raw "encoder" only copies, and writes as large as the pipe instead of one for
    // each frame: together they save 5 % of a decode's time at 1080p. Without an index ffmpeg's memory does
    // not grow with the frames.
    ...["-c:v", "rawvideo", "-threads", "1", "-f", "nut", "-write_index", "0", "-flush_packets", "0"],
    ...["-blocksize", String(PIPE_BYTES), "-y", `file:${fifoPath}`],
  ];
}

/**
 * Writes JPEGs of the selected frames to `output`, with their numbers as times: see `numberIn`. The fixed
 * Huffman tables cost a tenth more bytes and save a fifth of the encoder's time. With two threads the encoder
 * works while ffmpeg filters the next frames, but each JPEG comes only when one or two more frames were
 * chosen.
 */
export function jpegOutput(
  subject: DecodeSubject,
  { maxFrames, size, threads, output, ...selection }: FrameSelection & {
    readonly maxFrames: number;
    readonly size: JpegSize;
    readonly threads: 1 | 2;
    readonly output: string;
  },
): string[] {
  const filters = [
    ...deinterlacing(subject.info),
    ...numbered(subject, selection),
    ...cropping(subject),
    ...jpegScaling(subject, size),
  ];
  return [
    ...videoOnly(subject, maxFrames),
    ...["-filter_threads", "1", "-vf", filters.join(",")],
    ...ownTimes(NUMBERING_TIME_BASE),
    ...["-c:v", "mjpeg", "-q:v", String(size.quantizer), "-huffman", "default", "-flags:v", "+bitexact"],
    ...["-threads", String(threads), "-f", "nut", "-write_index", "0", "-flush_packets", "1", "-y", output],
  ];
}

/** The capacity of a pipe on Linux. */
const PIPE_BYTES = 64 * 1024;

function videoOnly({ info }: DecodeSubject, maxFrames: number | null): string[] {
  return [
    ...["-map", `0:${info.video!.streamIndex}`, "-an", "-sn", "-dn"],
    ...["-map_metadata", "-1", "-map_chapters", "-1"],
    ...(maxFrames === null ? [] : ["-frames:v", String(maxFrames)]),
  ];
}

/**
 * Options by which no frame is repeated or dropped for a steady rate, and times are in `timeBase`. A ratio is
 * the one form that every version of ffmpeg takes: the word for "as the source" is -1 or `demux`, or fails
 * behind some filters.
 */
export function ownTimes(timeBase: string): string[] {
  return ["-fps_mode", "passthrough", "-enc_time_base", timeBase];
}

/**
 * Filters that select frames and give each its number as its time. They come first, so that no other filter
 * works on frames that are dropped.
 */
function numbered({ plan }: DecodeSubject, { select, isSampled = false }: FrameSelection): string[] {
  const rate = isSampled ? SteadyRate.of(plan) : null;
  const chosen = `select='${select}'`;
  return isSampled
    ? [...numberingFilters(rate?.expression() ?? null), chosen]
    : [chosen, ...numberingFilters(null)];
}

/** Codec whose fields ffmpeg knows from each frame alone, as AVI and MP4 say nothing of them. */
const FIELDS_BY_FRAME = "mpeg4";

/**
 * Filters that make one picture of the two fields of a frame, as a player shows it, where the source or only
 * its frames declare fields. Frames that are flagged as progressive stay as they are. This comes before any
 * choice of frames, because it looks at the frames before and after. The number of frames stays, and so do
 * their times.
 */
export function deinterlacing({ video }: MediaInfo): string[] {
  if (!video || Math.min(video.width, video.height) < LEAST_EDGE) return [];
  const mayHaveFields = video.fieldOrder !== undefined || video.codec === FIELDS_BY_FRAME;
  return mayHaveFields ? [`bwdif=mode=send_frame:deint=interlaced`, `settb=${video.timeBase}`] : [];
}

/** Least edge of a picture in pixels: ffmpeg's filter takes no smaller ones. */
const LEAST_EDGE = 4;

/**
 * Filter that cuts out the analysed region. `exact=1` allows odd positions and sizes where chroma has a lower
 * resolution than luma.
 */
function cropping({ info, coordinates }: DecodeSubject): string[] {
  const { width, height, x, y } = coordinates.resolved_region;
  const isWhole = width === info.video!.width && height === info.video!.height;
  return isWhole ? [] : [`crop=${width}:${height}:${x}:${y}:exact=1`];
}

/**
 * Crops, then scales. Both ranges are declared as full, so that the scaler does not stretch samples of
 * 16..235: they stay as they are. See docs/frames.md#signals.
 */
function planeScaling(subject: DecodeSubject): string[] {
  const { pixelFormat } = subject.info.video!;
  const sameRange = "in_range=full:out_range=full";
  return [
    ...(HAS_LUMA_PLANE.test(pixelFormat) ? [] : toPlanes(pixelFormat)),
    ...cropping(subject),
    stackingFilters([
      ...reductionFilters(subject.coordinates.resolved_region.height),
      // More than 8 bits of gray would give chroma that is dithered around 128.
      ...(IS_GRAY.test(pixelFormat) ? ["format=gray", `scale=${sameRange}`] : []),
      "format=yuv420p",
    ]),
  ];
}

/**
 * Filters that turn RGB into planes, in full range, with luma as in a gray picture. The scaler does not know
 * the range of what it makes of Bayer patterns.
 */
function toPlanes(pixelFormat: string): string[] {
  return [
    ...(pixelFormat.startsWith("bayer") ? ["format=rgb24"] : []),
    ...["scale=out_range=full", "format=yuv444p"],
  ];
}

/**
 * Converts to full range, which JPEG has and most video has not. The scaler is there even where nothing has
 * to be scaled, because a source may change its size on the way. Without a change of size all its methods
 * give the same samples, and `neighbor` is three times as fast as the default.
 */
function jpegScaling({ info, coordinates }: DecodeSubject, { width, height }: JpegSize): string[] {
  const { resolved_region: region } = coordinates;
  const isSameGrid = width === region.width && height === region.height &&
    SAME_GRID_AS_JPEG.test(info.video!.pixelFormat);
  const method = isSameGrid ? "neighbor" : "bilinear";
  return [`scale=${width}:${height}:flags=${method}:out_range=full`, "format=yuvj420p", "setsar=1"];
}

/** Pixel formats that have a luma plane; the others (RGB, palettes) have to be converted. */
const HAS_LUMA_PLANE = /^(yuv|yuyv|uyvy|yvyu|nv\d|p[024]1\d|gray(?!f)|ya\d)/;
/** Pixel formats that have a luma plane and no chroma. */
const IS_GRAY = /^(gray|ya\d)/;
/** Pixel formats with one chroma sample for four of luma, as in our JPEGs. */
const SAME_GRID_AS_JPEG = /^(yuvj?420p|nv12)/;
