/** JOB that says when the first frame is shown. */

import * as z from "zod";
import { inputOptions, inputUrl } from "../input.ts";
import { ownTimes } from "./parts/source_times.ts";
import { CONTAINER_TIMES } from "./parts/window_seek.ts";
import { job, windowBounds } from "./job.ts";
import { deadlineMs, ignoresEdits, input, size, streamIndex, timeBase } from "./parts/job_fields.ts";

export const firstFrame = job({
  schema: z.strictObject({
    kind: z.literal("first_frame"),
    ...{ input, streamIndex, timeBase, ignoresEdits, size, deadlineMs },
  }),
  bounds: ({ deadlineMs, size = null }) => windowBounds(deadlineMs, size),
  // Decodes as the signals are decoded, so that the same frame is the first one.
  args: ({ input, streamIndex, timeBase, ignoresEdits }, { output }) => [
    ...["-nostdin", "-v", "error", ...inputOptions(input, { ignoresEdits }), ...CONTAINER_TIMES],
    ...["-i", inputUrl(input), "-map", `0:${streamIndex}`, "-frames:v", "1"],
    ...[...ownTimes(timeBase), "-f", "framecrc", "-y", output],
  ],
});
