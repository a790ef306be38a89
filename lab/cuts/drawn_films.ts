/** Drawn films with known cuts, for what labelled videos have too little of: pictures that stand, plain
 * colours, white, single frames.
 */

import {
  HEIGHT,
  landscape,
  noisy,
  type Picture,
  plain,
  relit,
  WIDTH,
  withBox,
} from "../../test/support/kernels/drawn_film.ts";
import { seededRandom } from "../../test/support/seeded_random.ts";
import type { Truth } from "../scores/truth.ts";

export interface DrawnVideo {
  readonly truth: Truth;
  readonly frames: readonly Picture[];
}

type Random = () => number;
/** A shot: its picture at each frame. */
type Shot = (n: number) => Picture;

const LUMA = WIDTH * HEIGHT;
const PLANES = [
  { at: 0, width: WIDTH, scale: 1 },
  ...[LUMA, LUMA + LUMA / 4].map((at) => ({ at, width: WIDTH / 2, scale: 2 })),
];
const RATES = [12, 24, 25, 25, 30, 30, 50, 60];

export function* drawnFilms(count: number, seed: number): Generator<DrawnVideo> {
  for (let film = 0; film < count; film++) yield drawnFilm(`drawn_${film}`, seededRandom(seed * 1000 + film));
}

/**
 * Films between bars, or in a window that stays, on plain ground: what is seen is replaced at a cut, much of
 * the picture is not.
 */
export function* windowFilms(count: number, seed: number): Generator<DrawnVideo> {
  for (let film = 0; film < count; film++) {
    yield windowFilm(`window_${film}`, seededRandom(seed * 1000 + film));
  }
}

function windowFilm(name: string, random: Random): DrawnVideo {
  const int = (least: number, most: number) => least + Math.floor(random() * (most - least + 1));
  const frames: Picture[] = [], cuts: number[] = [];
  const isBarred = random() < 0.6, isGray = random() < 0.5;
  const ground = plain(isBarred ? (random() < 0.7 ? 16 : int(20, 40)) : int(30, 225));
  const noise = random() < 0.5 ? 0 : int(1, 5), gain = 0.5 + 0.5 * random();
  const sides = random() < 0.6 ? 0 : int(4, isBarred ? 112 : 80), ends = random() < 0.5 ? 0 : int(6, 54);
  const top = isBarred ? ends : int(0, 60), bottom = isBarred ? HEIGHT - ends : top + int(55, 110);
  for (let shot = 0; shot < 12; shot++) {
    if (shot > 0) cuts.push(frames.length);
    const seed = int(1, 40), place = int(0, 900), speed = random() < 0.6 ? 0 : int(-12, 12);
    const still = random() < 0.6
      ? patches(random, int(8, 40))
      : relit(landscape(seed, place), (luma) => luma * gain);
    // Damage: the lower part is lost for some frames, or to the end of the shot.
    const lostFrom = random() < 0.2 ? int(5, 9) : Infinity, lostUntil = lostFrom + int(2, 12);
    const lostTop = int(45, 140), lostLuma = random() < 0.5 ? 128 : int(16, 235);
    const length = lostFrom < Infinity ? int(lostUntil, lostUntil + 12) : int(8, 24);
    for (let n = 0; n < length; n++) {
      const moved = speed === 0 ? still : relit(landscape(seed, place + n * speed), (luma) => luma * gain);
      const picture = ground.slice();
      for (const { at, width, scale } of PLANES) {
        if (isGray && scale > 1) continue;
        for (let y = Math.floor(top / scale); y < Math.floor(bottom / scale); y++) {
          const from = at + y * width + Math.floor(sides / scale),
            to = at + (y + 1) * width - Math.floor(sides / scale);
          picture.set(moved.subarray(from, to), from);
        }
      }
      if (n >= lostFrom && n < lostUntil) {
        picture.fill(lostLuma, lostTop * WIDTH, LUMA);
        const chromaRow = (lostTop >> 1) * WIDTH / 2;
        for (const at of [LUMA, LUMA + LUMA / 4]) picture.fill(128, at + chromaRow, at + LUMA / 4);
      }
      frames.push(noise > 0 ? noisy(picture, noise, frames.length) : picture);
    }
  }
  const shots = [{ start: 0, src: "drawn:window", src_t: 0 }];
  return {
    truth: { name, video: name, kind: "drawn", fps: RATES[int(0, RATES.length - 1)]!, cuts, shots },
    frames,
  };
}

/** Smooth random patches of so many samples, without colour. */
function patches(random: Random, size: number): Picture {
  const picture = plain(0), columns = Math.ceil(WIDTH / size) + 1;
  const knots = Array.from({ length: columns * (Math.ceil(HEIGHT / size) + 1) }, () => 40 + 180 * random());
  for (let y = 0; y < HEIGHT; y++) {
    const row = Math.floor(y / size) * columns, down = y / size % 1;
    for (let x = 0; x < WIDTH; x++) {
      const at = row + Math.floor(x / size), right = x / size % 1;
      const upper = knots[at]! * (1 - right) + knots[at + 1]! * right;
      const lower = knots[at + columns]! * (1 - right) + knots[at + columns + 1]! * right;
      picture[y * WIDTH + x] = upper * (1 - down) + lower * down;
    }
  }
  return picture;
}

function drawnFilm(name: string, random: Random): DrawnVideo {
  const frames: Picture[] = [],
    cuts: number[] = [],
    shots: { start: number; src: string; src_t: number }[] = [];
  const int = (least: number, most: number) => least + Math.floor(random() * (most - least + 1));
  const noise = random() < 0.5 ? 0 : int(1, 6);
  const show = (picture: Picture) => {
    frames.push(noise > 0 ? noisy(picture, noise, frames.length) : picture);
  };
  const begin = () => {
    if (frames.length > 0) cuts.push(frames.length);
    shots.push({ start: frames.length, src: "drawn:film", src_t: 0 });
  };
  let shot = drawnShot(random, int);
  while (cuts.length < 8) {
    begin();
    const length = int(10, 40);
    for (let n = 0; n < length; n++) show(shot(n));
    const dice = random();
    if (dice < 0.25) interrupt(shot, length);
    if (dice > 0.6) {
      // Another shot for a moment, then the same again.
      const other = drawnShot(random, int), moment = int(3, 12);
      begin();
      for (let n = 0; n < moment; n++) show(other(n));
      continue;
    }
    shot = drawnShot(random, int);
  }

  /** What is no cut: a flash, white, one or two foreign frames, a light that is switched on. */
  function interrupt(shot: Shot, n: number): void {
    const moment = int(1, 4), dice = random();
    const foreign = drawnShot(random, int);
    for (let i = 0; i < moment; i++) {
      if (dice < 0.35) show(relit(shot(n + i), (luma) => luma * 0.4 + 140));
      else if (dice < 0.65) show(plain(235 + int(0, 4)));
      else if (i < 2) show(foreign(0));
    }
    const isLit = dice > 0.9;
    for (let i = 0; i < 12; i++) show(isLit ? relit(shot(n + i), (luma) => luma * 0.6) : shot(n + i));
  }

  const fps = RATES[int(0, RATES.length - 1)]!;
  return { truth: { name, video: name, kind: "drawn", fps, cuts, shots }, frames };
}

/** A landscape or plain ground, standing or moving, perhaps with a thing that moves on it. */
function drawnShot(random: Random, int: (least: number, most: number) => number): Shot {
  const dice = random();
  const seed = int(1, 40), gain = 0.15 + 0.85 * random(), lift = random() * 30;
  const speed = random() < 0.5 ? 0 : int(1, 30) * (random() < 0.5 ? 1 : -1);
  const size = int(10, 60), from = int(0, 200), luma = int(0, 255);
  const ground = random() < 0.3 ? 128 : int(70, 190), other = ground === 128 ? 128 : int(70, 190);
  const base = random() < 0.4 ? 16 : int(20, 220);
  const box = (picture: Picture, n: number) => {
    const place = (from + n * 7) % 240;
    return withBox(picture, { x: place, y: 20 + (place >> 1) % 100, width: size, height: size }, luma);
  };
  if (dice < 0.5) {
    const place = int(0, 900);
    const still = relit(landscape(seed, place), (luma) => luma * gain + lift);
    if (speed === 0) return () => still;
    return (n) => relit(landscape(seed, place + n * speed), (luma) => luma * gain + lift);
  }
  const still = plain(base, ground, other);
  if (dice < 0.7) return () => still;
  if (dice < 0.85) return (n) => box(still, n);
  // A page of lines.
  const lines = Array.from({ length: int(2, 7) }, (_, i) => ({ y: 15 + 22 * i, width: int(40, 250) }));
  const page = lines.reduce(
    (page, { y, width }) => withBox(page, { x: 25, y, width, height: 8 }, base > 128 ? 40 : 220),
    still,
  );
  return () => page;
}
