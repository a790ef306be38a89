/** JOB that makes samples of the sound of a window. */

import * as z from "zod";
import { SIDECAR_SAMPLE_RATE_HZ } from "../../model/sidecars/wav.ts";
import { mediaSizeOf } from "../media_memory.ts";
import type { MediaInfo } from "../media_info.ts";
import { GAP_S } from "./parts/source_times.ts";
import { seconds, type SeekPlan, windowInput } from "./parts/window_seek.ts";
import { job, windowBounds } from "./job.ts";
import { deadlineMs, info, input, seek, timeMs } from "./parts/job_fields.ts";

export const wav = job({
  schema: z.strictObject({
    kind: z.literal("wav"),
    ...{ input, info, durationMs: timeMs.gt(0), seek, deadlineMs },
  }),
  bounds: ({ deadlineMs, info }) => windowBounds(deadlineMs, mediaSizeOf(info)),
  args: (job, { output }) => {
    const graph = audioGraph(job.info, job.seek, job.durationMs, SIDECAR_SAMPLE_RATE_HZ);
    return [
      ...windowInput(job),
      ...["-filter_complex", graph, "-map", "[a]", "-c:a", "pcm_s16le", "-f", "s16le", "-y", output],
    ];
  },
});

/**
 * All audio tracks in a window, mixed into one mono track of exactly `durationMs`. Where a track begins late,
 * ends early or has a gap, silence is inserted, so that the tracks and the video stay in sync. Mixing divides
 * by the number of tracks, so it never clips.
 */
export function audioGraph(
  info: MediaInfo,
  seek: SeekPlan,
  durationMs: number,
  sampleRateHz: number,
): string {
  const beginMs = seek.beginMs + (info.startMs ?? 0);
  const samples = sampleCount(durationMs, sampleRateHz);
  const tracks = Array.from({ length: info.audioStreams }, (_, track) =>
    [
      `[0:a:${track}]${seek.counted ? `asetpts='${withoutJumps()}',` : ""}atrim=start=${
        seconds(beginMs)
      }:end=${seconds(beginMs + durationMs)}`,
      `asetpts=PTS-${seconds(beginMs)}/TB`,
      `aresample=${sampleRateHz}:async=1:first_pts=0`,
      "aformat=sample_fmts=fltp:channel_layouts=mono",
      `apad=whole_len=${samples}`,
      `atrim=end_sample=${samples}`,
      `asetpts=N/SR/TB[a${track}]`,
    ].join(","));
  const names = tracks.map((_, track) => `[a${track}]`).join("");
  const mix = tracks.length > 1 ? `amix=inputs=${tracks.length}:normalize=1:dropout_transition=0,` : "";
  // The inserted silence comes in frames that are larger than the AAC encoder accepts.
  return [...tracks, `${names}${mix}asetnsamples=n=${AAC_FRAME_SAMPLES}:p=0[a]`].join(";");
}

const AAC_FRAME_SAMPLES = 1024;

/** Seconds by which times of sound may differ from those that are expected and count as rounded. */
const FALL_S = 0.1;

/**
 * Filter that takes out of the times of sound all that its clock has jumped by: the sound goes on as the
 * frames do. A gap is left as it is, unless it is long or ends a jump back. A fall that ends a gap was the
 * end of a wrong time.
 */
function withoutJumps(): string {
  // 0: what is taken away, 1: the last gap that was left, 2: the last jump that was taken away, 3: the
  // present step.
  const taken = "st(0,ld(0)+st(2,ld(3)))";
  const isReturn = (jump: string) => `lt(abs(ld(3)+${jump}),${FALL_S})`;
  const fall = `if(${isReturn("ld(1)")},st(1,0),${taken})`;
  const rise = `if(gt(ld(3),${GAP_S})+lt(ld(2),0)*${isReturn("ld(2)")},${taken},st(1,ld(3)))`;
  return `st(3,T-PREV_INT-NB_SAMPLES/SR);if(lt(ld(3),-${FALL_S}),${fall},if(gt(ld(3),${FALL_S}),${rise},0));PTS-ld(0)/TB`;
}

/** The number of samples in a duration, at least one. */
export function sampleCount(durationMs: number, sampleRateHz: number): number {
  return Math.max(1, Math.round(durationMs * sampleRateHz / 1000));
}
