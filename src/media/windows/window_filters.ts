/** Which part of a source a window is, on ffmpeg's clock, and the filter graphs that give exactly that part. */

import type { ImageCoordinates } from "../../model/frames/coordinates.ts";
import { CONTAINER_TIMES } from "./first_frame.ts";
import type { MediaInput } from "../input.ts";
import type { MediaInfo } from "../probe.ts";

/** All in milliseconds. */
export interface SourceWindow {
  /** From the first picture of the source, as the times of frames are counted. */
  readonly startMs: number;
  readonly durationMs: number;
  /** When that first picture is shown, counted from the start of the container. */
  readonly firstFrameMs: number;
}

/** How a window is reached, in milliseconds from the start of the container. */
export interface Approach {
  /** Where reading begins; 0 reads from the start without a seek. */
  readonly seekMs: number;
  /** Where the window begins. */
  readonly beginMs: number;
}

/**
 * Reading begins a little before the window, as a decoder of sound needs some of what was before to be right, and goes
 * back from there to a picture that stands alone. Everything before the window is decoded and dropped by its time, so a
 * seek that lands too early costs time and nothing else:
 *
 * ```
 *   container start      key picture   seek          window
 *   |--------------------|-------------|-------------|==========|----
 *                        <- decoded, dropped ------->
 * ```
 *
 * A container without an index of its key pictures is read from well before, so that one is met on the way. What has no
 * length, or is no container at all, is read from its start.
 */
export function approach(window: SourceWindow, input: MediaInput, info: MediaInfo): Approach {
  const beginMs = window.firstFrameMs + window.startMs;
  const isIndexed = INDEXED.test(info.formatName);
  const isSeekable = info.durationMs !== null && !BARE_STREAM.test(info.formatName) && !hasGuessedTimes(info);
  const earlierMs = isIndexed && input.path !== null ? SOUND_LEAD_MS : KEY_PICTURE_LEAD_MS;
  const seekMs = isSeekable ? Math.max(0, beginMs - earlierMs) : 0;
  return { seekMs, beginMs };
}

/** Opus asks for 80 ms, AAC and MP3 for one or two of their frames. */
const SOUND_LEAD_MS = 250;
/** Key pictures are seldom further apart than ten seconds. */
const KEY_PICTURE_LEAD_MS = 12_000;
const INDEXED = /^(mov|matroska|avi|asf)\b/;
/** Video without a container: its times are counted by the frame, so it cannot be entered in the middle. */
const BARE_STREAM =
  /^(h26[134]|hevc|m4v|mpegvideo|mjpeg|vc1|obu|av1|ivf|dirac|yuv4mpegpipe|gif|apng|rm|swf)\b/;

/**
 * AVI keeps no times of presentation: where pictures are coded out of order they are guessed from what came before, and
 * come out one picture late after a seek.
 */
function hasGuessedTimes({ formatName, video }: MediaInfo): boolean {
  return formatName === "avi" && video !== null && REORDERED.test(video.codec);
}
const REORDERED = /^(h264|hevc)$/;

/** What ffmpeg is told before `-i`. */
export function seekArgs({ seekMs }: Approach): readonly string[] {
  return [...CONTAINER_TIMES, ...(seekMs > 0 ? ["-ss", seconds(seekMs), "-noaccurate_seek"] : [])];
}

/**
 * Whole milliseconds are what callers round to, in either direction: a picture that is shown up to this much after the
 * start of a window is its first. Pictures are further apart than that.
 */
export const START_TOLERANCE_MS = 1;

/**
 * The pictures of a window: the one that is shown when it begins, from 0 on, and those that follow within it, at their
 * own times. One graph does both, as nobody knows where the earlier picture stands until the next one has come:
 *
 * ```
 *             .-> [hold] the last picture up to the start ------------.
 *   decoded --|                                                        |-> interleave -> crop -> encoder
 *             '-> [pass] those after the start, before the end --------'
 * ```
 *
 * A window in which no picture begins shows the one before it, which is what a viewer sees there. A source whose picture
 * ends before its sound shows its last one.
 */
export function pictureGraph(
  info: MediaInfo,
  { beginMs }: Approach,
  durationMs: number,
  coordinates: ImageCoordinates,
): string {
  const { source_extent: source, resolved_region: region } = coordinates;
  const shownMs = beginMs + START_TOLERANCE_MS;
  const isWhole = region.width === source.width && region.height === source.height;
  return [
    // In microseconds: filters round what they are told to the time base, which may be as coarse as one picture.
    `[0:${info.video!.streamIndex}]settb=AVTB,split[early][late]`,
    // The last picture up to the start: a rate of one picture in a period that ends there gives that one. It is given
    // when its input ends, hence the first trim; without it ffmpeg would read on to the end of the source.
    `[early]trim=end=${seconds(shownMs)},` +
    `fps=fps=1/${HOLD_SECONDS}:start_time=${
      seconds(shownMs - HOLD_SECONDS * 1000)
    }:round=down:eof_action=pass,` +
    `trim=end_frame=1,settb=1/${TICKS_PER_SECOND},setpts=0[hold]`,
    `[late]trim=start=${seconds(shownMs)}:end=${seconds(beginMs + durationMs)},` +
    `setpts=PTS-${seconds(beginMs)}/TB[pass]`,
    `[hold][pass]interleave` +
    // Without effect unless the picture changes its size on the way, which an encoder cannot follow.
    `,scale=${source.width}:${source.height}` +
    // The region is even in all four numbers, as 4:2:0 needs: of odd sizes the last column or row is cropped.
    (isWhole ? "" : `,crop=${region.width}:${region.height}:${region.x}:${region.y}`) +
    ",format=yuv420p[v]",
  ].join(";");
}

/** Longer than anything that is decoded before a window. */
const HOLD_SECONDS = 1_000_000;
/** The time base of pictures in a clip, as everywhere in MPEG. */
export const TICKS_PER_SECOND = 90_000;

/**
 * All tracks of sound in a window, as one mono track of exactly `durationMs`. Silence stands where a track is silent,
 * begins late, ends early or has a hole, so that the tracks and the picture stay together. Mixing divides by the number
 * of tracks, hence never clips.
 */
export function soundGraph(
  info: MediaInfo,
  { beginMs }: Approach,
  durationMs: number,
  sampleRateHz: number,
): string {
  const samples = sampleCount(durationMs, sampleRateHz);
  const tracks = Array.from({ length: info.audioStreams }, (_, track) =>
    [
      `[0:a:${track}]atrim=start=${seconds(beginMs)}:end=${seconds(beginMs + durationMs)}`,
      `asetpts=PTS-${seconds(beginMs)}/TB`,
      `aresample=${sampleRateHz}:async=1:first_pts=0`,
      "aformat=sample_fmts=fltp:channel_layouts=mono",
      `apad=whole_len=${samples}`,
      `atrim=end_sample=${samples}`,
      `asetpts=N/SR/TB[a${track}]`,
    ].join(","));
  const names = tracks.map((_, track) => `[a${track}]`).join("");
  const mix = tracks.length > 1 ? `amix=inputs=${tracks.length}:normalize=1:dropout_transition=0,` : "";
  // The silence of a track without any sound comes in pieces larger than the AAC encoder takes.
  return [...tracks, `${names}${mix}asetnsamples=n=${AAC_FRAME_SAMPLES}:p=0[a]`].join(";");
}

const AAC_FRAME_SAMPLES = 1024;

/** At least one. */
export function sampleCount(durationMs: number, sampleRateHz: number): number {
  return Math.max(1, Math.round(durationMs * sampleRateHz / 1000));
}

/** ffmpeg counts microseconds. */
export function seconds(ms: number): string {
  return (ms / 1000).toFixed(6);
}
