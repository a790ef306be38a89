/** JOB that says what an input contains, as JSON. */

import * as z from "zod";
import { FIRST_PICTURE, inputOptions, inputUrl, probeOptions } from "../input.ts";
import { job } from "./job.ts";
import { ignoresEdits, input, sizeBytes } from "./parts/job_fields.ts";

/** Twice LIMITS.ingest.probeTimeoutMs in seconds, as ffprobe decodes the first frames on all processors. */
const CPU_SECONDS = 20;

/**
 * Packets of a file, of all its streams, that are read to tell its rate: some seconds, enough to tell 23.976
 * from 24 frames a second. Of a stream, one second is read.
 */
const PACKETS_READ = 200;

const STREAM_FIELDS =
  "index,codec_type,codec_name,pix_fmt,width,height,field_order,avg_frame_rate,time_base," +
  "start_time,duration,channels";

export const probe = job({
  schema: z.strictObject({
    kind: z.literal("probe"),
    input,
    /** Whether it is a live source, of which only the streams are asked, and not its frames a second. */
    isWatched: z.literal(true).optional(),
    ignoresEdits,
    /** Bytes of the file. */
    sizeBytes: sizeBytes.optional(),
  }),
  program: ({ ffprobe }) => ffprobe,
  bounds: ({ input, sizeBytes = 0 }) => ({
    work: input.path === null ? "stream_probe" : "probe",
    cpuSeconds: CPU_SECONDS,
    size: { width: 0, height: 0, pixelFormat: "", sizeBytes },
  }),
  args: ({ input, isWatched, ignoresEdits }) => [
    ...["-v", "error"],
    "-show_entries",
    `format=format_name,start_time,duration,size:stream=${STREAM_FIELDS}` +
    ":stream_tags=DURATION:stream_disposition=default,attached_pic:stream_side_data=rotation" +
    (isWatched ? "" : ":packet=stream_index,pts_time,dts_time"),
    // Packets are read and not decoded: 200 of them take a few milliseconds.
    ...(isWatched ? FIRST_PICTURE : ["-read_intervals", input.path === null ? "%+1" : `%+#${PACKETS_READ}`]),
    ...["-of", "json=compact=1", ...probeOptions(input), ...inputOptions(input, { ignoresEdits })],
    ...["-i", inputUrl(input)],
  ],
});
