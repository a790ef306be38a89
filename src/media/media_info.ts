/** What is known of a media file or stream before it is decoded. */

import type { FieldOrder } from "../model/frames/field_order.ts";

export interface VideoStream {
  /** Index of the stream among all streams of the file. */
  readonly streamIndex: number;
  readonly codec: string;
  /** ffmpeg's name of the pixel format, such as `yuv420p`; `unknown` where the file does not say. */
  readonly pixelFormat: string;
  /** Pixels as displayed: the rotation is applied, the sample aspect ratio is not. */
  readonly width: number;
  readonly height: number;
  /** Degrees clockwise by which a frame is turned for display, [0,360). */
  readonly rotation: number;
  /** Frames per second, by the times of the first frames and not by the header's word; null when unknown. */
  readonly averageFps: number | null;
  /**
   * Unit of the stream's times in seconds, as ffprobe says it, such as `1/90000`. Frames are written with it,
   * so that their times are exact.
   */
  readonly timeBase: string;
  /** Order of the fields; absent where the stream does not say that its frames have two. */
  readonly fieldOrder?: FieldOrder;
}

export interface MediaInfo {
  /** ffmpeg's name of the container, such as `matroska,webm`. */
  readonly formatName: string;
  /** Length of the whole file, milliseconds; null when unknown. */
  readonly durationMs: number | null;
  readonly sizeBytes: number;
  /** The video stream that is taken, see `takenVideo`; null when there is none. */
  readonly video: VideoStream | null;
  /** Number of video streams; cover images do not count. */
  readonly videoStreams: number;
  readonly audioStreams: number;
  /** Channels of the first audio stream; 0 when there is none. */
  readonly audioChannels: number;
  /** Codec of the first audio stream, as ffmpeg names it; null or absent when there is none. */
  readonly audioCodec?: string | null;
  /** The start on the container's own clock, milliseconds; absent for 0. */
  readonly startMs?: number;
  /**
   * When the video begins by the container's word, milliseconds from its start: sound may begin earlier.
   * Absent for 0.
   */
  readonly videoStartMs?: number;
  /**
   * The end of the video by the container's word, milliseconds from its start; null or absent where it has
   * none, or guesses it.
   */
  readonly announcedEndMs?: number | null;
  /** Whether the file ends before its container does; absent for no. */
  readonly isCutOff?: boolean;
  /** Whether the edit list of an MP4 is not heeded, as it was made of wrong times; absent for no. */
  readonly ignoresEdits?: true | undefined;
  /** What is wrong with the times of an MP4; absent for nothing. */
  readonly mp4Clock?: Mp4ClockFault | undefined;
}

/**
 * `silent`: each step from one sample to the next is a tick or none, and no film has so many in a second.
 * `steps_back`: some steps are below 0, which ffmpeg takes as large ones. `unordered`: the steps are even,
 * and the offsets that say in which order frames are shown are all 0.
 */
export type Mp4ClockFault = "silent" | "steps_back" | "unordered";
