/** JOB that makes samples of Ogg Opus, which is its input. */

import * as z from "zod";
import { SIDECAR_SAMPLE_RATE_HZ } from "../../model/sidecars/wav.ts";
import { job } from "./job.ts";

const CPU_SECONDS = 10;

export const opusToSamples = job({
  schema: z.strictObject({ kind: z.literal("opus_samples") }),
  hasInput: true,
  bounds: () => ({ work: "small", cpuSeconds: CPU_SECONDS }),
  args: (_, { input, output }) => [
    ...["-nostdin", "-v", "error", "-threads", "1", "-f", "ogg", "-i", input],
    ...["-map", "0:a:0", "-ac", "1", "-ar", String(SIDECAR_SAMPLE_RATE_HZ), "-f", "s16le", "-y", output],
  ],
});
