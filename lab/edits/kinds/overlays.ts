/** Videos with things around or over the picture: bars, blurred sides, titles, logos, a picture in the
 * picture.
 */

import type { Edit, Shot } from "../edit.ts";
import { blurAlong, light, paste, Picture, sample, scaled } from "../pictures/picture.ts";
import { bars, logo, subtitles } from "../pictures/style.ts";

/** Bars or blurred sides, the same for the whole video or another way for each shot. */
export async function boxed(edit: Edit): Promise<void> {
  const { random, size } = edit;
  const choose = () => ({
    way: random.pick(["letter", "pillar", "blurred", "none"]),
    share: random.between(0.06, 0.25),
  });
  const changing = random.chance(0.4);
  let box = choose();
  const inner = new Picture(size);
  const small = new Picture(scaled(size, 0.5));
  while (edit.wants()) {
    const shot = edit.cutTo({ frames: edit.seconds(random.between(0.6, 2.5)), least: 12, drawn: 0.05 });
    const { way, share } = box;
    await edit.play(shot, shot.frames, (picture) => {
      if (way === "letter") bars(picture, 0, share / 1.5);
      if (way === "pillar") bars(picture, share, 0);
      if (way === "blurred") blurredSides(picture, inner, small, share);
    });
    await edit.close(shot);
    if (changing) box = choose();
  }
}

/** The picture stands in the middle, before a blurred and darker enlargement of itself. */
function blurredSides(picture: Picture, inner: Picture, small: Picture, share: number): void {
  const { width, height } = picture;
  inner.copyFrom(picture);
  sample(picture, { x: width * 0.2, y: height * 0.2, width: width * 0.6, height: height * 0.6 }, small);
  blurAlong(small, 24);
  blurAlong(small, 24, true);
  light(small, 0.7, 0);
  sample(small, { x: 0, y: 0, width: small.width, height: small.height }, picture);
  const left = 2 * Math.round(width * share / 2);
  const planes = inner.planes();
  picture.planes().forEach(({ data, width: columns, height: rows }, p) => {
    const from = p === 0 ? left : left / 2;
    for (let row = 0; row < rows; row++) {
      const at = row * columns;
      data.set(planes[p]!.data.subarray(at + from, at + columns - from), at + from);
    }
  });
}

/** Subtitles, a logo and large titles that come and go within shots. */
export async function titles(edit: Edit): Promise<void> {
  const { random, film, size } = edit;
  const lines = subtitles(random.fork("lines"), size);
  const mark = logo(random.fork("logo"), size);
  const large = subtitles(random.fork("large"), { width: size.width, height: size.height / 2 });
  const markEvery = random.int(60, 200), withLarge = random.chance(0.5);
  while (edit.wants()) {
    const shot = edit.cutTo({ frames: edit.seconds(random.between(1, 3.5)), least: 20, drawn: 0.05 });
    await edit.play(shot, shot.frames, (picture) => {
      lines(picture, film.at);
      if (withLarge) large(picture, film.at);
      if (film.at % (2 * markEvery) < markEvery) mark(picture);
    });
    await edit.close(shot);
  }
}

/** A small picture in a corner, which comes, goes and is cut by itself; only the large one is asked for. */
export async function insets(edit: Edit): Promise<void> {
  const { random } = edit;
  const small = new Picture(scaled(edit.size, 0.25));
  const x = random.pick([8, edit.size.width - small.width - 8]),
    y = random.pick([8, edit.size.height - small.height - 8]);
  let inset: Shot | null = null;
  while (edit.wants()) {
    const shot = edit.cutTo({ frames: edit.seconds(random.between(1.5, 4)), least: 30, drawn: 0.05 });
    await edit.play(shot, shot.frames, async (picture, n) => {
      if (inset && inset.left === 0) {
        await edit.close(inset);
        inset = null;
      }
      if (!inset && n > 10 && random.chance(0.04)) {
        inset = edit.shot({ frames: random.int(30, 120), least: 20, drawn: 0.1 });
      }
      if (!inset) return;
      const whole = await inset.next();
      sample(whole, { x: 0, y: 0, width: whole.width, height: whole.height }, small);
      paste(small, picture, x, y);
    });
    await edit.close(shot);
  }
}
