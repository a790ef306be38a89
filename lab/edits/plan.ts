/** Which videos are made: kind, group, size, frame rate, length and encoding of each, all from the seed and
 * the name.
 */

import type { Codec, Encoding } from "./files/codecs.ts";
import { anyEncoding } from "./files/codecs.ts";
import { DAMAGED_CONTAINERS } from "./files/damage.ts";
import type { Kind } from "./kinds/table.ts";
import type { Size } from "./pictures/picture.ts";
import { Random } from "./random.ts";

export interface VideoPlan {
  readonly name: string;
  readonly kind: string;
  readonly group: number;
  readonly size: Size;
  readonly fps: number;
  readonly seconds: number;
  readonly encoding: Encoding;
  /** Share of the frames that are left out. */
  readonly uneven: number;
}

export interface PlanWishes {
  readonly seed: number;
  readonly kinds: Readonly<Record<string, Kind>>;
  readonly videos: number;
  readonly groups: number;
  /** The only group that videos are made of; all unless given. */
  readonly group?: number;
}

/** Sizes and how often each is met. */
const SIZES: readonly (readonly [number, number, number])[] = [
  ...[[320, 180, 2], [426, 240, 2], [480, 270, 5], [640, 360, 6], [640, 480, 2], [854, 480, 4]] as const,
  ...[[1280, 720, 0.6], [270, 480, 1], [360, 640, 1]] as const,
];
const RATES: readonly (readonly [number, number])[] = [
  ...[[10, 1], [12, 1], [15, 2], [24, 4], [25, 6], [30, 6], [50, 1], [60, 1]] as const,
];
const SHORTEST_SECONDS = 12;
const LONGEST_SECONDS = 28;

/** Containers that keep a gap in time. */
const UNEVEN_CONTAINERS: Readonly<Partial<Record<Codec, readonly string[]>>> = {
  h264: ["mp4", "mkv"],
  mpeg4: ["mp4", "mkv"],
  vp8: ["webm"],
  vp9: ["webm"],
};

/** Plans videos: at least one of each kind while there are enough; groups take turns within a kind. */
export function planVideos(wishes: PlanWishes): VideoPlan[] {
  const kinds = Object.entries(wishes.kinds);
  const total = kinds.reduce((sum, [, { share = 1 }]) => sum + share, 0);
  const plans: VideoPlan[] = [];
  // Each kind gets the whole part of its share, and those with the largest rest one more.
  const counts = kinds.map(([name, { share = 1 }]) => {
    const exact = wishes.videos * share / total;
    return { name, count: Math.floor(exact), rest: exact - Math.floor(exact) };
  });
  let left = wishes.videos - counts.reduce((sum, { count }) => sum + count, 0);
  for (
    const row of counts.toSorted((a, b) => (a.count > 0 ? 1 : 0) - (b.count > 0 ? 1 : 0) || b.rest - a.rest)
  ) {
    if (left-- > 0) row.count++;
  }
  for (const [place, { name, count }] of counts.entries()) {
    for (let n = 0; n < count; n++) {
      const group = wishes.group ?? (n + place) % wishes.groups;
      plans.push(planVideo(wishes.seed, name, wishes.kinds[name]!, group, n));
    }
  }
  return plans;
}

/** The plan of one video; `codecs` narrows the choice. */
export function planVideo(
  seed: number,
  kind: string,
  row: Kind,
  group: number,
  n: number,
  codecs?: readonly Codec[],
): VideoPlan {
  const name = `${kind}_g${group}_${String(n).padStart(2, "0")}`;
  const random = new Random(`${seed}/${name}/plan`);
  const [width, height] = random.weighted(SIZES, ([, , share]) => share);
  const [fps] = random.weighted(RATES, ([, share]) => share);
  const uneven = row.uneven && random.chance(0.2) ? random.between(0.03, 0.25) : 0;
  let encoding = anyEncoding(
    random,
    fps,
    uneven > 0 ? Object.keys(UNEVEN_CONTAINERS) as Codec[] : codecs ?? row.codecs,
  );
  const containers = uneven > 0 ? UNEVEN_CONTAINERS : row.damage ? DAMAGED_CONTAINERS : {};
  const extension = containers[encoding.codec];
  if (extension) encoding = { ...encoding, extension: random.pick(extension) };
  return {
    ...{ name, kind, group, size: { width, height }, fps, encoding, uneven },
    seconds: random.between(SHORTEST_SECONDS, LONGEST_SECONDS) * Math.min(1, 30 / fps),
  };
}
