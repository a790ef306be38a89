/** The largest pictures that an offer announces, for which memory is reserved. See docs/live.md#capacity. */

import { fmtpParameter, type Offer } from "./offer.ts";

/** The largest picture: at most `width * height` pixels; it may still be wider or higher than these. */
export interface PictureBound {
  readonly width: number;
  readonly height: number;
}

/** The largest picture of an offer that announces no size. */
export const PICTURE_DEFAULT: PictureBound = { width: 1920, height: 1080 };

/**
 * Counted in macroblocks of 16x16, never above 4K; the first statement that the offer contains decides.
 *
 * | Statement                                      | Bound                                       |
 * | ---------------------------------------------- | ------------------------------------------- |
 * | `imageattr` of what is sent                    | the largest size in it                      |
 * | `max-fs`                                       | as it says                                  |
 * | H.264 `profile-level-id`                       | table A-1 of H.264                          |
 * | the same, with `level-asymmetry-allowed=1`     | that, but at least the default              |
 * | none                                           | the default                                 |
 *
 * With asymmetry allowed the level applies to what the publisher decodes: browsers offer level 3.1 and send
 * 1080p.
 */
export function pictureBound(offer: Offer): PictureBound {
  if (!offer.video) return { width: 0, height: 0 };
  const { fmtp, imageattr } = offer.sizeHints;
  const sent = imageBound(imageattr);
  if (sent) return sent;
  const stated = Number(fmtpParameter(fmtp, "max-fs") ?? NaN);
  if (stated > 0) return sizeOf(stated);
  const level = offer.video.codec === "h264" ? levelBlocks(fmtpParameter(fmtp, "profile-level-id")) : null;
  if (level === null) return PICTURE_DEFAULT;
  const isAsymmetric = fmtpParameter(fmtp, "level-asymmetry-allowed") === "1";
  return isAsymmetric && level <= blocksOf(PICTURE_DEFAULT) ? PICTURE_DEFAULT : sizeOf(level);
}

/** The largest picture that is kept as it is: one of more pixels is scaled down to as many. */
export const LARGEST_PICTURE: PictureBound = { width: 3840, height: 2160 };

export function pixelsOf({ width, height }: PictureBound): number {
  return width * height;
}

/** The smaller one of the picture and {@link LARGEST_PICTURE}. */
export function bounded(picture: PictureBound): PictureBound {
  const { width, height } = pixelsOf(picture) > pixelsOf(LARGEST_PICTURE) ? LARGEST_PICTURE : picture;
  return { width, height };
}

/** The macroblocks of a picture (`MaxFS`) by `level_idc`. Level 1b has 1.1's number and is smaller. */
const LEVEL_BLOCKS: Readonly<Record<number, number>> = {
  10: 99,
  11: 396,
  12: 396,
  13: 396,
  20: 396,
  21: 792,
  22: 1620,
  30: 1620,
  31: 3600,
  32: 5120,
  40: 8192,
  41: 8192,
  42: 8704,
  50: 22_080,
  51: 36_864,
  52: 36_864,
  60: 139_264,
  61: 139_264,
  62: 139_264,
};

function levelBlocks(profileLevelId: string | undefined): number | null {
  if (!/^[0-9a-f]{6}$/i.test(profileLevelId ?? "")) return null;
  return LEVEL_BLOCKS[parseInt(profileLevelId!.slice(4), 16)] ?? null;
}

function blocksOf({ width, height }: PictureBound): number {
  return Math.ceil(width / 16) * Math.ceil(height / 16);
}

/** The 16:9 picture with this number of macroblocks. */
function sizeOf(stated: number): PictureBound {
  const blocks = Math.min(stated, blocksOf(LARGEST_PICTURE));
  const wide = Math.ceil(Math.sqrt((blocks * 16) / 9));
  return { width: wide * 16, height: Math.ceil(blocks / wide) * 16 };
}

function imageBound(imageattr: string | null): PictureBound | null {
  const sets = [...(imageattr ?? "").matchAll(/\[([^\]]*)\]/g)].map(([, set]) => ({
    width: largest(set!, "x"),
    height: largest(set!, "y"),
  })).filter(({ width, height }) => width > 0 && height > 0);
  const [first] = sets.sort((one, other) => blocksOf(other) - blocksOf(one));
  if (!first) return null;
  return blocksOf(first) > blocksOf(LARGEST_PICTURE) ? LARGEST_PICTURE : first;
}

/**
 * The largest number in `x=1280` or `x=[320:16:1280]`; a list `x=[320,640]` never gets here, as its bracket
 * ends the set.
 */
function largest(set: string, axis: "x" | "y"): number {
  const value = new RegExp(`\\b${axis}=([\\d:]+)`).exec(set)?.[1] ?? "";
  return Math.max(0, ...value.split(":").map(Number).filter((number) => number <= 16_384));
}
