/** TABLE of the models that a caller may name, with their tiers and aliases. See docs/models.md#catalog. */

import { PROVIDER_KINDS, type ProviderKind } from "./inference.ts";

export type ModelTier = "medium" | "small" | "experimental" | "cloud";

export interface CatalogModel {
  readonly id: string;
  readonly tier: ModelTier;
  readonly aliases: readonly string[];
}

/** The models in catalog order: medium, small, experimental, cloud. */
export const CATALOG: readonly CatalogModel[] = [
  { id: "Qwen/Qwen3.5-35B-A3B-FP8", tier: "medium", aliases: [] },
  { id: "Qwen/Qwen3.5-9B", tier: "medium", aliases: [] },
  { id: "Qwen/Qwen3-VL-8B-Instruct", tier: "medium", aliases: [] },
  { id: "allenai/Molmo2-8B", tier: "medium", aliases: [] },
  { id: "Qwen/Qwen3.5-4B", tier: "small", aliases: [] },
  { id: "Qwen/Qwen3-VL-4B-Instruct", tier: "small", aliases: [] },
  { id: "OpenGVLab/InternVL3_5-4B", tier: "small", aliases: ["opengvlab/internvl3.5-4b"] },
  { id: "Qwen/Qwen3-VL-2B-Instruct", tier: "small", aliases: [] },
  { id: "openbmb/MiniCPM-V-4_5", tier: "small", aliases: ["openbmb/minicpm-v-4.5"] },
  { id: "LiquidAI/LFM2-VL-450M", tier: "small", aliases: [] },
  { id: "LiquidAI/LFM2.5-VL-1.6B", tier: "small", aliases: ["lfm2.5-vl-1.6b-q4_0.gguf"] },
  { id: "microsoft/Mage-VL", tier: "experimental", aliases: ["mage-vl"] },
  {
    id: "gemini-3.5-flash-lite",
    tier: "cloud",
    aliases: ["gemini-flash-lite-latest", "gemini-flash-latest"],
  },
  { id: "gemini-3.1-flash-lite", tier: "cloud", aliases: ["gemini-3.1-flash-lite-preview"] },
  { id: "gemini-3.6-flash", tier: "cloud", aliases: [] },
  { id: "gemini-3-8-flash", tier: "cloud", aliases: [] },
];

/** One model in the answer of `GET /v1/models`. */
export interface CatalogEntry {
  readonly id: string;
  readonly tier: ModelTier;
  readonly availability: "ready" | "saturated" | "unavailable";
  /** Kinds of the backends that serve the model and are reachable now. */
  readonly providers_available: readonly ProviderKind[];
  readonly fallback_candidates: readonly string[];
}

export interface ServedCatalog {
  /** Ids outside the catalog that a backend serves. */
  readonly others: readonly string[];
  /** The kinds of the backends that have a model and are reachable now. */
  reachable(model: string): ReadonlySet<ProviderKind>;
  /** Kinds that are slow: a model is saturated when one of its kinds is among them. */
  readonly alarmed: ReadonlySet<ProviderKind>;
}

/**
 * The whole catalog, then the models outside of it, of which this service does not know how well they
 * describe pictures.
 */
export function catalogEntries({ others, reachable, alarmed }: ServedCatalog): CatalogEntry[] {
  const outside = others.map((id) => ({ id, tier: "experimental", aliases: [] }) as const);
  return [...CATALOG, ...outside].map((model) => {
    const kinds = reachable(model.id);
    const isSaturated = !kinds.isDisjointFrom(alarmed);
    return {
      id: model.id,
      tier: model.tier,
      availability: kinds.size === 0 ? "unavailable" : isSaturated ? "saturated" : "ready",
      providers_available: PROVIDER_KINDS.filter((kind) => kinds.has(kind)),
      fallback_candidates: fallbackCandidates(model),
    };
  });
}

/** Models that a caller may try instead; the list of a tier includes the model itself. */
function fallbackCandidates({ id, tier }: CatalogModel): readonly string[] {
  if (tier === "experimental") return [id, EXPERIMENTAL_FALLBACK];
  const listed = tier === "medium" ? "medium" : "small";
  return CATALOG.filter((model) => model.tier === listed).map((model) => model.id);
}

const EXPERIMENTAL_FALLBACK = "Qwen/Qwen3-VL-4B-Instruct";

/** Every accepted spelling in lower case, and the canonical ids as they are, with the canonical id. */
const CANONICAL: ReadonlyMap<string, string> = new Map(
  CATALOG.flatMap(({ id, aliases }) => [
    [id, id] as const,
    ...[id, ...aliases].map((name) => [asciiLowerCase(name), id] as const),
  ]),
);

/** The canonical id for `id` in any ASCII case; undefined when the catalog has no such model. */
export function canonicalModel(id: string): string | undefined {
  return CANONICAL.get(id) ?? CANONICAL.get(asciiLowerCase(id));
}

/** The text in lower case, A to Z only, so that no other letter is mapped to one in the name of a model. */
export function asciiLowerCase(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
