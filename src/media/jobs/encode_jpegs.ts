/** JOB that makes JPEGs of raw frames, which are its input. */

import * as z from "zod";
import { LIMITS } from "../../contract/limits.ts";
import { quantizerOf } from "./parts/frame_choice.ts";
import { SESSION_CPU_SECONDS } from "../tool_limits.ts";
import { job } from "./job.ts";
import { extent } from "./parts/job_fields.ts";

export const encodeJpegs = job({
  schema: z.strictObject({ kind: z.literal("encode_jpegs"), ...extent.shape, isFullRange: z.boolean() }),
  hasInput: true,
  isLive: () => true,
  bounds: ({ width, height }) => ({
    work: "jpeg",
    cpuSeconds: SESSION_CPU_SECONDS,
    size: { width, height, pixelFormat: "yuv420p", sizeBytes: 0 },
  }),
  args: ({ width, height, isFullRange }, { input, output }) => {
    // JPEG is full range, most video is not. The size does not change, so the fastest method of the scaler
    // is exact.
    const range = `scale=in_range=${isFullRange ? "full" : "limited"}:out_range=full:flags=neighbor`;
    return [
      ...["-nostdin", "-v", "error", "-threads", "1", "-probesize", "32"],
      ...["-f", "rawvideo", "-pixel_format", "yuv420p", "-video_size", `${width}x${height}`, "-i", input],
      ...["-map", "0:v:0", "-threads", "1", "-filter_threads", "1", "-fps_mode", "passthrough"],
      ...["-vf", `${range},format=yuvj420p,setsar=1`, "-c:v", "mjpeg"],
      ...[
        "-q:v",
        String(quantizerOf(LIMITS.live.jpegQuality)),
        "-huffman",
        "default",
        "-flags:v",
        "+bitexact",
      ],
      ...["-flush_packets", "1", "-f", "nut", "-write_index", "0", "-y", output],
    ];
  },
});
