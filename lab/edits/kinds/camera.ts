/** Videos in which much moves or blurs without a cut: shake, pans, zooms, passing objects, noise, low light,
 * old film.
 */

import type { Edit, Shot } from "../edit.ts";
import { addNoise, blurAlong, light, type Part, Picture, sample } from "../pictures/picture.ts";
import type { Random } from "../random.ts";
import { BLACK, type Colour, ellipse, rectangle, WHITE } from "../pictures/shapes.ts";

/** Where the window stands at each frame, as its centre (0 to 1) and its part of the enlarged picture. */
interface Move {
  readonly kind: string;
  at(n: number): { readonly x: number; readonly y: number; readonly extent: number };
}

export async function shake(edit: Edit): Promise<void> {
  await moving(edit, 1.3, (random) => shaking(random));
}

/** Slow and fast pans, tilts and zooms. */
export async function pan(edit: Edit): Promise<void> {
  await moving(
    edit,
    1.7,
    (random, frames) => random.chance(0.4) ? zooming(random, frames) : panning(random, frames),
  );
}

/** The camera is thrown round: half a picture within 4 to 9 frames, blurred. */
export async function whip(edit: Edit): Promise<void> {
  await moving(edit, 2, (random, frames) => whipping(random, frames));
}

async function moving(
  edit: Edit,
  enlarged: number,
  choose: (random: Random, frames: number) => Move,
): Promise<void> {
  const { random, film } = edit;
  const out = new Picture(edit.size);
  while (edit.wants()) {
    const shot = edit.cutTo({ frames: edit.length(1.5, 4, 40), least: 40, enlarged });
    const move = choose(random.fork(`move${film.at}`), shot.frames);
    const start = film.at;
    let before: Part | null = null;
    for (let n = 0; n < shot.frames; n++) {
      const picture = await shot.next();
      const { x, y, extent } = move.at(n);
      const width = picture.width * extent, height = picture.height * extent;
      const part: Part = { x: x * (picture.width - width), y: y * (picture.height - height), width, height };
      sample(picture, part, out);
      if (before) {
        const across = Math.abs(part.x - before.x) * out.width / width;
        const down = Math.abs(part.y - before.y) * out.height / height;
        // A shutter that is open for half the time.
        if (across > 12) blurAlong(out, across / 2);
        if (down > 12) blurAlong(out, down / 2, true);
      }
      before = part;
      await film.show(out);
    }
    film.range("shakes", move.kind, start);
    await edit.close(shot);
  }
}

function shaking(random: Random): Move {
  const strength = random.between(0.2, 1), hold = random.between(0.3, 0.85);
  const places: { x: number; y: number }[] = [];
  let x = 0.5, y = 0.5;
  return {
    kind: "shake",
    at(n) {
      while (places.length <= n) {
        x = clamp(0.5 + (x - 0.5) * hold + 0.3 * strength * random.gauss());
        y = clamp(0.5 + (y - 0.5) * hold + 0.3 * strength * random.gauss());
        places.push({ x, y });
      }
      return { ...places[n]!, extent: 1 / 1.3 };
    },
  };
}

function panning(random: Random, frames: number): Move {
  const [fromX, toX] = random.chance(0.8) ? [random.between(0, 0.3), random.between(0.7, 1)] : [0.5, 0.5];
  const [fromY, toY] = fromX === 0.5 ? [0, 1] : [random.next(), random.next()];
  const back = random.chance(0.5);
  return {
    kind: "pan",
    at(n) {
      const way = smooth((back ? frames - n : n) / frames);
      return { x: fromX + (toX - fromX) * way, y: fromY + (toY - fromY) * way, extent: 1 / 1.7 };
    },
  };
}

function zooming(random: Random, frames: number): Move {
  const narrow = random.between(0.3, 0.6), back = random.chance(0.5);
  const duration = random.chance(0.4) ? random.int(5, 20) : frames;
  const begin = random.int(0, Math.max(0, frames - duration));
  const x = random.between(0.2, 0.8), y = random.between(0.2, 0.8);
  return {
    kind: "zoom",
    at(n) {
      const way = smooth(clamp((n - begin) / duration));
      return { x, y, extent: 1 - (1 - narrow) * (back ? 1 - way : way) };
    },
  };
}

function whipping(random: Random, frames: number): Move {
  const stops: { from: number; to: number; begin: number; length: number }[] = [];
  let place = random.pick([0, 1]);
  for (let begin = random.int(8, 25); begin < frames - 15; begin += random.int(25, 60)) {
    const to = place > 0.5 ? random.between(0, 0.25) : random.between(0.75, 1);
    stops.push({ from: place, to, begin, length: random.int(4, 9) });
    place = to;
  }
  const first = stops[0]?.from ?? place;
  const vertical = random.chance(0.2);
  return {
    kind: "whip",
    at(n) {
      let along = first;
      for (const { from, to, begin, length } of stops) {
        if (n >= begin) along = from + (to - from) * smooth(clamp((n - begin) / length));
      }
      return vertical ? { x: 0.5, y: along, extent: 0.5 } : { x: along, y: 0.5, extent: 0.5 };
    },
  };
}

function smooth(part: number): number {
  return part * part * (3 - 2 * part);
}

function clamp(value: number): number {
  return Math.max(0, Math.min(1, value));
}

/** Something passes close to the camera and covers 30 to 90 % of the picture for 4 to 15 frames. */
export async function passing(edit: Edit): Promise<void> {
  const { random, size } = edit;
  while (edit.wants()) {
    const shot = edit.cutTo({ frames: edit.length(3, 7, 90), least: 60 });
    await edit.play(shot, 12);
    while (shot.left > 40) {
      const frames = random.int(4, 15), covered = random.between(0.4, 0.9);
      const colour: Colour = [random.int(20, 200), random.int(100, 156), random.int(100, 156)];
      const width = covered * size.width, rightwards = random.chance(0.5), round = random.chance(0.5);
      const strips = Array.from({ length: 4 }, () => ({ x: random.next(), luma: random.int(16, 220) }));
      await edit.play(shot, frames, (picture, n) => {
        const way = (n + 0.5) / frames;
        const x = (rightwards ? way : 1 - way) * (size.width + width) - width;
        if (round) ellipse(picture, x + width / 2, size.height * 0.55, width / 2, size.height * 0.7, colour);
        else {
          rectangle(picture, x, 0, width, size.height, colour);
          for (const strip of strips) {
            rectangle(picture, x + strip.x * width * 0.8, 0, width * 0.1, size.height, [
              strip.luma,
              colour[1],
              colour[2],
            ]);
          }
        }
      });
      await edit.play(shot, Math.min(shot.left, random.int(15, 40)));
    }
    await edit.play(shot, shot.left);
    await edit.close(shot);
  }
}

/** Sensor noise of changing strength; cuts are plain ones. */
export async function noise(edit: Edit): Promise<void> {
  await graded(edit, (random) => {
    const sigma = random.between(3, 18), chroma = random.pick([0, 0.3, 0.8]);
    return (picture) => addNoise(picture, random, sigma, chroma);
  });
}

export async function lowLight(edit: Edit): Promise<void> {
  await graded(edit, (random) => {
    const gain = random.between(0.12, 0.4), sigma = random.between(1, 6);
    return (picture) => {
      light(picture, gain, 0, gain + 0.2);
      addNoise(picture, random, sigma, 0.5);
    };
  });
}

/** Grey or brown, with dust, scratches, a picture that stands unsteadily and light that breathes a little. */
export async function oldFilm(edit: Edit): Promise<void> {
  const moved = new Picture(edit.size);
  await graded(edit, (random) => {
    const brown = random.chance(0.5) ? 8 : 0,
      flutter = random.between(0.005, 0.025),
      jitter = random.between(0.3, 2);
    const scratch = { x: random.next(), left: 0 };
    return (picture) => {
      const { width, height } = picture;
      light(picture, 1 + flutter * random.gauss(), 0, 0, -brown, brown);
      moved.copyFrom(picture);
      const part = {
        x: 2 + jitter * random.gauss() / 2,
        y: 2 + jitter * random.gauss(),
        width: width - 4,
        height: height - 4,
      };
      sample(moved, part, picture);
      if (scratch.left-- <= 0 && random.chance(0.05)) {
        Object.assign(scratch, { x: random.next(), left: random.int(3, 25) });
      }
      if (scratch.left > 0) {
        rectangle(picture, (scratch.x + 0.002 * random.gauss()) * width, 0, random.int(1, 2), height, [
          200,
          128,
          128,
        ]);
      }
      for (let dust = random.int(0, 5); dust > 0; dust--) {
        const radius = random.between(1, 5);
        ellipse(
          picture,
          random.next() * width,
          random.next() * height,
          radius,
          radius,
          random.chance(0.6) ? BLACK : WHITE,
        );
      }
      addNoise(picture, random, 4, 0);
    };
  });
}

async function graded(edit: Edit, choose: (random: Random) => (picture: Picture) => void): Promise<void> {
  const { random, film } = edit;
  let grade = choose(random.fork("grade"));
  while (edit.wants()) {
    const shot: Shot = edit.cutTo({ frames: edit.seconds(random.between(0.6, 2.5)), least: 12 });
    if (random.chance(0.2)) grade = choose(random.fork(`grade${film.at}`));
    await edit.play(shot, shot.frames, grade);
    await edit.close(shot);
  }
}
