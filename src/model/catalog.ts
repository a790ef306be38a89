/** TABLE of the models that a caller may name, their tiers and the other spellings that stand for them. Contract 1.4. */

export type ModelTier = "medium" | "small" | "experimental" | "cloud";

export interface CatalogModel {
  readonly id: string;
  readonly tier: ModelTier;
  readonly aliases: readonly string[];
}

/** In catalog order: medium, small, experimental, cloud. */
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

/** Every accepted spelling in lower case, with the id that it stands for. */
const CANONICAL: ReadonlyMap<string, string> = new Map(
  CATALOG.flatMap(({ id, aliases }) => [id, ...aliases].map((name) => [asciiLowerCase(name), id] as const)),
);

/** The canonical id for `id` in any ASCII case, or undefined when the contract has no such model. */
export function canonicalModel(id: string): string | undefined {
  return CANONICAL.get(asciiLowerCase(id));
}

/** Only A to Z change, so that no other letter folds onto a model's name. */
function asciiLowerCase(text: string): string {
  return text.replace(/[A-Z]/g, (letter) => letter.toLowerCase());
}
