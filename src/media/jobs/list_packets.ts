/** JOB that lists the packets of a part of a source. */

import * as z from "zod";
import { inputOptions, inputUrl } from "../input.ts";
import { readFrom, seconds } from "./parts/window_seek.ts";
import { job, windowBounds } from "./job.ts";
import { deadlineMs, ignoresEdits, input, size, streamIndex } from "./parts/job_fields.ts";

/** A time on the container's clock. */
const timeMs = z.number().min(-1e12).max(1e15);

export const listPackets = job({
  schema: z.strictObject({
    kind: z.literal("list_packets"),
    ...{ input, streamIndex, deadlineMs, ignoresEdits, size },
    part: z.strictObject({ fromMs: timeMs, toMs: timeMs }),
  }),
  bounds: ({ deadlineMs, size = null }) => windowBounds(deadlineMs, size),
  // From the key frame before the part to its end, in the order of decoding.
  args: ({ input, streamIndex, part, ignoresEdits }, { output }) => [
    ...["-nostdin", "-v", "error", ...inputOptions(input, { ignoresEdits }), ...readFrom(part.fromMs)],
    ...["-i", inputUrl(input), "-map", `0:${streamIndex}`, "-c", "copy"],
    ...["-to", seconds(part.toMs), "-f", "framecrc", "-y", output],
  ],
});
