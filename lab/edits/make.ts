/** Makes one video with its truth file, and refuses to leave one whose frames do not agree with its truth. */

import { basename, join } from "node:path";
import type { FrameRange } from "../scores/truth.ts";
import type { Clip } from "./files/clips.ts";
import { Gaps, openEncoder } from "./files/codecs.ts";
import { damageVideo } from "./files/damage.ts";
import { Edit } from "./edit.ts";
import { Film, type FilmTruth } from "./film.ts";
import { inspect, withStill } from "./files/inspect.ts";
import type { Kind } from "./kinds/table.ts";
import { groupOf } from "./files/origins.ts";
import type { VideoPlan } from "./plan.ts";
import type { FrameSink } from "./files/programs.ts";
import { Random } from "./random.ts";
import { remap } from "./remap.ts";
import { anyStyle } from "./pictures/style.ts";

export interface MadeVideo {
  readonly plan: VideoPlan;
  readonly frames: number;
  readonly truth: FilmTruth;
}

export interface Workshop {
  readonly seed: number;
  readonly groups: number;
  readonly clips: readonly Clip[];
  readonly outFolder: string;
}

export async function makeVideo(shop: Workshop, plan: VideoPlan, kind: Kind): Promise<MadeVideo> {
  const { name, encoding } = plan;
  const path = join(shop.outFolder, `${name}.${encoding.extension}`);
  const whole = join(shop.outFolder, `.${name}.whole.${encoding.extension}`);
  try {
    return await makeFiles(shop, plan, kind, kind.damage ? whole : path, path);
  } catch (error) {
    await Deno.remove(path).catch(() => {});
    throw error;
  } finally {
    if (kind.damage) await Deno.remove(whole).catch(() => {});
  }
}

/** Encodes to the path `encoded`, which is `path` unless the video is damaged after it. */
async function makeFiles(
  shop: Workshop,
  plan: VideoPlan,
  kind: Kind,
  encoded: string,
  path: string,
): Promise<MadeVideo> {
  const { name, encoding, size, fps } = plan;
  const video = basename(path);
  const gaps = plan.uneven > 0 ? new Gaps(new Random(`${shop.seed}/${name}/uneven`), plan.uneven) : null;
  const encoder = openEncoder(encoded, size, fps, encoding, gaps);
  let film: Film, style: string;
  try {
    ({ film, style } = await shoot(shop, plan, kind, encoder));
  } catch (error) {
    await encoder.abort();
    throw error;
  }
  await encoder.finish();
  const kept = Array.from({ length: film.at }, (_, n) => n).filter((n) => !gaps?.leavesOut(n));
  let truth = gaps ? remap(film.truth, kept) : film.truth;
  let inspection = await inspect(encoded, size);
  if (inspection.frames !== kept.length) {
    throw new Error(`${video}: ${inspection.frames} frames can be decoded, but ${kept.length} were made`);
  }
  let damagedPackets: readonly FrameRange[] = [];
  if (kind.damage) {
    const random = new Random(`${shop.seed}/${name}/damage`);
    let frames: number;
    ({ truth, frames, damagedPackets } = await damageVideo(encoded, path, kind.damage, truth, plan, random));
    inspection = await inspect(path, size);
    if (inspection.frames !== frames) {
      throw new Error(
        `${video}: ${inspection.frames} frames can be decoded now, and ${frames} when it was compared`,
      );
    }
  }
  truth = withStill(truth, inspection);
  const { frames } = inspection;
  await writeTruth(shop, plan, { video, frames, style, truth, damagedPackets });
  return { plan, frames, truth };
}

/** Shows the whole video to `sink`. The same seed, plan and clips give the same frames. */
export async function shoot(
  { seed, groups, clips }: Pick<Workshop, "seed" | "groups" | "clips">,
  plan: VideoPlan,
  kind: Kind,
  sink: FrameSink,
): Promise<{ film: Film; style: string }> {
  const random = new Random(`${seed}/${plan.name}`);
  const style = anyStyle(random.fork("style"), plan.size, kind.styles);
  const film = new Film(plan.size, plan.fps, sink, style.overlay);
  const own = clips.filter(({ origin }) => groupOf(origin, groups) === plan.group);
  const edit = new Edit(film, random, Math.round(plan.seconds * plan.fps), own, style.grade);
  try {
    await kind.make(edit);
  } finally {
    await edit.closeAll();
  }
  film.finish();
  return { film, style: style.name };
}

async function writeTruth(
  { seed, outFolder }: Workshop,
  { name, kind, group, size, fps, encoding }: VideoPlan,
  { video, frames, style, truth, damagedPackets }: {
    readonly video: string;
    readonly frames: number;
    readonly style: string;
    readonly truth: FilmTruth;
    readonly damagedPackets: readonly FrameRange[];
  },
): Promise<void> {
  const { codec, args } = encoding;
  const text = JSON.stringify({
    ...{ name, video, kind, group, seed, ...size, fps, frames, codec, encoder: args.join(" "), style },
    ...(damagedPackets.length > 0 ? { damaged_packets: damagedPackets } : {}),
    ...truth,
  });
  await Deno.writeTextFile(join(outFolder, `${name}.truth.json`), `${text}\n`);
}
