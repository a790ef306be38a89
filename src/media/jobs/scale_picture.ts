/** JOB that makes of a JPEG, which is its input, one that is at most so wide. */

import * as z from "zod";
import { LIMITS } from "../../contract/limits.ts";
import { DECODED_MAX } from "../input.ts";
import { quantizerOf } from "./parts/frame_choice.ts";
import { job } from "./job.ts";
import { oneToInt32 } from "./parts/job_fields.ts";

const CPU_SECONDS = 5;

export const scalePicture = job({
  schema: z.strictObject({
    kind: z.literal("scale_picture"),
    width: oneToInt32.max(LIMITS.picture.width.maximum),
  }),
  hasInput: true,
  bounds: () => ({ work: "jpeg", cpuSeconds: CPU_SECONDS }),
  // The height follows, even. A picture is never made wider.
  args: ({ width }, { input, output }) => [
    ...["-nostdin", "-v", "error", "-threads", "1", ...DECODED_MAX, "-f", "jpeg_pipe", "-i", input],
    ...["-map", "0:v:0", "-frames:v", "1", "-threads", "1", "-filter_threads", "1"],
    ...["-vf", `scale=w='min(iw,${width})':h=-2:flags=area`, "-c:v", "mjpeg"],
    ...["-q:v", String(quantizerOf(LIMITS.live.jpegQuality)), "-flags:v", "+bitexact"],
    ...["-f", "mjpeg", "-y", output],
  ],
});
