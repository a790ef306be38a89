/** Opens what decodes recorded media: the decoder, the extractor and the gate kernel. */

import type { Metrics } from "../contract/metrics.ts";
import type { Config } from "../contract/config.ts";
import type { DecodeDevices, Places } from "../base/program_paths.ts";
import { RunningWork } from "../sharing/running_work.ts";
import type { World } from "../base/world.ts";
import { AboutFfmpeg } from "../media/trials/ffmpeg_facts.ts";
import { GateKernel } from "../media/kernels/gate_kernel.ts";
import { Decoder } from "../media/files/decoder.ts";
import { Hardware } from "../media/files/hardware.ts";
import type { ToolRunner } from "../media/jobs/runner.ts";
import { Extractor } from "../media/files/extractor.ts";
import { writeTempFile } from "../store/files/temp_folder.ts";
import { MemoryBudget } from "../media/memory_budget.ts";
import { PictureScaler } from "../media/files/picture_scaler.ts";
import { ToolTrials } from "../media/trials/tool_trials.ts";

export interface Media {
  readonly decoder: Decoder;
  readonly extractor: Extractor;
  readonly pictures: PictureScaler;
  readonly gate: GateKernel;
  readonly hardware: Hardware;
  readonly ffmpeg: AboutFfmpeg;
  readonly trials: ToolTrials;
}

export interface MediaOptions {
  readonly runner: ToolRunner;
  readonly tempDir: Places["tempDir"];
  readonly world: World;
  readonly metrics: Metrics;
  /** What should decode; `devices` are the hardware that may. */
  readonly backend: Config["decodeBackend"];
  readonly devices: DecodeDevices;
  readonly memoryBudgetBytes: Config["decodeMemoryBudgetBytes"];
  /** Whether the service has several principals. */
  readonly isShared: boolean;
  /** Whether the programs need no trials. */
  readonly knownTools: boolean;
}

/** Opens all that decodes recorded media. Errors: a kernel that does not load. */
export async function openMedia(
  opening: AsyncDisposableStack,
  { runner, tempDir, world, metrics, backend, devices, memoryBudgetBytes, isShared, knownTools }:
    MediaOptions,
): Promise<Media> {
  const maxConcurrent = workAtOnce(navigator.hardwareConcurrency, isShared);
  const ffmpeg = new AboutFfmpeg({ runner, world });
  const trials = opening.use(
    new ToolTrials({ runner, tempDir, writeFile: writeTempFile, world, ffmpeg, knownTools }),
  );
  const memory = opening.use(new MemoryBudget({ bytes: memoryBudgetBytes, isShared, world }));
  const common = {
    memory,
    runner,
    tempDir,
    world,
    maxConcurrent,
    isShared,
    trials,
    ...(isShared && { work: new RunningWork() }),
  };
  const hardware = new Hardware({ asked: backend, devices, runner, world });
  const decoder = opening.use(new Decoder({ ...common, hardware }));
  const extractor = opening.use(new Extractor({ ...common, metrics }));
  const pictures = opening.use(new PictureScaler({ runner, memory, world, trials, isShared }));
  return {
    decoder,
    extractor,
    pictures,
    gate: await GateKernel.load(),
    hardware,
    ffmpeg,
    trials,
  };
}

/**
 * Decodes or extractions at once: as many as there are processors, as more make each slower. With several
 * principals a third more, so that one alone, which gets three quarters, can use every processor, and the
 * next one still starts at once.
 */
function workAtOnce(processors: number, isShared: boolean): number {
  return isShared ? processors + Math.ceil(processors / 3) : processors;
}
