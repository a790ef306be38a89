/** TABLE of the jobs: a row is a kind of job, and a program is started for nothing else. */

import * as z from "zod";
import { copyClip } from "./copy_clip.ts";
import { decode } from "./decode.ts";
import { encodeClip } from "./encode_clip.ts";
import { encodeJpegs } from "./encode_jpegs.ts";
import { firstFrame } from "./first_frame.ts";
import type { JobKind, JobSchema } from "./job.ts";
import { listDecoders } from "./list_decoders.ts";
import { listGpus } from "./list_gpus.ts";
import { listPackets } from "./list_packets.ts";
import { liveDecode } from "./live_decode.ts";
import { livePull } from "./live_pull.ts";
import { makePipe } from "./make_pipe.ts";
import { openDevice } from "./open_device.ts";
import { opusToSamples } from "./opus_samples.ts";
import { probe } from "./probe_media.ts";
import { scalePicture } from "./scale_picture.ts";
import { wav } from "./wav.ts";

/** Jobs whose output is short, and given when they have ended. */
const RUN_JOBS = [
  makePipe,
  probe,
  listDecoders,
  listGpus,
  openDevice,
  firstFrame,
  wav,
  encodeClip,
  listPackets,
  copyClip,
  scalePicture,
  opusToSamples,
  decode,
];

/** Jobs whose output is read while they run. */
const STREAM_JOBS = [decode, liveDecode, livePull, encodeJpegs];

export const runJob = z.discriminatedUnion("kind", schemasOf(RUN_JOBS));
export const streamJob = z.discriminatedUnion("kind", schemasOf(STREAM_JOBS));

export type RunJob = z.infer<typeof runJob>;
export type StreamJob = z.infer<typeof streamJob>;
export type ToolJob = RunJob | StreamJob;
export type JobOf<Kind extends ToolJob["kind"]> = Extract<ToolJob, { kind: Kind }>;

const JOBS: ReadonlyMap<string, JobKind<JobSchema>> = new Map(
  [...RUN_JOBS, ...STREAM_JOBS].map((row) => [row.schema.shape.kind.value, row]),
);

/** The row of a job. */
export function kindOf({ kind }: ToolJob): JobKind<JobSchema> {
  return JOBS.get(kind)!;
}

/** What a discriminated union takes: at least one schema. */
function schemasOf<Row extends { readonly schema: JobSchema }>(rows: readonly Row[]) {
  return rows.map(({ schema }) => schema) as [Row["schema"], ...Row["schema"][]];
}
