/** When the first frame of a source is shown, on the clock of its container; times of frames count from
 * there.
 */

import type { MediaInput } from "../input.ts";
import { mediaSizeOf } from "../media_memory.ts";
import type { MediaInfo } from "../media_info.ts";
import type { Outcome } from "../process.ts";
import type { JobOptions, ToolRunner } from "../jobs/runner.ts";
import { framecrcTimesMs } from "./framecrc.ts";

/**
 * Milliseconds from the start of the container to the first frame that can be decoded. It is above 0 where
 * the sound begins earlier, where a recording begins within a group of pictures, or where an edit list says
 * so. The container's own statements about its streams are not enough to know it. An outcome instead of a
 * number is a failure.
 */
export async function firstFrameMs(
  input: MediaInput,
  info: MediaInfo,
  options: Omit<JobOptions, "maxStdoutBytes">,
  runner: ToolRunner,
): Promise<number | Outcome> {
  const { video, startMs = 0, ignoresEdits } = info;
  const { streamIndex, timeBase } = video!;
  const { deadlineMs } = options;
  const outcome = await runner.run(
    {
      ...{ kind: "first_frame", input, streamIndex, timeBase, deadlineMs, size: mediaSizeOf(info) },
      ...(ignoresEdits && { ignoresEdits }),
    },
    { ...options, maxStdoutBytes: LIST_BYTES_MAX },
  );
  if (outcome.end !== "exited") return outcome;
  const timeMs = framecrcTimesMs(new TextDecoder().decode(outcome.stdout))[0];
  return timeMs === undefined ? outcome : timeMs - startMs;
}

/** Most bytes of the list: some comments and the line of one frame. */
const LIST_BYTES_MAX = 4096;
