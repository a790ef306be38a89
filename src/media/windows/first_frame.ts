/** When the first frame of a source is shown, on the clock of its container; times of frames count from there. */

import type { MediaInput } from "../input.ts";
import type { VideoStream } from "../probe.ts";
import { type Outcome, run, type RunOptions } from "../process.ts";
import { framecrcTimesMs } from "./framecrc.ts";

/**
 * Milliseconds from the start of the container to the first frame that can be decoded. It is above 0 where the sound begins
 * earlier, where a recording begins within a group of pictures, or where an edit list says so. The container's own statements
 * about its streams are not enough to know it. An outcome instead of a number is a failure.
 */
export async function firstFrameMs(
  input: MediaInput,
  video: VideoStream,
  options: Omit<RunOptions, "maxStdoutBytes">,
  ffmpeg: string,
): Promise<number | Outcome> {
  const outcome = await run(ffmpeg, firstFrameArgs(input, video), {
    ...options,
    maxStdoutBytes: LIST_BYTES_MAX,
  });
  if (outcome.end !== "exited") return outcome;
  return framecrcTimesMs(new TextDecoder().decode(outcome.stdout))[0] ?? outcome;
}

/**
 * Options before `-i`, so that times count from the start of the container, wherever reading begins. Without the first two,
 * ffmpeg counts from the position of its seek, rounded to the time base of each stream, which in AVI is as coarse as one
 * frame. The last one shifts all times by one microsecond. Without it, formats with unreliable clocks (MPEG-TS) count from the
 * earliest stream in use, which is not the same for sound and for video.
 */
export const CONTAINER_TIMES: readonly string[] = ["-copyts", "-start_at_zero", "-itsoffset", "0.000001"];

/** Some comments and the line of one frame. */
const LIST_BYTES_MAX = 4096;

/** Decodes as the signals are decoded, so that the same frame is the first one. */
function firstFrameArgs(input: MediaInput, video: VideoStream): string[] {
  return [
    ...["-nostdin", "-v", "error", ...input.args, ...CONTAINER_TIMES, "-i", input.url],
    ...["-map", `0:${video.streamIndex}`, "-frames:v", "1"],
    ...["-fps_mode", "passthrough", "-enc_time_base", "-1", "-f", "framecrc", "pipe:1"],
  ];
}
