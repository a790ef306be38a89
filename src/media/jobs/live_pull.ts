/** JOB that decodes a live source which ffmpeg reads itself, and can pass on its sound and its packets. */

import * as z from "zod";
import { SIDECAR_SAMPLE_RATE_HZ } from "../../model/sidecars/wav.ts";
import { COPY_OFFSET_MS } from "../containers/clock.ts";
import { FIRST_PICTURE, inputOptions, inputUrl } from "../input.ts";
import { SESSION_CPU_SECONDS } from "../tool_limits.ts";
import { job, SOCKET, type Written } from "./job.ts";
import { extent, input, pathText, streamIndex } from "./parts/job_fields.ts";
import { liveArgs } from "./live_decode.ts";

export const livePull = job({
  schema: z.strictObject({
    kind: z.literal("live_pull"),
    input,
    streamIndex: streamIndex.nullable(),
    /** Whether it is read in real time. */
    isPaced: z.boolean(),
    maxFrame: extent,
    /** The socket that takes samples of the sound. */
    soundSocket: pathText.nullable(),
    /** The socket that takes the packets as they are. */
    copy: z.strictObject({ socket: pathText, withSound: z.boolean() }).nullable().optional(),
  }),
  writes: ({ soundSocket, copy }) =>
    [soundSocket, copy?.socket].flatMap((path): Written[] =>
      path ? [{ path, what: "socket", madeBy: "caller" }] : []
    ),
  saysOfFrames: "live",
  isLive: ({ input }) => input.path === null,
  bounds: () => ({ work: "live", cpuSeconds: SESSION_CPU_SECONDS }),
  args: ({ input, streamIndex, isPaced, maxFrame, soundSocket, copy }, { output, log }) => {
    const stream = streamIndex === null ? "0:v:0" : `0:${streamIndex}`;
    return [
      ...liveArgs({
        input: [
          ...inputOptions(input, { isWatched: true }),
          ...(input.kind === "rtsp" ? FIRST_PICTURE : []),
          ...(isPaced ? ["-re"] : []),
          ...["-i", inputUrl(input)],
        ],
        stream,
        setpts: withoutJumps(input.kind === "mjpeg" ? JPEG_JUMP_S : JUMP_S),
        maxFrame,
        output,
        log,
      }),
      ...(soundSocket === null ? [] : soundArgs(soundSocket)),
      ...(copy ? copyArgs(copy, stream) : []),
    ];
  },
});

/** How long a packet of one stream waits for the next one of the other, microseconds. */
const INTERLEAVE_US = 200_000;

/**
 * Expression for times without the jumps of a camera's clock: it takes away all that the clock has jumped by.
 * A jump is more than 10 s from one picture or sound to the next. With the jumps, times would stand still
 * after a jump back until the clock has come where it was, and hours of silence would fill a jump forward.
 */
function withoutJumps(forwardS = JUMP_S): string {
  const step = "T-PREV_INT";
  const jumped = `st(0,ld(0)+if(gt(${step},${forwardS})+lt(${step},-${JUMP_S}),${step}-0.04,0))`;
  return `'${jumped};PTS-ld(0)/TB'`;
}

const JUMP_S = 10;
/**
 * Least jump forward, in seconds, where times are those at which JPEGs come: a shorter one is a camera that
 * sends a picture now and then.
 */
const JPEG_JUMP_S = 60;

/**
 * Filter that takes the jumps of a camera's clock out of the times of packets, whose time of decoding always
 * grows. Behind a jump the next packet comes `step` after the one before, in its own ticks. ffmpeg knows no
 * time of the first picture of a stream whose pictures are reordered, and a packet without one would end NUT.
 * Behind a jump such a picture is shown after all pictures before the jump.
 */
function packetTimes(step: string): string {
  const jumped = `st(0,ld(0)+if(gt(N,0)*gt(abs(DTS-PREV_INDTS)*TB,10),DTS-PREV_INDTS-${step},0))`;
  const guessed = `max(DTS-ld(0),if(gt(N,0),ld(1)+${step},DTS-ld(0)))`;
  const shown = `st(2,if(eq(PTS,NOPTS),${guessed},PTS-ld(0)))`;
  return `setts=pts='${jumped};${shown};st(1,if(gt(N,0),max(ld(1),ld(2)),ld(2)));ld(2)':dts='${jumped};DTS-ld(0)'`;
}
const PICTURE_TIMES = packetTimes("0.04/TB");
const SOUND_TIMES = packetTimes("if(gt(PREV_INDURATION,0),PREV_INDURATION,0.02/TB)");

/**
 * Arguments that copy the packets of the video from the first keyframe on, and all of the first sound stream,
 * as ffmpeg 7.1 calls no AAC of RTSP a keyframe. See `readPackets`.
 */
function copyArgs({ socket, withSound }: { socket: string; withSound: boolean }, stream: string): string[] {
  const sound = withSound ? ["-map", "0:a:0", "-bsf:a", SOUND_TIMES, "-copyinkf:a"] : ["-an"];
  return [
    ...["-map", stream, ...sound, "-sn", "-dn"],
    ...["-map_metadata", "-1", "-map_chapters", "-1", "-c", "copy", "-bsf:v", PICTURE_TIMES],
    ...["-output_ts_offset", String(COPY_OFFSET_MS / 1000), "-avoid_negative_ts", "disabled"],
    ...["-max_interleave_delta", String(INTERLEAVE_US), "-flush_packets", "1"],
    ...["-f", "nut", "-write_index", "0", "-y", `${SOCKET}${socket}`],
  ];
}

/** Arguments for the first sound stream, from time 0 of the source on; silence fills gaps. */
function soundArgs(socket: string): string[] {
  return [
    ...["-map", "0:a:0", "-vn", "-sn", "-dn", "-map_metadata", "-1", "-map_chapters", "-1"],
    ...[
      "-af",
      `asetpts=${withoutJumps()},aresample=${SIDECAR_SAMPLE_RATE_HZ}:async=1:first_pts=0`,
      "-ac",
      "1",
    ],
    ...["-c:a", "pcm_s16le", "-flush_packets", "1", "-f", "s16le", "-y", `${SOCKET}${socket}`],
  ];
}
