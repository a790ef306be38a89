/** Which models describe live sessions: those of the settings, else the only model of the backend file. See
 * docs/live/events.md#descriptions.
 */

import type { Config } from "../../contract/config.ts";
import type { BackendSettings } from "../infer/backend_file.ts";
import { canonicalModel } from "../infer/catalog.ts";

/** The settings SERVICE_WEBRTC_*_PASS_*; the models are any ids or aliases. */
export type LiveModelSettings = Pick<
  Config["webrtc"],
  "firstPassModel" | "secondPassModel" | "secondPassThreshold" | "secondPassMaxTokens"
>;

/** The models with canonical ids; an id outside the catalog stays as it is. */
export interface LiveModels {
  readonly firstPassModel: string;
  /** Whether a setting or the backend file names the first model; if not, another may be chosen. */
  readonly isNamed: boolean;
  /** The model of the second pass; null for no second pass; never the first model. */
  readonly secondPassModel: string | null;
  readonly secondPassThreshold: number;
  readonly secondPassMaxTokens: number;
}

const DEFAULT_MODEL = "Qwen/Qwen3-VL-8B-Instruct";

export function liveModels(
  { firstPassModel, secondPassModel, secondPassThreshold, secondPassMaxTokens }: LiveModelSettings,
  backends: readonly BackendSettings[],
): LiveModels {
  const chosen = firstPassModel === undefined ? onlyModel(backends) : named(firstPassModel);
  const first = chosen ?? DEFAULT_MODEL;
  const second = secondPassModel === undefined ? first : named(secondPassModel);
  return {
    firstPassModel: first,
    isNamed: chosen !== null,
    secondPassModel: second === first ? null : second,
    secondPassThreshold,
    secondPassMaxTokens,
  };
}

/**
 * The model that all backends serve; null where they serve several, or where one of them serves what its
 * server has.
 */
function onlyModel(backends: readonly BackendSettings[]): string | null {
  const models = new Set(backends.map(({ model }) => model));
  const [only] = models;
  return models.size === 1 ? only ?? null : null;
}

function named(model: string): string {
  const text = model.trim();
  return canonicalModel(text) ?? text;
}
