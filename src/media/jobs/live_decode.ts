/** JOB that decodes a publisher's video, which comes as IVF; and the arguments of all that decodes live. */

import * as z from "zod";
import type { Extent } from "../../model/frames/coordinates.ts";
import { VIDEO_TIME_BASE } from "../containers/clock.ts";
import { DECODED_MAX } from "../input.ts";
import { ownTimes } from "./parts/source_times.ts";
import { SESSION_CPU_SECONDS } from "../tool_limits.ts";
import { job } from "./job.ts";
import { extent } from "./parts/job_fields.ts";

export const liveDecode = job({
  schema: z.strictObject({
    kind: z.literal("live_decode"),
    codec: z.enum(["vp8", "h264", "h265", "vp9", "av1"]),
    maxFrame: extent,
  }),
  hasInput: true,
  saysOfFrames: "live",
  isLive: () => true,
  bounds: () => ({ work: "live", cpuSeconds: SESSION_CPU_SECONDS }),
  args: ({ codec, maxFrame }, { input, output, log }) => {
    // Not every version of ffmpeg recognises H.265 in IVF.
    const decoder = codec === "h265" ? ["-c:v", "hevc"] : [];
    return liveArgs({
      // Must not contain `-fflags nobuffer`: with IVF every frame would be invalid.
      input: [...DECODED_MAX, "-probesize", "32", ...decoder, "-f", "ivf", "-i", input],
      stream: "0:v:0",
      setpts: null,
      maxFrame,
      output,
      log,
    });
  },
});

/** Arguments of a live decode: one frame out for each unit in, without delay, see `LiveFfmpeg`. */
export function liveArgs({ input, stream, setpts, maxFrame, output, log }: {
  readonly input: readonly string[];
  /** ffmpeg's name of the stream that is decoded, such as `0:v:0`. */
  readonly stream: string;
  /** What is made of the times of the input, which begin at 0 then; null keeps them. */
  readonly setpts: string | null;
  readonly maxFrame: Extent;
  readonly output: string;
  readonly log: readonly string[] | null;
}): string[] {
  return [
    ...["-nostdin", "-hide_banner", "-nostats", ...(log ?? ["-v", "info"])],
    ...["-threads", "1", ...input],
    ...["-map", stream, "-an", "-sn", "-dn", "-map_metadata", "-1", "-map_chapters", "-1"],
    ...["-threads", "1", "-filter_threads", "1", ...(setpts === null ? ["-copyts"] : [])],
    "-noautoscale",
    ...ownTimes(VIDEO_TIME_BASE),
    ...["-vf", `${setpts === null ? "" : `setpts=${setpts},`}${liveScale(maxFrame)}`],
    ...["-c:v", "rawvideo", "-flush_packets", "1", "-f", "nut", "-write_index", "0", "-y", output],
  ];
}

/** Longest edge of a live frame in pixels, the limit of `PlaneReducer`: longer ones are scaled down. */
const EDGE_MAX = 8192;

/**
 * Filter that passes frames of up to `width * height` pixels unchanged, whatever their shape, and scales
 * larger ones down. Both ranges are declared as full, so that the scaler does not stretch samples. See
 * docs/frames.md#signals. Where the size changes within one stream, so do the frames, because of
 * `-noautoscale`, and the scaler says it in the log: see `PictureSizes`.
 */
function liveScale({ width, height }: Extent): string {
  const share = `min(1,min(sqrt(${width * height}/(iw*ih)),${EDGE_MAX}/max(iw,ih)))`;
  const edge = (name: string) => `if(lt(${share},1),max(2,2*trunc(${name}*${share}/2)),${name})`;
  const size = `w='${edge("iw")}':h='${edge("ih")}'`;
  return `scale=${size}:flags=area:in_range=full:out_range=full,format=yuv420p`;
}
