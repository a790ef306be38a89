/** Opens the way to the models: their providers, the admission in front of them, and the audio sidecar. */

import type { Config } from "../contract/config.ts";
import type { Metrics } from "../contract/metrics.ts";
import type { World } from "../base/world.ts";
import { Inference } from "../flow/infer/inference.ts";
import type { BackendSettings } from "../model/infer/backend_file.ts";
import type { TrustedOutbound } from "../remote/guard/outbound.ts";
import { Providers } from "../remote/models/providers.ts";
import type { AudioSidecar } from "../remote/sidecars/audio_sidecar.ts";

export interface Models {
  /** The caller disposes it, before what its calls belong to. */
  readonly inference: Inference;
  /** Null where SERVICE_AUDIO_SIDECAR_ADDR is not set. */
  readonly audioSidecar: AudioSidecar | null;
}

export interface ModelsOptions {
  readonly config: Pick<Config, "inference" | "audioSidecar">;
  readonly backends: readonly BackendSettings[];
  readonly outbound: TrustedOutbound;
  readonly world: World;
  readonly metrics: Metrics;
  /** Whether the service has several principals. */
  readonly isShared: boolean;
}

export async function openModels(
  opening: AsyncDisposableStack,
  { config, backends, outbound, world, metrics, isShared }: ModelsOptions,
): Promise<Models> {
  const providers = opening.use(new Providers({ backends, world, outbound }));
  const inference = new Inference({ providers, limits: config.inference, metrics, world });
  return { inference, audioSidecar: await openAudioSidecar(opening, { config, world, metrics, isShared }) };
}

/** Its protocol is loaded only where one is configured. */
async function openAudioSidecar(
  opening: AsyncDisposableStack,
  { config, world, metrics, isShared }: Omit<ModelsOptions, "backends" | "outbound">,
): Promise<AudioSidecar | null> {
  const { address } = config.audioSidecar;
  if (address === undefined) return null;
  const { AudioSidecar } = await import("../remote/sidecars/audio_sidecar.ts");
  return opening.use(new AudioSidecar({ address, world, metrics, isShared }));
}
