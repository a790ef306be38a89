/** Videos of light that changes within shots: flashes, strobes, explosions, lamps that go on or off. */

import type { Edit } from "../edit.ts";
import { blend, difference, light, Picture } from "../pictures/picture.ts";
import { type Colour, ellipse } from "../pictures/shapes.ts";

/** Least change of a picture by a flash: one that changes less is not worth a marker. */
const LEAST_FLASH_DIFFERENCE = 14;

const LONGEST_STROBE_FRAMES = 48;

type Brighten = (picture: Picture, strength: number) => void;

/** Flashes of 1 to 4 frames: white, coloured, or of a part of the picture. */
export async function flash(edit: Edit): Promise<void> {
  const { random } = edit;
  await withEvents(edit, 8, () => {
    const frames = random.int(1, 4);
    const falling = random.chance(0.4);
    return {
      kind: "flash",
      strengths: Array.from({ length: frames }, (_, n) => falling ? 1 - 0.6 * n / frames : 1),
    };
  });
}

/** Rows of short flashes with darkness between. */
export async function strobe(edit: Edit): Promise<void> {
  const { random } = edit;
  await withEvents(edit, 14, () => {
    const on = random.int(1, 2), off = random.int(4, 8);
    const rows = random.int(3, Math.floor(LONGEST_STROBE_FRAMES / (on + off)));
    const strengths = Array.from({ length: rows }, () => [
      ...new Array<number>(on).fill(1),
      ...new Array<number>(off).fill(0),
    ]).flat();
    return { kind: "strobe", strengths };
  });
}

/** A bright frame that decays over 6 to 10. */
export async function explosion(edit: Edit): Promise<void> {
  const { random } = edit;
  await withEvents(edit, 14, () => {
    const frames = random.int(6, 10);
    return {
      kind: "explosion",
      strengths: Array.from({ length: frames }, (_, n) => (1 - n / frames) ** 1.2),
    };
  });
}

interface LightEvent {
  readonly kind: string;
  /** Strength of the light in each frame: 1 is the brightest. */
  readonly strengths: readonly number[];
}

/** Shots with events in them, at least `gap` frames from each other and from cuts. */
async function withEvents(edit: Edit, gap: number, next: () => LightEvent): Promise<void> {
  const { random, film } = edit;
  while (edit.wants()) {
    const shot = edit.cutTo({ frames: edit.length(2, 6, 6 * gap + 30), least: 4 * gap + 20 });
    await edit.play(shot, gap + random.int(0, gap));
    for (;;) {
      const { kind, strengths } = next();
      if (shot.left < strengths.length + 2 * gap) break;
      const brighten = brightening(edit);
      let start = -1;
      const before = new Picture(edit.size);
      await edit.play(shot, strengths.length, (picture, n) => {
        const strength = strengths[n]!;
        let seen = false;
        if (strength > 0) {
          before.copyFrom(picture);
          brighten(picture, strength);
          // A white page cannot flash: there the picture stays as it was.
          seen = difference(picture, before).mean >= LEAST_FLASH_DIFFERENCE * Math.min(1, strength + 0.3);
          if (!seen) picture.copyFrom(before);
        }
        if (seen && start < 0) start = film.at;
        if (!seen && start >= 0) {
          film.range("flashes", kind, start);
          start = -1;
        }
      });
      if (start >= 0) film.range("flashes", kind, start);
      await edit.play(shot, Math.min(shot.left, gap + random.int(0, 30)));
    }
    await edit.play(shot, shot.left);
    await edit.close(shot);
  }
}

function brightening(edit: Edit): Brighten {
  const { random, size } = edit;
  const colour: Colour = random.chance(0.7)
    ? [random.int(225, 250), 128, 128]
    : [random.int(170, 220), random.int(90, 166), random.int(90, 166)];
  const amount = random.between(0.55, 1);
  if (random.chance(0.35)) {
    const x = random.between(0.2, 0.8) * size.width, y = random.between(0.2, 0.7) * size.height;
    const radius = random.between(0.45, 0.9) * Math.max(size.width, size.height);
    return (picture, strength) =>
      ellipse(picture, x, y, radius, radius, colour, (distance) => amount * strength * (1 - distance ** 3));
  }
  if (random.chance(0.4)) {
    const gain = random.between(1.6, 2.6), offset = random.between(30, 80);
    return (picture, strength) => light(picture, 1 + (gain - 1) * strength, offset * strength);
  }
  const ground = new Picture(size).fill(...colour);
  return (picture, strength) => blend(picture, ground, amount * strength, picture);
}

/** A lamp or the sun changes the light for good, in one frame or in a few. That is no cut. */
export async function lamp(edit: Edit): Promise<void> {
  const { random, film } = edit;
  while (edit.wants()) {
    const shot = edit.cutTo({ frames: edit.length(3, 8, 100), least: 60 });
    let from = { gain: 1, offset: 0 };
    await edit.play(shot, 15 + random.int(0, 20));
    while (shot.left > 40) {
      const to = from.gain === 1 && from.offset === 0
        ? random.chance(0.5)
          ? { gain: random.between(0.3, 0.65), offset: 0 }
          : { gain: random.between(1.1, 1.5), offset: random.between(10, 40) }
        : { gain: 1, offset: 0 };
      const ramp = random.chance(0.7) ? 1 : random.int(2, 4);
      const begin = from;
      film.truth.lightsteps.push(film.at);
      await edit.play(shot, Math.min(shot.left, 20 + random.int(0, 50)), (picture, n) => {
        const part = Math.min(1, (n + 1) / ramp);
        light(
          picture,
          begin.gain + (to.gain - begin.gain) * part,
          begin.offset + (to.offset - begin.offset) * part,
        );
      });
      from = to;
    }
    await edit.play(shot, shot.left, (picture) => light(picture, from.gain, from.offset));
    await edit.close(shot);
  }
}
