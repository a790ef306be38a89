/** Where a window lies in its source, on ffmpeg's clock, and where reading for it begins. */

import { inputOptions, inputUrl, type MediaInput } from "../../input.ts";
import type { MediaInfo } from "../../media_info.ts";

/** Where a window lies in its source. All times are in milliseconds. */
export interface SourceWindow {
  /** Start of the window, counted from the first frame of the source, as the times of frames are. */
  readonly startMs: number;
  readonly durationMs: number;
  /** When the first frame of the source is shown, counted from the start of the container. */
  readonly firstFrameMs: number;
  /**
   * The frames of the window by number, where times of the source do not tell which they are; null where they
   * do.
   */
  readonly counted: CountedFrames | null;
  /** Whether a seek may end at another moment that has the same time. */
  readonly isAmbiguous: boolean;
}

/** Frames in a row, by their numbers among all decoded ones. */
export interface CountedFrames {
  readonly first: number;
  readonly count: number;
  /** Milliseconds from one to the next. */
  readonly intervalMs: number;
}

/** Where reading for a window begins, in milliseconds from the start of the container. */
export interface SeekPlan {
  /** Where reading begins; 0 reads from the start without a seek. */
  readonly seekMs: number;
  /** Where the window begins. */
  readonly beginMs: number;
  readonly counted: CountedFrames | null;
}

/**
 * The seek goes to a little before the window, because an audio decoder needs some packets before it gives
 * correct samples, and ffmpeg goes back from there to a key frame. Everything before the window is decoded
 * and dropped by its time, so a seek that is too early only costs time:
 *
 * ```
 *   container start      key frame     seek          window
 *   |--------------------|-------------|-------------|==========|----
 *                        <- decoded, dropped ------->
 * ```
 *
 * In a container without an index of its key frames the seek goes to well before the window, so that there is
 * a key frame in between. A source without a length, or without a container, is read from its start, and so
 * is one whose clock has jumped, or will.
 */
export function seekPlan(window: SourceWindow, input: MediaInput, info: MediaInfo): SeekPlan {
  const { counted, isAmbiguous } = window;
  const beginMs = window.firstFrameMs + window.startMs;
  const isIndexed = INDEXED.test(info.formatName);
  const isSeekable = info.durationMs !== null && !BARE_STREAM.test(info.formatName) && !hasGuessedTimes(info);
  const earlierMs = isIndexed && input.path !== null ? AUDIO_LEAD_MS : KEY_FRAME_LEAD_MS;
  const seekMs = isSeekable && !counted && !isAmbiguous ? Math.max(0, beginMs - earlierMs) : 0;
  return { seekMs, beginMs, counted };
}

/**
 * Milliseconds that a seek goes further back for sound: Opus needs 80 ms before the first correct sample, AAC
 * and MP3 one or two of their frames.
 */
const AUDIO_LEAD_MS = 250;
/**
 * Milliseconds that a seek goes further back for a key frame: these are seldom more than ten seconds apart.
 */
const KEY_FRAME_LEAD_MS = 12_000;
const INDEXED = /^(mov|matroska|avi|asf)\b/;
/**
 * Video without a container, or with a very simple one: ffmpeg counts its frames to get times, so it cannot
 * seek in it.
 */
const BARE_STREAM =
  /^(h26[134]|hevc|m4v|mpegvideo|mjpeg|vc1|obu|av1|ivf|dirac|yuv4mpegpipe|gif|apng|rm|swf)\b/;

/**
 * Whether the times of a source after a seek are guessed. AVI has no presentation times. Where frames are
 * coded out of order, ffmpeg guesses their times from the frames before, and after a seek they are one frame
 * late.
 */
function hasGuessedTimes({ formatName, video }: MediaInfo): boolean {
  return formatName === "avi" && video !== null && REORDERED.test(video.codec);
}
const REORDERED = /^(h264|hevc)$/;

/**
 * Options before `-i`, so that times are those of the container, wherever reading begins. Without them ffmpeg
 * counts from the position of its seek, rounded to the time base of each stream, which in AVI is as coarse as
 * one frame; and in formats with unreliable clocks (MPEG-TS) from the earliest stream in use, which is not
 * the same for sound and for video.
 */
export const CONTAINER_TIMES: readonly string[] = ["-copyts"];

/** ffmpeg's options before `-i` for reading from a time on, in milliseconds on the container's clock. */
export function readFrom(timeMs: number): readonly string[] {
  return [...CONTAINER_TIMES, "-seek_timestamp", "1", "-ss", seconds(timeMs)];
}

/** ffmpeg's options before `-i` that seek. */
function seekArgs({ seekMs }: SeekPlan, { startMs = 0 }: MediaInfo): readonly string[] {
  return seekMs > 0 ? [...readFrom(startMs + seekMs), "-noaccurate_seek"] : CONTAINER_TIMES;
}

/** What a window is read from, and where. */
interface WindowSource {
  readonly input: MediaInput;
  readonly info: MediaInfo;
  readonly seek: SeekPlan;
}

/** ffmpeg's arguments before the outputs of a window. */
export function windowInput({ input, info, seek }: WindowSource): string[] {
  return [
    ...["-nostdin", "-v", "error", ...inputOptions(input, info), ...seekArgs(seek, info)],
    ...["-i", inputUrl(input), "-filter_complex_threads", "1"],
  ];
}

/**
 * How late, in milliseconds, a frame may be shown after the start of a window and still be its first frame:
 * callers round times to whole milliseconds, up or down. Frames are further apart than that.
 */
export const START_TOLERANCE_MS = 1;

/** A time for ffmpeg, which counts microseconds. */
export function seconds(ms: number): string {
  return (ms / 1000).toFixed(6);
}
