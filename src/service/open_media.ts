/** Opens what decodes recorded media: the decoder, the extractor and the gate kernel. */

import type { Metrics } from "../base/metrics.ts";
import type { Places } from "../base/program_paths.ts";
import type { World } from "../base/world.ts";
import { GateKernel } from "../media/kernels/gate_kernel.ts";
import { Decoder } from "../media/recorded/decoder.ts";
import type { ToolRunner } from "../media/tools/runner.ts";
import { Extractor } from "../media/windows/extractor.ts";

export interface Media {
  readonly decoder: Decoder;
  readonly extractor: Extractor;
  readonly gate: GateKernel;
}

export interface MediaOptions {
  readonly runner: ToolRunner;
  readonly tempDir: Places["tempDir"];
  readonly world: World;
  readonly metrics: Metrics;
}

/** Errors: a kernel that does not load. */
export async function openMedia(
  opening: AsyncDisposableStack,
  { runner, tempDir, world, metrics }: MediaOptions,
): Promise<Media> {
  const maxConcurrent = navigator.hardwareConcurrency;
  const decoder = opening.use(await Decoder.open({ runner, tempDir, world, maxConcurrent }));
  const extractor = opening.use(new Extractor({ runner, tempDir, world, maxConcurrent, metrics }));
  return { decoder, extractor, gate: await GateKernel.load() };
}
