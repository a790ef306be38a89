/** Where a window lies in its source, on ffmpeg's clock, and the filter graphs that cut out exactly that
 * part.
 */

import type { ImageCoordinates } from "../../model/frames/coordinates.ts";
import { VIDEO_CLOCK_HZ } from "../formats/clock.ts";
import type { MediaInput } from "../input.ts";
import type { MediaInfo } from "../probe.ts";
import { deinterlacing } from "../recorded/decode_args.ts";
import { GAP_S } from "../recorded/source_times.ts";

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
export function seekArgs({ seekMs }: SeekPlan, { startMs = 0 }: MediaInfo): readonly string[] {
  return seekMs > 0 ? [...readFrom(startMs + seekMs), "-noaccurate_seek"] : CONTAINER_TIMES;
}

/**
 * How late, in milliseconds, a frame may be shown after the start of a window and still be its first frame:
 * callers round times to whole milliseconds, up or down. Frames are further apart than that.
 */
export const START_TOLERANCE_MS = 1;

/**
 * The frames of a window: the one that is shown when the window begins, at time 0, and the following ones
 * until its end, at their own times. One graph does both, because the frame that is shown at the start is
 * known only when the next one comes:
 *
 * ```
 *             .-> [hold] the last frame up to the start --------------.
 *   decoded --|                                                        |-> interleave -> crop -> encoder
 *             '-> [pass] the frames after the start, before the end ---'
 * ```
 *
 * A window in which no frame begins shows the frame before it, as a player would. A source whose video ends
 * before its sound shows its last frame. Where the clock of the source has jumped, the frames are counted
 * instead.
 */
export function videoGraph(
  info: MediaInfo,
  seek: SeekPlan,
  durationMs: number,
  coordinates: ImageCoordinates,
): string {
  const { source_extent: source, resolved_region: region } = coordinates;
  const isWhole = region.width === source.width && region.height === source.height;
  const shown = seek.counted
    ? countedFrames(info, seek.counted)
    : shownFrames(info, seek.beginMs + (info.startMs ?? 0), durationMs);
  return shown +
    // Has an effect only if the video changes its size on the way, which the encoder does not support.
    `,scale=${source.width}:${source.height}` +
    // All four numbers of the region are even, as 4:2:0 requires: of odd sizes the last column or row is
    // cropped.
    (isWhole ? "" : `,crop=${region.width}:${region.height}:${region.x}:${region.y}`) +
    ",format=yuv420p[v]";
}

/** Filters that take the frames by number, and show them at evenly spread times. */
function countedFrames(info: MediaInfo, { first, count, intervalMs }: CountedFrames): string {
  return `[0:${info.video!.streamIndex}]settb=1/${VIDEO_CLOCK_HZ},` +
    `trim=start_frame=${first}:end_frame=${first + count},setpts='N*${seconds(intervalMs)}/TB'`;
}

/** Filters that take the frames that are shown in the window; `beginMs` is on the container's clock. */
function shownFrames(info: MediaInfo, beginMs: number, durationMs: number): string {
  const shownMs = beginMs + START_TOLERANCE_MS;
  return [
    // In microseconds: filters round their arguments to the time base, which may be as coarse as one frame.
    `[0:${info.video!.streamIndex}]${[...deinterlacing(info), "settb=AVTB", "split"].join(",")}[early][late]`,
    // A rate of one frame in a period that ends at the start gives the last frame up to the start. The filter
    // gives it when its input ends, so the first trim ends the input; without it ffmpeg would read to the end
    // of the source.
    `[early]trim=end=${seconds(shownMs)},` +
    `fps=fps=1/${HOLD_SECONDS}:start_time=${
      seconds(shownMs - HOLD_SECONDS * 1000)
    }:round=down:eof_action=pass,` +
    `trim=end_frame=1,settb=1/${VIDEO_CLOCK_HZ},setpts=0[hold]`,
    `[late]trim=start=${seconds(shownMs)}:end=${seconds(beginMs + durationMs)},` +
    `setpts=PTS-${seconds(beginMs)}/TB[pass]`,
    "[hold][pass]interleave",
  ].join(";");
}

/** Seconds for which a frame is held: longer than anything that is decoded before a window. */
const HOLD_SECONDS = 1_000_000;

/**
 * All audio tracks in a window, mixed into one mono track of exactly `durationMs`. Where a track begins late,
 * ends early or has a gap, silence is inserted, so that the tracks and the video stay in sync. Mixing divides
 * by the number of tracks, so it never clips.
 */
export function audioGraph(
  info: MediaInfo,
  seek: SeekPlan,
  durationMs: number,
  sampleRateHz: number,
): string {
  const beginMs = seek.beginMs + (info.startMs ?? 0);
  const samples = sampleCount(durationMs, sampleRateHz);
  const tracks = Array.from({ length: info.audioStreams }, (_, track) =>
    [
      `[0:a:${track}]${seek.counted ? `asetpts='${withoutJumps()}',` : ""}atrim=start=${
        seconds(beginMs)
      }:end=${seconds(beginMs + durationMs)}`,
      `asetpts=PTS-${seconds(beginMs)}/TB`,
      `aresample=${sampleRateHz}:async=1:first_pts=0`,
      "aformat=sample_fmts=fltp:channel_layouts=mono",
      `apad=whole_len=${samples}`,
      `atrim=end_sample=${samples}`,
      `asetpts=N/SR/TB[a${track}]`,
    ].join(","));
  const names = tracks.map((_, track) => `[a${track}]`).join("");
  const mix = tracks.length > 1 ? `amix=inputs=${tracks.length}:normalize=1:dropout_transition=0,` : "";
  // The inserted silence comes in frames that are larger than the AAC encoder accepts.
  return [...tracks, `${names}${mix}asetnsamples=n=${AAC_FRAME_SAMPLES}:p=0[a]`].join(";");
}

const AAC_FRAME_SAMPLES = 1024;

/** Seconds by which times of sound may differ from those that are expected and count as rounded. */
const FALL_S = 0.1;

/**
 * Filter that takes out of the times of sound all that its clock has jumped by: the sound goes on as the
 * frames do. A gap is left as it is, unless it is long or ends a jump back. A fall that ends a gap was the
 * end of a wrong time.
 */
function withoutJumps(): string {
  // 0: what is taken away, 1: the last gap that was left, 2: the last jump that was taken away, 3: the
  // present step.
  const taken = "st(0,ld(0)+st(2,ld(3)))";
  const isReturn = (jump: string) => `lt(abs(ld(3)+${jump}),${FALL_S})`;
  const fall = `if(${isReturn("ld(1)")},st(1,0),${taken})`;
  const rise = `if(gt(ld(3),${GAP_S})+lt(ld(2),0)*${isReturn("ld(2)")},${taken},st(1,ld(3)))`;
  return `st(3,T-PREV_INT-NB_SAMPLES/SR);if(lt(ld(3),-${FALL_S}),${fall},if(gt(ld(3),${FALL_S}),${rise},0));PTS-ld(0)/TB`;
}

/** The number of samples in a duration, at least one. */
export function sampleCount(durationMs: number, sampleRateHz: number): number {
  return Math.max(1, Math.round(durationMs * sampleRateHz / 1000));
}

/** A time for ffmpeg, which counts microseconds. */
export function seconds(ms: number): string {
  return (ms / 1000).toFixed(6);
}
