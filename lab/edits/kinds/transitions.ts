/** Videos of gradual transitions: dissolves, fades, wipes, slides, pushes and zooms, with hard cuts between.
 */

import type { Edit, Shot } from "../edit.ts";
import { blend, blendByMap, light, paste, Picture, sample, type Size } from "../pictures/picture.ts";
import type { Random } from "../random.ts";
import { type Colour, rectangle } from "../pictures/shapes.ts";

/** Most seconds between a fade out and a fade in that are one transition. */
export const LONGEST_HOLD_SECONDS = 0.5;

/** Draws the picture at `progress` (0 to 1, both left out) of a change from one to the other. */
type Change = (from: Picture, to: Picture, progress: number, out: Picture) => void;

interface Transition {
  readonly kind: string;
  readonly change: Change;
}

export async function dissolve(edit: Edit): Promise<void> {
  await chain(
    edit,
    6,
    40,
    () => ({ kind: "dissolve", change: (from, to, progress, out) => blend(from, to, progress, out) }),
  );
}

export async function wipe(edit: Edit): Promise<void> {
  await chain(edit, 6, 36, () => {
    const { kind, map } = wipeMap(edit.random, edit.size);
    const soft = edit.random.chance(0.5) ? 0 : edit.random.int(10, 120);
    return { kind, change: (from, to, progress, out) => blendByMap(from, to, map, progress, soft, out) };
  });
}

export async function slide(edit: Edit): Promise<void> {
  await chain(edit, 6, 30, () => edit.random.pick([push, cover, uncover, zoomInto])(edit.random));
}

/** Fades out to a colour and in again, with or without some frames of nothing but the colour. */
export async function fade(edit: Edit): Promise<void> {
  const { random, film } = edit;
  const colours: readonly { name: string; colour: Colour }[] = [
    { name: "fade_black", colour: [16, 128, 128] },
    { name: "fade_black", colour: [16, 128, 128] },
    { name: "fade_white", colour: [235, 128, 128] },
    { name: "fade_colour", colour: [random.int(60, 200), random.int(70, 190), random.int(70, 190)] },
  ];
  let fadedOut: { name: string; colour: Colour } | null = random.chance(0.5) ? colours[0]! : null;
  let start = 0;
  if (fadedOut) {
    await hold(edit, fadedOut.colour, random.int(2, 20));
    start = film.at;
  }
  while (edit.wants() || fadedOut) {
    const shot = edit.shot({ frames: edit.length(1.2, 2.5, 45), least: 45, drawn: 0.05 });
    if (fadedOut) film.enter(shot.label);
    else film.cut(shot.label);
    let left = shot.frames;
    if (fadedOut) {
      const frames = Math.min(random.int(5, 30), Math.floor(left / 3));
      await fadeFrames(edit, shot, fadedOut.colour, frames, (n) => (n + 1) / (frames + 1));
      film.range("gradual", fadedOut.name, start);
      left -= frames;
      fadedOut = null;
    }
    const out = random.chance(0.8) && edit.wants(20) ? random.pick(colours) : null;
    const frames = out ? Math.min(random.int(5, 30), Math.floor(left / 2)) : 0;
    await edit.play(shot, left - frames);
    if (out) {
      start = film.at;
      await fadeFrames(edit, shot, out.colour, frames, (n) => 1 - (n + 1) / (frames + 1));
      const faded = film.at;
      await hold(edit, out.colour, random.chance(0.6) ? random.int(2, 25) : 0);
      if (film.at - faded > edit.seconds(LONGEST_HOLD_SECONDS)) {
        film.truth.gradual.push({ start, end: faded, kind: out.name });
        start = film.at;
      }
      fadedOut = out;
    }
    await edit.close(shot);
  }
}

async function fadeFrames(
  edit: Edit,
  shot: Shot,
  colour: Colour,
  frames: number,
  weightAt: (n: number) => number,
) {
  const ground = new Picture(edit.size).fill(...colour);
  await edit.play(shot, frames, (picture, n) => blend(ground, picture, weightAt(n), picture));
}

async function hold(edit: Edit, colour: Colour, frames: number): Promise<void> {
  const { film } = edit;
  const picture = new Picture(edit.size).fill(...colour);
  const start = film.at;
  for (let n = 0; n < frames; n++) await film.show(picture);
  if (colour[0] === 16 && frames > 1) film.truth.black.push({ start, end: film.at });
}

/** Shots that are joined by transitions of `shortest` to `longest` frames, and by a cut at times. */
async function chain(edit: Edit, shortest: number, longest: number, choose: () => Transition): Promise<void> {
  const { random, film } = edit;
  const out = new Picture(edit.size);
  const wish = () => ({
    frames: edit.seconds(random.between(0.4, 1.5)) + longest + 20,
    least: longest + 16,
    drawn: 0.05,
  });
  let shot = edit.cutTo(wish());
  while (edit.wants()) {
    const frames = random.int(shortest, random.chance(0.35) ? longest : 18);
    await edit.play(shot, Math.max(8, shot.left - frames));
    if (random.chance(0.2) || shot.left < frames) {
      const next = edit.cutTo(wish());
      await edit.close(shot);
      shot = next;
      continue;
    }
    const next = edit.shot(wish());
    const { kind, change } = choose();
    const start = film.at;
    for (let n = 0; n < frames; n++) {
      change(await shot.next(), await next.next(), (n + 1) / (frames + 1), out);
      await film.show(out);
    }
    film.range("gradual", kind, start);
    film.enter(next.label);
    await edit.close(shot);
    shot = next;
  }
  await edit.play(shot, Math.min(shot.left, 20));
  await edit.close(shot);
}

/** A wipe: for each sample the moment, 0 to 255, at which it changes over. */
function wipeMap(random: Random, size: Size): { kind: string; map: [Uint8Array, Uint8Array] } {
  const kind = random.pick(["wipe", "wipe", "wipe", "diagonal", "iris", "clock", "blinds", "blocks"]);
  const turn = random.int(0, 3), back = random.chance(0.5), count = random.int(4, 10);
  const blocks = Uint8Array.from({ length: 1024 }, () => random.int(0, 255));
  const momentAt = (x: number, y: number): number => {
    switch (kind) {
      case "wipe":
        return [x, 1 - x, y, 1 - y][turn]!;
      case "diagonal":
        return ((turn % 2 === 0 ? x : 1 - x) + y) / 2;
      case "iris":
        return Math.min(1, Math.hypot(x - 0.5, y - 0.5) * Math.SQRT2);
      case "clock":
        return 0.5 + Math.atan2(y - 0.5, x - 0.5) / (2 * Math.PI);
      case "blinds":
        return ((turn % 2 === 0 ? x : y) * count) % 1;
      default:
        return blocks[(Math.floor(x * 16) + 16 * Math.floor(y * 9)) % 1024]! / 255;
    }
  };
  const mapOf = (width: number, height: number) => {
    const map = new Uint8Array(width * height);
    for (let row = 0, i = 0; row < height; row++) {
      for (let column = 0; column < width; column++, i++) {
        const moment = momentAt((column + 0.5) / width, (row + 0.5) / height);
        map[i] = Math.round(255 * (back ? 1 - moment : moment));
      }
    }
    return map;
  };
  const named = kind === "iris" || kind === "clock" || kind === "blinds" || kind === "blocks" ? kind : "wipe";
  return { kind: named, map: [mapOf(size.width, size.height), mapOf(size.width / 2, size.height / 2)] };
}

/** The new picture pushes the old one out. */
function push(random: Random): Transition {
  const [dx, dy] = direction(random);
  return {
    kind: "push",
    change(from, to, progress, out) {
      const x = dx * progress * out.width, y = dy * progress * out.height;
      rectangle(out, 0, 0, out.width, out.height, [16, 128, 128]);
      paste(from, out, evenly(x), evenly(y));
      paste(to, out, evenly(x) - dx * out.width, evenly(y) - dy * out.height);
    },
  };
}

/** The new picture slides over the old one. */
function cover(random: Random): Transition {
  const [dx, dy] = direction(random);
  return {
    kind: "slide",
    change(from, to, progress, out) {
      out.copyFrom(from);
      paste(to, out, evenly(dx * (progress - 1) * out.width), evenly(dy * (progress - 1) * out.height));
    },
  };
}

/** The old picture slides away from over the new one. */
function uncover(random: Random): Transition {
  const [dx, dy] = direction(random);
  return {
    kind: "slide",
    change(from, to, progress, out) {
      out.copyFrom(to);
      paste(from, out, evenly(dx * progress * out.width), evenly(dy * progress * out.height));
    },
  };
}

/** Goes into the old picture, or comes out of the new one, and mixes on the way. */
function zoomInto(random: Random): Transition {
  const strength = random.between(1.5, 4);
  const outwards = random.chance(0.4);
  let nearer: Picture | null = null;
  return {
    kind: "zoom",
    change(from, to, progress, out) {
      nearer ??= new Picture(out);
      const zoom = 1 + (strength - 1) * (outwards ? 1 - progress : progress);
      const width = out.width / zoom, height = out.height / zoom;
      const part = { x: (out.width - width) / 2, y: (out.height - height) / 2, width, height };
      sample(outwards ? to : from, part, nearer);
      if (outwards) blend(from, nearer, Math.min(1, progress * 1.5), out);
      else blend(nearer, to, Math.max(0, progress * 1.5 - 0.5), out);
    },
  };
}

function direction(random: Random): [number, number] {
  return random.pick<[number, number]>([[1, 0], [-1, 0], [0, 1], [0, -1]]);
}

function evenly(place: number): number {
  return 2 * Math.round(place / 2);
}

/** Darkens or brightens to nothing; used where a stretch of black has soft edges. */
export function dim(picture: Picture, weight: number): void {
  light(picture, weight, 0, weight);
}
