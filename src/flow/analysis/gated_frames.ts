/** The gate and the context pass over the frames of a request or of a decode, with turns for others in
 * between.
 */

import { yieldToEventLoop } from "../../base/wait.ts";
import { GateKernel } from "../../media/kernels/gate_kernel.ts";
import type { GateColumns, GateThresholds } from "../../model/frames/signals.ts";
import type { FrameColumns } from "../../model/frames/signals_json.ts";

/** Frames after which others get a turn. */
export const FRAMES_PER_TURN = 8192;

/** Many frames are decided in a gate of their own, as others use the shared one in between. */
export async function gated(
  { signals, frameIndex }: Pick<FrameColumns, "signals" | "frameIndex">,
  thresholds: GateThresholds,
  windowSize: number,
  shared: GateKernel,
): Promise<GateColumns> {
  if (signals.count <= FRAMES_PER_TURN) return shared.run(signals, frameIndex, thresholds, windowSize);
  const blocks = (await GateKernel.load()).blocks(signals, frameIndex, thresholds, windowSize);
  for (let step = blocks.next();; step = blocks.next()) {
    if (step.done) return step.value;
    await yieldToEventLoop();
  }
}
