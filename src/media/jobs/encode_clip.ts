/** JOB that makes an MP4 of a window: its pictures and its sound, encoded. */

import * as z from "zod";
import type { ImageCoordinates } from "../../model/frames/coordinates.ts";
import { LIMITS } from "../../contract/limits.ts";
import { VIDEO_CLOCK_HZ, VIDEO_TIME_BASE } from "../containers/clock.ts";
import type { MediaInfo } from "../media_info.ts";
import { deinterlacing } from "./parts/deinterlacing.ts";
import {
  type CountedFrames,
  seconds,
  type SeekPlan,
  START_TOLERANCE_MS,
  windowInput,
} from "./parts/window_seek.ts";
import { CLIP_FIELDS, clipBounds, clipOutput, clipWrites } from "./copy_clip.ts";
import { job } from "./job.ts";
import { frameCoordinates, seek, timeMs } from "./parts/job_fields.ts";
import { audioGraph } from "./wav.ts";

/** Bits a second of the sound of a clip. */
const AUDIO_BITS_PER_SECOND = 96_000;

export const encodeClip = job({
  schema: z.strictObject({
    kind: z.literal("encode_clip"),
    ...CLIP_FIELDS,
    ...{ coordinates: frameCoordinates, withAudio: z.boolean(), seek, durationMs: timeMs.gt(0) },
  }),
  hasOutput: () => false,
  writes: clipWrites,
  bounds: clipBounds,
  // H.264 with the fastest preset of x264, because a clip is used once.
  args: (job) => {
    const { info, seek, durationMs, coordinates, withAudio } = job;
    const graphs = [videoGraph(info, seek, durationMs, coordinates)];
    if (withAudio) graphs.push(audioGraph(info, seek, durationMs, LIMITS.mediaWindow.audioSampleRateHz));
    return [
      ...windowInput(job),
      ...["-filter_complex", graphs.join(";"), "-map", "[v]", ...(withAudio ? ["-map", "[a]"] : [])],
      ...["-c:v", "libx264", "-preset", "ultrafast", "-bf", "0"],
      // Frames keep their own times, also at an unsteady rate.
      ...["-fps_mode", "vfr", "-enc_time_base", VIDEO_TIME_BASE],
      ...["-video_track_timescale", String(VIDEO_CLOCK_HZ)],
      // Matters for the last frame only, which is shown to the end of the window.
      ...["-bsf:v", `setts=duration=${Math.max(1, Math.round(durationMs * VIDEO_CLOCK_HZ / 1000))}-PTS`],
      ...(withAudio ? ["-c:a", "aac", "-b:a", String(AUDIO_BITS_PER_SECOND)] : []),
      ...clipOutput(job),
    ];
  },
});

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
function videoGraph(
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
