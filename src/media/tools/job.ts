/** What a program may be started for, as data: the broker checks a job by these schemas and makes the
 * arguments itself.
 */

import * as z from "zod";
import { HARDWARE_DECODERS } from "../../base/program_paths.ts";
import { LIMITS } from "../../contract/limits.ts";
import { FIELD_ORDERS } from "../../model/frames/field_order.ts";

/** A count: above what any caller may ask for, and small enough for ffmpeg's own numbers. */
const count = z.int().min(0).max(2 ** 31 - 1);
const positive = count.min(1);
const edge = z.int().min(1).max(65_536);
const offset = z.int().min(0).max(65_536);
const timeMs = z.number().min(0).max(1e12);
const rate = z.number().gt(0).max(1e6);
/** Unit of times: seconds as a ratio. */
const timeBase = z.string().regex(/^[1-9][0-9]{0,9}\/[1-9][0-9]{0,9}$/);
const fraction = z.number().min(0).max(1.001);
/** A path: long enough for every one that Linux opens. */
const path = z.string().min(1).max(4096);

const extent = z.strictObject({ width: edge, height: edge });

const input = z.strictObject({
  kind: z.enum(["file", "fetched", "hls", "rtsp", "mjpeg"]),
  path: path.nullable(),
  url: z.string().min(1).max(8192).nullable(),
  socket: path.nullable(),
});

const video = z.strictObject({
  streamIndex: z.int().min(0).max(10_000),
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
const ignoresEdits = z.literal(true).optional();

const info = z.strictObject({
  formatName: z.string().max(256),
  durationMs: z.number().min(0).max(1e15).nullable(),
  sizeBytes: z.number().min(0).max(Number.MAX_SAFE_INTEGER),
  video: video.nullable(),
  videoStreams: count,
  audioStreams: z.int().min(0).max(10_000),
  audioChannels: count,
  audioCodec: z.string().max(64).nullable().optional(),
  startMs: z.number().min(-1e15).max(1e15).optional(),
  videoStartMs: z.number().min(0).max(1e15).optional(),
  announcedEndMs: z.number().min(-1e15).max(1e15).nullable().optional(),
  isCutOff: z.boolean().optional(),
  ignoresEdits,
  mp4Clock: z.enum(["silent", "steps_back", "unordered"]).optional(),
});

/** Size of pictures, see `MediaSize`. */
const size = z.strictObject({
  width: offset,
  height: offset,
  pixelFormat: z.string().max(64),
  sizeBytes: info.shape.sizeBytes,
}).optional();

const coordinates = z.strictObject({
  source_extent: extent,
  requested_region: z.strictObject({ x: fraction, y: fraction, width: fraction, height: fraction }),
  resolved_region: z.strictObject({ x: offset, y: offset, width: edge, height: edge }),
  analysis_extent: extent,
});

const plan = z.strictObject({
  policy: z.enum(["source_fps_adaptive", "fixed"]),
  sampleFps: rate,
  sourceFps: rate.nullable(),
});

/** Longest list of single frames: a chunk has fewer. */
const FRAMES_MAX = 1024;

const select = z.discriminatedUnion("by", [
  z.strictObject({ by: z.literal("frames"), frames: z.array(count).min(1).max(FRAMES_MAX).readonly() }),
  z.strictObject({
    by: z.literal("times"),
    timesS: z.array(z.number().min(-1e9).max(1e9)).min(1).max(FRAMES_MAX).readonly(),
  }),
  z.strictObject({
    by: z.literal("chunks"),
    size: positive.max(FRAMES_MAX),
    perChunk: positive.max(FRAMES_MAX),
    maxFrames: positive,
    candidatesFrom: count.nullable(),
  }),
]);

const hardware = z.enum(HARDWARE_DECODERS);

const seek = z.strictObject({
  seekMs: timeMs,
  beginMs: z.number().min(-1e12).max(1e12),
  counted: z.strictObject({ first: count, count: positive, intervalMs: timeMs.gt(0) }).nullable(),
});
/** A deadline in milliseconds, up to that of the longest decode. */
const deadlineMs = positive.max(1_800_000);
const clip = { input, info, deadlineMs, file: path, clipBytesMax: positive };

/** Jobs whose output is short, and given when they have ended. */
const RUN_JOBS = [
  /** Makes a named pipe at `path`. */
  z.strictObject({ kind: z.literal("make_pipe"), path }),
  /** Tells what an input contains, as JSON. */
  z.strictObject({
    kind: z.literal("probe"),
    input,
    /**
     * Whether the input is a live source, of which only the streams are asked, and not how many frames a
     * second it has.
     */
    isWatched: z.literal(true).optional(),
    ignoresEdits,
    /** Bytes of the file. */
    sizeBytes: info.shape.sizeBytes.optional(),
  }),
  z.strictObject({ kind: z.literal("list_decoders") }),
  /** Lists the NVIDIA graphics cards, a line each. */
  z.strictObject({ kind: z.literal("list_gpus") }),
  /** Opens a hardware decoder, and nothing else. */
  z.strictObject({ kind: z.literal("open_device"), hardware }),
  /** Tells the time of the first frame. */
  z.strictObject({
    kind: z.literal("first_frame"),
    input,
    streamIndex: count.max(10_000),
    timeBase,
    ignoresEdits,
    size,
    deadlineMs,
  }),
  /** Gives the samples of the sound of a window. */
  z.strictObject({ kind: z.literal("wav"), input, info, durationMs: timeMs.gt(0), seek, deadlineMs }),
  /** Writes a window as an MP4 into `file`, encoded. */
  z.strictObject({
    ...{ kind: z.literal("encode_clip"), ...clip, coordinates, withAudio: z.boolean(), seek },
    durationMs: timeMs.gt(0),
  }),
  /** Lists the packets of a part of a source. */
  z.strictObject({
    ...{ kind: z.literal("list_packets"), input, streamIndex: count.max(10_000), deadlineMs },
    ignoresEdits,
    size,
    /** The part to list, on the container's clock. */
    part: z.strictObject({ fromMs: z.number().min(-1e12).max(1e15), toMs: z.number().min(-1e12).max(1e15) }),
  }),
  /** Writes a window as an MP4 into `file`, with its packets copied and listed. */
  z.strictObject({
    kind: z.literal("copy_clip"),
    ...clip,
    range: z.strictObject({ seekMs: timeMs, packets: positive }),
  }),
  /** Makes a JPEG, which is its input, at most so wide. */
  z.strictObject({ kind: z.literal("scale_picture"), width: positive.max(LIMITS.picture.width.maximum) }),
  /** Gives the samples of Ogg Opus, which is its input. */
  z.strictObject({ kind: z.literal("opus_samples") }),
] as const;

/**
 * Decodes recorded media: frames go into the pipe `planes`, all or chosen ones, and JPEGs of chosen frames to
 * the output.
 */
const decode = z.strictObject({
  kind: z.literal("decode"),
  subject: z.strictObject({ input, info, plan, coordinates }),
  seekS: z.number().min(0).max(1e9),
  /** The hardware that decodes; null for the CPU. */
  hardware: hardware.nullable(),
  /** Whether one thread decodes: what it makes of damage is the same each time. */
  byOneThread: z.boolean(),
  planes: z.strictObject({ pipe: path, maxFrames: positive.nullable(), select: select.nullable() }),
  jpegs: z.strictObject({
    maxFrames: positive,
    select,
    size: z.strictObject({ ...extent.shape, quantizer: z.int().min(2).max(31) }),
    threads: z.union([z.literal(1), z.literal(2)]),
  }).nullable(),
  cpuSeconds: z.number().gt(0).max(1e7),
});

/** Jobs whose output is read while they run. */
const STREAM_JOBS = [
  decode,
  /** Decodes a publisher's video, which comes as IVF on its input; frames come out. */
  z.strictObject({
    kind: z.literal("live_decode"),
    codec: z.enum(["vp8", "h264", "h265", "vp9", "av1"]),
    maxFrame: extent,
  }),
  /**
   * Decodes a source that ffmpeg reads itself, in real time if it is `isPaced`. Samples of its sound go into
   * one socket, its packets as they are into another, if there are such sockets.
   */
  z.strictObject({
    ...{ kind: z.literal("live_pull"), input, streamIndex: count.max(10_000).nullable() },
    ...{ isPaced: z.boolean(), maxFrame: extent, soundSocket: path.nullable() },
    copy: z.strictObject({ socket: path, withSound: z.boolean() }).nullable().optional(),
  }),
  /** Makes JPEGs of raw frames, which come on its input. */
  z.strictObject({ kind: z.literal("encode_jpegs"), ...extent.shape, isFullRange: z.boolean() }),
] as const;

export const runJob = z.discriminatedUnion("kind", [...RUN_JOBS, decode]);
export const streamJob = z.discriminatedUnion("kind", [...STREAM_JOBS]);

export type RunJob = z.infer<typeof runJob>;
export type StreamJob = z.infer<typeof streamJob>;
export type ToolJob = RunJob | StreamJob;
export type ChosenFrames = z.infer<typeof select>;
export type JobOf<Kind extends ToolJob["kind"]> = Extract<ToolJob, { kind: Kind }>;
