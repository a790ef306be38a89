/** JOB that decodes recorded media: sampling, cropping and scaling of frames, and where they are written. */

import * as z from "zod";
import type { DecodeDevices, HardwareDecoder } from "../../base/program_paths.ts";
import type { ImageCoordinates } from "../../model/frames/coordinates.ts";
import type { SamplingPlan } from "../../model/frames/sampling.ts";
import { inputOptions, inputUrl, type MediaInput } from "../input.ts";
import { stackingFilters } from "../kernels/picture_lines.ts";
import { reductionFilters } from "../kernels/taken_lines.ts";
import { mediaSizeOf } from "../media_memory.ts";
import type { MediaInfo } from "../media_info.ts";
import { deinterlacing } from "./parts/deinterlacing.ts";
import { type ChosenFrames, chosenFrames, type JpegSize, selectText } from "./parts/frame_choice.ts";
import { downloadFilters, hardwareArgs } from "./parts/hardware_args.ts";
import {
  NUMBERING_TIME_BASE,
  numberingFilters,
  ownTimes,
  RISING_DECODE_TIMES,
  sourceClock,
  SourceTimes,
} from "./parts/source_times.ts";
import { SteadyRate } from "./parts/steady_rate.ts";
import { job } from "./job.ts";
import {
  extent,
  frameCoordinates,
  hardware,
  info,
  input,
  oneToInt32,
  pathText,
  plan,
} from "./parts/job_fields.ts";

/** Frames go into the pipe `planes`, all or chosen ones, and JPEGs of chosen frames to the output. */
export const decode = job({
  schema: z.strictObject({
    kind: z.literal("decode"),
    subject: z.strictObject({ input, info, plan, coordinates: frameCoordinates }),
    seekS: z.number().min(0).max(1e9),
    /** The hardware that decodes; null for the CPU. */
    hardware: hardware.nullable(),
    /** Whether one thread decodes: what it makes of damage is the same each time. */
    byOneThread: z.boolean(),
    planes: z.strictObject({
      pipe: pathText,
      maxFrames: oneToInt32.nullable(),
      select: chosenFrames.nullable(),
    }),
    jpegs: z.strictObject({
      maxFrames: oneToInt32,
      select: chosenFrames,
      size: z.strictObject({ ...extent.shape, quantizer: z.int().min(2).max(31) }),
      threads: z.union([z.literal(1), z.literal(2)]),
    }).nullable(),
    cpuSeconds: z.number().gt(0).max(1e7),
  }),
  hasOutput: ({ jpegs }) => jpegs !== null,
  writes: ({ planes }) => [{ path: planes.pipe, what: "pipe", madeBy: "caller" }],
  saysOfFrames: "recorded",
  bounds: ({ hardware, cpuSeconds, subject }) => ({
    work: hardware === null ? "decode" : "hardware",
    ...{ cpuSeconds, size: mediaSizeOf(subject.info) },
  }),
  args: ({ subject, seekS, planes, jpegs, hardware, byOneThread }, { output, log, devices }) => [
    ...inputArgs(subject, {
      seekS,
      byOneThread,
      ...(log && { log }),
      ...(hardware && { hardware, devices }),
    }),
    ...(jpegs ? jpegOutput(subject, { ...jpegs, ...selectionOf(jpegs.select), output }) : []),
    ...planeOutput(subject, {
      fifoPath: planes.pipe,
      maxFrames: planes.maxFrames,
      selection: planes.select && selectionOf(planes.select),
      isOnDevice: hardware !== null,
    }),
  ],
});

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
interface FrameSelection {
  /** Chooses among all decoded frames, or among the sampled ones where `isSampled`. */
  readonly select: string;
  readonly isSampled?: boolean;
}

function selectionOf(select: ChosenFrames): FrameSelection {
  return { select: selectText(select), isSampled: select.by === "chunks" };
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
function jpegOutput(
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
