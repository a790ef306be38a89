/** Which clips show the same things, what kind of picture they are, and how origins are divided into groups.
 */

import { hashOf } from "../random.ts";

/**
 * What a clip is good for. `head`: a talking person; `still`: the camera stands, so two moments of it look
 * alike; `screen`: a recorded screen; `moving`: most of the picture moves.
 */
export type ClipTag = "head" | "still" | "screen" | "moving";

/** Beginnings of file names: clips with the same one are copies of one film or belong together. */
const ORIGINS: readonly {
  readonly begins: string;
  readonly origin: string;
  readonly tags: readonly ClipTag[];
}[] = [
  { begins: "bbb", origin: "big buck bunny", tags: ["moving"] },
  { begins: "flower_", origin: "flower", tags: ["still"] },
  { begins: "nasa_", origin: "nasa", tags: ["moving"] },
  { begins: "mediabunny_hevc", origin: "mediabunny", tags: ["still"] },
  { begins: "mediabunny_", origin: "mediabunny", tags: ["screen", "still"] },
  { begins: "mma_armwrestle", origin: "armwrestle", tags: ["moving"] },
  { begins: "mma_basket", origin: "basket", tags: ["moving"] },
  { begins: "mub_fastcut", origin: "phone promo", tags: ["moving"] },
  { begins: "mub_sign", origin: "sign", tags: ["still"] },
  { begins: "intel_bottle", origin: "bottle", tags: ["still"] },
  { begins: "intel_car", origin: "car", tags: ["still"] },
  { begins: "bgs_video02", origin: "highway", tags: ["still"] },
  { begins: "chrome_ad", origin: "chrome ad", tags: ["still"] },
  { begins: "chromeicon", origin: "chrome icon", tags: ["still"] },
  { begins: "elf_", origin: "elf", tags: ["moving"] },
  { begins: "friday_", origin: "friday", tags: ["head", "still"] },
  { begins: "viseron_", origin: "viseron", tags: ["screen", "still"] },
  { begins: "own_screenrec", origin: "terminals", tags: ["screen", "still"] },
  { begins: "carnd_", origin: "road", tags: ["moving"] },
  { begins: "tos_", origin: "tears of steel", tags: ["moving"] },
  { begins: "mixed_content", origin: "mixed content", tags: ["moving"] },
  { begins: "hamilton_", origin: "stage", tags: ["head"] },
  { begins: "fcat_", origin: "gl transitions", tags: ["moving"] },
  { begins: "lp_head3", origin: "head 3", tags: ["head", "still"] },
  { begins: "lp_head9", origin: "head 9", tags: ["head", "still"] },
  { begins: "lp_head10", origin: "head 10", tags: ["head", "still"] },
  { begins: "jobs_talk", origin: "keynote", tags: ["head", "still"] },
  { begins: "bbc_rant", origin: "rant", tags: ["head", "still"] },
];

/** A clip that the table does not know is an origin of its own. */
export function originOf(file: string): { readonly origin: string; readonly tags: readonly ClipTag[] } {
  const row = ORIGINS.find(({ begins }) => file.startsWith(begins));
  return row ?? { origin: file.replace(/\.[^.]*$/, ""), tags: [] };
}

/** A number that makes 2, 3, 4 and 5 groups each get heads, still and moving pictures of the clips above. */
const SALT = 10036;

/** The group of an origin. It depends on the name alone, so that another clip in the folder moves nothing. */
export function groupOf(origin: string, groups: number): number {
  return hashOf(`${SALT}/${origin}`) % groups;
}
