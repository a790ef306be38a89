/** Opens what decodes recorded media: the decoder, the extractor and the gate kernel. */

import type { Metrics } from "../base/metrics.ts";
import type { Places, Tools } from "../base/program_paths.ts";
import type { World } from "../base/world.ts";
import { GateKernel } from "../media/kernels/gate_kernel.ts";
import { Decoder } from "../media/recorded/decoder.ts";
import { Extractor } from "../media/windows/extractor.ts";

export interface Media {
  readonly decoder: Decoder;
  readonly extractor: Extractor;
  readonly gate: GateKernel;
}

export interface MediaOptions {
  readonly tools: Tools;
  readonly tempDir: Places["tempDir"];
  readonly world: World;
  readonly metrics: Metrics;
}

/** Errors: a kernel that does not load. */
export async function openMedia(
  opening: AsyncDisposableStack,
  { tools, tempDir, world, metrics }: MediaOptions,
): Promise<Media> {
  const maxConcurrent = navigator.hardwareConcurrency;
  const decoder = opening.use(await Decoder.open({ tools, tempDir, world, maxConcurrent }));
  const extractor = opening.use(new Extractor({ tools, tempDir, world, maxConcurrent, metrics }));
  return { decoder, extractor, gate: await GateKernel.load() };
}
