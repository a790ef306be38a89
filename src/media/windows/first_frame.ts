/** When the first picture of a source is shown, on the clock of its container: what frame times are counted from. */

import type { MediaInput } from "../input.ts";
import type { VideoStream } from "../probe.ts";
import { type Outcome, run, type RunOptions } from "../process.ts";

/**
 * Milliseconds from the start of the container to the first picture that can be decoded. It is above 0 where the sound
 * begins earlier, where a recording begins in the middle of a group of pictures, or where an edit list says so; what a
 * container says of its streams is not enough to know. An outcome instead of a number is that of a failure.
 */
export async function firstFrameMs(
  input: MediaInput,
  video: VideoStream,
  options: Omit<RunOptions, "maxStdoutBytes">,
  ffmpeg: string,
): Promise<number | Outcome> {
  const outcome = await run(ffmpeg, firstFrameArgs(input, video), {
    ...options,
    maxStdoutBytes: ANSWER_BYTES,
  });
  const timeMs = outcome.end === "exited" ? timeOf(new TextDecoder().decode(outcome.stdout)) : null;
  return timeMs ?? outcome;
}

/**
 * Before `-i`: times count from the start of the container, wherever reading begins. Without the first two ffmpeg counts
 * from where it was told to seek to, rounded to the time base of each stream, which in AVI is as coarse as one picture.
 * Without the last, which asks for one microsecond more, formats with broken clocks (MPEG-TS) count from the earliest
 * stream in use, hence differently for sound than for pictures.
 */
export const CONTAINER_TIMES: readonly string[] = ["-copyts", "-start_at_zero", "-itsoffset", "0.000001"];

/** Some comments and the lines of one frame. */
const ANSWER_BYTES = 4096;

/** The same decoding as that of the signals, so that the same picture is the first. */
function firstFrameArgs(input: MediaInput, video: VideoStream): string[] {
  return [
    ...["-nostdin", "-v", "error", ...input.args, ...CONTAINER_TIMES, "-i", input.url],
    ...[
      "-map",
      `0:${video.streamIndex}`,
      "-frames:v",
      "1",
      "-fps_mode",
      "passthrough",
      "-enc_time_base",
      "-1",
    ],
    ...["-f", "framecrc", "pipe:1"],
  ];
}

/**
 * ```
 * #tb 0: 1/12800
 * 0,      1024,      1024,      512,    28800, 0xaaa29d68       stream, decoding time, time, length, bytes, sum
 * ```
 */
function timeOf(text: string): number | null {
  const unit = /^#tb 0: (\d+)\/(\d+)$/m.exec(text);
  const frame = /^0, *-?\d+, *(-?\d+),/m.exec(text);
  return unit && frame ? Number(frame[1]) * Number(unit[1]) / Number(unit[2]) * 1000 : null;
}
