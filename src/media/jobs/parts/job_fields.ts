/** The fields that orders of several kinds of jobs have: the broker checks an order by its schema. */

import * as z from "zod";
import { HARDWARE_DECODERS } from "../../../base/program_paths.ts";
import { FIELD_ORDERS } from "../../../model/frames/field_order.ts";

/** A count: above what any caller may ask for, and small enough for ffmpeg's own numbers. */
export const upToInt32 = z.int().min(0).max(2 ** 31 - 1);
export const oneToInt32 = upToInt32.min(1);
const edge = z.int().min(1).max(65_536);
const offset = z.int().min(0).max(65_536);
export const timeMs = z.number().min(0).max(1e12);
const rate = z.number().gt(0).max(1e6);
/** Unit of times: seconds as a ratio. */
export const timeBase = z.string().regex(/^[1-9][0-9]{0,9}\/[1-9][0-9]{0,9}$/);
const fraction = z.number().min(0).max(1.001);
/** A path: long enough for every one that Linux opens. */
export const pathText = z.string().min(1).max(4096);

export const extent = z.strictObject({ width: edge, height: edge });

export const input = z.strictObject({
  kind: z.enum(["file", "fetched", "hls", "rtsp", "mjpeg"]),
  path: pathText.nullable(),
  url: z.string().min(1).max(8192).nullable(),
  socket: pathText.nullable(),
});

/** The index of a stream among all streams of an input. */
export const streamIndex = z.int().min(0).max(10_000);
export const sizeBytes = z.number().min(0).max(Number.MAX_SAFE_INTEGER);

const video = z.strictObject({
  streamIndex,
  codec: z.string().max(64),
  pixelFormat: z.string().max(64),
  width: offset,
  height: offset,
  rotation: z.number().min(0).max(360),
  averageFps: rate.nullable(),
  timeBase,
  fieldOrder: z.enum(FIELD_ORDERS).optional(),
});

/** Whether the edit list is left out, see `MediaInfo`. */
export const ignoresEdits = z.literal(true).optional();

export const info = z.strictObject({
  formatName: z.string().max(256),
  durationMs: z.number().min(0).max(1e15).nullable(),
  sizeBytes,
  video: video.nullable(),
  videoStreams: upToInt32,
  audioStreams: z.int().min(0).max(10_000),
  audioChannels: upToInt32,
  audioCodec: z.string().max(64).nullable().optional(),
  startMs: z.number().min(-1e15).max(1e15).optional(),
  videoStartMs: z.number().min(0).max(1e15).optional(),
  announcedEndMs: z.number().min(-1e15).max(1e15).nullable().optional(),
  isCutOff: z.boolean().optional(),
  ignoresEdits,
  mp4Clock: z.enum(["silent", "steps_back", "unordered"]).optional(),
});

/** Size of pictures, see `MediaSize`. */
export const size = z.strictObject({
  width: offset,
  height: offset,
  pixelFormat: z.string().max(64),
  sizeBytes,
}).optional();

export const frameCoordinates = z.strictObject({
  source_extent: extent,
  requested_region: z.strictObject({ x: fraction, y: fraction, width: fraction, height: fraction }),
  resolved_region: z.strictObject({ x: offset, y: offset, width: edge, height: edge }),
  analysis_extent: extent,
});

export const plan = z.strictObject({
  policy: z.enum(["source_fps_adaptive", "fixed"]),
  sampleFps: rate,
  sourceFps: rate.nullable(),
});

export const hardware = z.enum(HARDWARE_DECODERS);

export const seek = z.strictObject({
  seekMs: timeMs,
  beginMs: z.number().min(-1e12).max(1e12),
  counted: z.strictObject({ first: upToInt32, count: oneToInt32, intervalMs: timeMs.gt(0) }).nullable(),
});

/** A deadline in milliseconds, up to that of the longest decode. */
export const deadlineMs = oneToInt32.max(1_800_000);
