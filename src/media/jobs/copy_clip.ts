/** JOB that copies the packets of a window into an MP4, and lists them. */

import * as z from "zod";
import { inputOptions, inputUrl } from "../input.ts";
import { mediaSizeOf } from "../media_memory.ts";
import { readFrom } from "./parts/window_seek.ts";
import { type Bounds, job, windowBounds, type Written } from "./job.ts";
import { deadlineMs, info, input, oneToInt32, pathText, timeMs } from "./parts/job_fields.ts";

/** The fields of a job that writes an MP4 into `file`. */
export const CLIP_FIELDS = { input, info, deadlineMs, file: pathText, clipBytesMax: oneToInt32 };
type ClipJob = z.infer<z.ZodObject<typeof CLIP_FIELDS>>;

/**
 * Bytes by which the kernel's limit of a file is above ffmpeg's: ffmpeg writes a whole packet before it
 * checks the length.
 */
const FILE_SLACK_BYTES = 64 << 10;

/** The file of a clip, which is made empty, so that ffmpeg can be given that one file only. */
export function clipWrites({ file }: ClipJob): readonly Written[] {
  return [{ path: file, what: "clip", madeBy: "broker" }];
}

export function clipBounds({ deadlineMs, info, clipBytesMax }: ClipJob): Bounds {
  return {
    ...windowBounds(deadlineMs, mediaSizeOf(info)),
    fileBytes: clipBytesMax + 2 * FILE_SLACK_BYTES,
  };
}

/** Arguments of the file. `-fs` limits its length where there is no `prlimit`. */
export function clipOutput({ file, clipBytesMax }: ClipJob): string[] {
  return [
    ...["-map_metadata", "-1", "-map_chapters", "-1", "-movflags", "+faststart"],
    ...["-fs", String(clipBytesMax + FILE_SLACK_BYTES), "-f", "mp4", "-y", `file:${file}`],
  ];
}

export const copyClip = job({
  schema: z.strictObject({
    kind: z.literal("copy_clip"),
    ...CLIP_FIELDS,
    range: z.strictObject({ seekMs: timeMs, packets: oneToInt32 }),
  }),
  writes: clipWrites,
  bounds: clipBounds,
  // The list is for `isRange`.
  args: (job, { output }) => {
    const { input, info, range: { seekMs, packets } } = job;
    const copy = ["-map", `0:${info.video!.streamIndex}`, "-c", "copy", "-frames:v", String(packets)];
    return [
      ...["-nostdin", "-v", "error", ...inputOptions(input, info)],
      ...[...readFrom((info.startMs ?? 0) + seekMs), "-i", inputUrl(input)],
      ...[...copy, "-bsf:v", "setts=pts=PTS-STARTPTS:dts=DTS-STARTPTS", ...clipOutput(job)],
      ...[...copy, "-f", "framecrc", "-y", output],
    ];
  },
});
