/** What a media file or stream contains, as ffprobe reports it. */

import * as z from "zod";
import type { World } from "../../base/world.ts";
import { frameRate } from "../../model/frames/frame_rate.ts";
import { FIELD_ORDERS } from "../../model/frames/field_order.ts";
import { refuse } from "../../contract/refusal.ts";
import { LIMITS } from "../../contract/limits.ts";
import { VIDEO_TIME_BASE } from "../containers/clock.ts";
import { cutOff } from "../containers/cut_off.ts";
import { mp4Faults } from "../containers/mp4_times.ts";
import type { MediaInput } from "../input.ts";
import type { MediaInfo, VideoStream } from "../media_info.ts";
import {
  faultIn,
  largerThanAllowed,
  mediaFault,
  moreStreamsThanAllowed,
  timeFault,
  tooLargeSize,
} from "../media_fault.ts";
import type { ProbedFiles } from "./probed_files.ts";
import { fileFacts, type FileStart, refusePointers } from "./source.ts";
import { BUSY_FACTOR } from "../tool_limits.ts";
import type { ToolRunner } from "../jobs/runner.ts";

export interface ProbeContext {
  readonly runner: ToolRunner;
  readonly world: World;
  readonly signal: AbortSignal;
  /**
   * Longest probe of a stream; one of a file gets {@link BUSY_FACTOR} times as long. Default
   * LIMITS.ingest.probeTimeoutMs.
   */
  readonly deadlineMs?: number;
  /**
   * Whether the source is a live one that will be watched: `averageFps` is then what it says of itself, if it
   * does.
   */
  readonly isWatched?: boolean;
  /**
   * Index, among all streams, of the video stream that the caller chooses; absent where `takenVideo` chooses.
   */
  readonly videoStream?: number;
  /** Files that need no program to look into them; absent for none. */
  readonly known?: ProbedFiles<MediaInfo>;
}

/**
 * Reads what an input contains. Refuses (422 `source_uri`) what is empty, a playlist, no media container, or
 * larger than LIMITS.media allows, and (422 `video_stream`) a chosen stream that is no video stream of it.
 */
export async function probeMedia(input: MediaInput, context: ProbeContext): Promise<MediaInfo> {
  const { path, kind } = input;
  if (path === null) return await probeWith(input, context);
  const start = await refusePointers(path);
  const { facts } = start;
  // What was fetched from a server is a new file each time.
  const known = kind === "file" && context.videoStream === undefined ? context.known : undefined;
  const found = known?.find(facts);
  if (found) return found;
  const info = await probeWith(input, context, start);
  const after = known && await fileFacts(path);
  if (after) known.keep(facts, after, info);
  return info;
}

/** What ffprobe finds in the input. `start` is the start of a file, for the reason of a refusal. */
async function probeWith(
  input: MediaInput,
  context: ProbeContext,
  start?: FileStart,
  ignoresEdits?: true,
): Promise<MediaInfo> {
  const isStream = input.path === null;
  const limitMs = context.deadlineMs ?? LIMITS.ingest.probeTimeoutMs;
  const deadlineMs = isStream ? limitMs : limitMs * BUSY_FACTOR;
  const outcome = await context.runner.run({
    kind: "probe",
    input,
    ...(context.isWatched && { isWatched: true }),
    ...(ignoresEdits && { ignoresEdits }),
    ...(start && { sizeBytes: start.facts.size }),
  }, {
    world: context.world,
    signal: context.signal,
    deadlineMs,
    maxStdoutBytes: PROBE_ANSWER_BYTES,
    maxStderrBytes: PROBE_ERROR_BYTES,
  });
  const { end } = outcome;
  if (end === "out_of_time" || end === "out_of_cpu") {
    const work = "looking into it";
    throw timeFault(end, { isStream, work, late: `${work} took longer than ${deadlineMs / 1000} s` });
  }
  if (outcome.end !== "exited" || outcome.code !== 0) throw faultIn(outcome.stderr, start?.head);
  const answer = parsedAnswer(outcome.stdout);
  if (answer.streams.length > LIMITS.media.streamsMax) throw mediaFault(moreStreamsThanAllowed());
  const info = mediaInfo(answer, context.videoStream);
  if (info.video) refuseLargePictures(info.video, outcome.stderr);
  if (input.path === null) return info;
  if (ignoresEdits) return { ...info, ignoresEdits };
  const { isCutOff, announcedMs } = await cutOff(input.path, info.formatName);
  if (isCutOff) return { ...info, isCutOff, announcedEndMs: announcedMs ?? info.announcedEndMs ?? null };
  if (!IS_MP4.test(info.formatName) || info.video === null) return info;
  const { hidesByMistake, clock } = await mp4Faults(input.path, info.video.streamIndex);
  const found = hidesByMistake ? await probeWith(input, context, start, true) : info;
  if (clock === null) return found;
  const video = found.video && { ...found.video, ...(clock === "silent" && { averageFps: null }) };
  return { ...found, video, mp4Clock: clock };
}

/**
 * Refuses pictures that are too large. Where the container gives the size, it is in `video`; where the
 * decoder refused it, only the decoder's message tells it, and `video` has none.
 */
function refuseLargePictures({ codec, width, height }: VideoStream, stderr: string): void {
  const pixels = width * height;
  const size = pixels === 0 ? tooLargeSize(stderr, codec) : { width, height };
  if (size && size.width * size.height > LIMITS.media.picturePixelsMax) {
    throw mediaFault(largerThanAllowed(size));
  }
}

/** ffprobe's name of the format of MP4 files. */
const IS_MP4 = /^mov\b/;

/**
 * Most bytes of ffprobe's answer: enough for a file with some hundred streams, and more than that is not a
 * video.
 */
const PROBE_ANSWER_BYTES = 1 << 20;
const PROBE_ERROR_BYTES = 8 << 10;

const probedStream = z.object({
  index: z.number(),
  codec_type: z.string().optional(),
  codec_name: z.string().optional(),
  pix_fmt: z.string().optional(),
  field_order: z.string().optional(),
  width: z.number().default(0),
  height: z.number().default(0),
  avg_frame_rate: z.string().optional(),
  time_base: z.string().optional(),
  start_time: z.string().optional(),
  duration: z.string().optional(),
  tags: z.object({ DURATION: z.string().optional() }).optional(),
  channels: z.number().default(0),
  disposition: z.object({ default: z.number(), attached_pic: z.number() }).partial().default({}),
  side_data_list: z.array(z.object({ rotation: z.number().optional() })).default([]),
});

const probedPacket = z.object({
  stream_index: z.number(),
  pts_time: z.string().optional(),
  dts_time: z.string().optional(),
});

const probeAnswer = z.object({
  packets: z.array(probedPacket).default([]),
  streams: z.array(probedStream).default([]),
  format: z.object({
    format_name: z.string(),
    start_time: z.string().optional(),
    duration: z.string().optional(),
    size: z.string().default("0"),
  }),
});

function parsedAnswer(stdout: Uint8Array): z.output<typeof probeAnswer> {
  try {
    return probeAnswer.parse(JSON.parse(new TextDecoder().decode(stdout)));
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof z.ZodError) {
      throw mediaFault("its format is unknown");
    }
    throw error;
  }
}

function mediaInfo(
  { packets, streams, format }: z.output<typeof probeAnswer>,
  wanted: number | undefined,
): MediaInfo {
  const videos = streams.filter((stream) =>
    stream.codec_type === "video" && stream.disposition.attached_pic !== 1
  );
  const audios = streams.filter((stream) => stream.codec_type === "audio");
  const chosen = wanted === undefined ? takenVideo(videos) : videos.find(({ index }) => index === wanted);
  if (wanted !== undefined && !chosen) {
    const indexes = videos.map(({ index }) => index).join(", ") || "it has none";
    throw refuse.invalid("video_stream", `must be the index of a video stream of the source: ${indexes}`);
  }
  return {
    formatName: format.format_name,
    durationMs: milliseconds(format.duration),
    sizeBytes: Number(format.size),
    video: chosen ? videoStream(chosen, packets) : null,
    videoStreams: videos.length,
    audioStreams: audios.length,
    audioChannels: audios[0]?.channels ?? 0,
    audioCodec: audios[0]?.codec_name ?? null,
    startMs: startMs(format.start_time),
    ...videoStart(chosen, format),
    announcedEndMs: chosen ? announcedEndMs(chosen, format) : null,
  };
}

/**
 * The video stream to take: the default one where there is exactly one; else the one with the largest
 * picture, among the default ones where there are several. ffmpeg itself chooses so.
 */
function takenVideo<T extends z.output<typeof probedStream>>(videos: readonly T[]): T | undefined {
  const defaults = videos.filter(({ disposition }) => disposition.default === 1);
  const pixels = ({ width, height }: T) => width * height;
  return (defaults.length > 0 ? defaults : videos).toSorted((one, other) => pixels(other) - pixels(one))[0];
}

function videoStart(
  chosen: z.output<typeof probedStream> | undefined,
  format: z.output<typeof probeAnswer>["format"],
): Pick<MediaInfo, "videoStartMs"> {
  if (chosen?.start_time === undefined || format.start_time === undefined) return {};
  const ms = Math.round(startMs(chosen.start_time) - startMs(format.start_time));
  return ms > 0 ? { videoStartMs: ms } : {};
}

/**
 * Containers whose headers say how long they are; of the others ffprobe tells the last time that it finds, or
 * guesses by the bit rate.
 */
const ANNOUNCING = /^(mov|matroska|avi|flv|asf|mxf|hls)\b/;

/**
 * When the video ends by the container's word, milliseconds from the start: that of the video alone where the
 * container has it, as sound often ends later.
 */
function announcedEndMs(
  { start_time, duration, tags }: z.output<typeof probedStream>,
  format: z.output<typeof probeAnswer>["format"],
): number | null {
  if (!ANNOUNCING.test(format.format_name)) return null;
  const own = milliseconds(duration);
  if (own !== null) return own;
  const [hours, minutes, seconds] = (tags?.DURATION ?? "").split(":").map(Number);
  const endMs = ((hours! * 60 + minutes!) * 60 + seconds!) * 1000;
  if (endMs > 0) return endMs - startMs(start_time);
  const wholeMs = milliseconds(format.duration);
  return wholeMs === null ? null : wholeMs - (startMs(start_time) - startMs(format.start_time));
}

function startMs(seconds: string | undefined): number {
  const value = Number(seconds);
  return Number.isFinite(value) ? value * 1000 : 0;
}

function videoStream(
  stream: z.output<typeof probedStream>,
  packets: readonly z.output<typeof probedPacket>[],
): VideoStream {
  const anticlockwise = stream.side_data_list.find((data) => data.rotation !== undefined)?.rotation ?? 0;
  // ffprobe counts anticlockwise: a video taken with an upright phone has -90.
  const rotation = (360 - Math.round(anticlockwise) % 360) % 360;
  const fieldOrder = FIELD_ORDERS.find((order) => order === stream.field_order);
  const isOnItsSide = rotation === 90 || rotation === 270;
  return {
    streamIndex: stream.index,
    codec: stream.codec_name ?? "unknown",
    pixelFormat: stream.pix_fmt ?? "unknown",
    width: isOnItsSide ? stream.height : stream.width,
    height: isOnItsSide ? stream.width : stream.height,
    rotation,
    averageFps: frameRate(
      frameTimes(packets.filter((packet) => packet.stream_index === stream.index)),
      ratio(stream.avg_frame_rate),
    ),
    timeBase: ratio(stream.time_base) === null ? VIDEO_TIME_BASE : stream.time_base!,
    ...(fieldOrder && { fieldOrder }),
  };
}

/**
 * Times of frames, in seconds. In some containers, such as AVI, more frames or all have times of decoding
 * only, which are as far apart.
 */
function frameTimes(packets: readonly z.output<typeof probedPacket>[]): number[] {
  const shown = packets.flatMap(({ pts_time }) => pts_time === undefined ? [] : [Number(pts_time)]);
  const decoded = packets.flatMap(({ dts_time }) => dts_time === undefined ? [] : [Number(dts_time)]);
  return shown.length >= decoded.length ? shown : decoded;
}

function milliseconds(seconds: string | undefined): number | null {
  const value = Number(seconds);
  return seconds !== undefined && Number.isFinite(value) && value >= 0 ? Math.round(value * 1000) : null;
}

/** "30000/1001" is 29.97; "0/0" is unknown. */
function ratio(text: string | undefined): number | null {
  const [numerator, denominator] = (text ?? "").split("/").map(Number);
  const value = numerator! / (denominator ?? 1);
  return Number.isFinite(value) && value > 0 ? value : null;
}
