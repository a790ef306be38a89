/** Drawn films with transitions at all frame rates, and with pans, light and things that only look so. */

import {
  HEIGHT,
  landscape,
  mixed,
  noisy,
  type Picture,
  plain,
  relit,
  WIDTH,
  withBox,
} from "../../test/support/kernels/drawn_film.ts";
import { seededRandom } from "../../test/support/seeded_random.ts";
import type { NamedRange, Truth } from "../scores/truth.ts";

const FILMS = 16;
const SEED = 5;
const SHOTS = 4;
const RATES = [12, 15, 24, 25, 25, 30, 50, 60];
const LUMA = WIDTH * HEIGHT;

export interface DrawnTransitions {
  readonly truth: Truth;
  readonly frames: Iterable<Picture>;
}

/** How `from` becomes `to` at a progress between 0 and 1. */
type Change = (from: Picture, to: Picture, progress: number) => Picture;
type Random = () => number;

export function* drawnTransitions(): Generator<DrawnTransitions> {
  for (let film = 0; film < FILMS; film++) {
    yield drawnFilm(`drawn_gradual_${film}`, seededRandom(SEED * 1000 + film));
  }
}

function drawnFilm(name: string, random: Random): DrawnTransitions {
  const fps = RATES[Math.floor(random() * RATES.length)]!;
  const frames = (least: number, most: number) => Math.round(fps * (least + (most - least) * random()));
  const noise = random() < 0.6 ? 0 : 1 + Math.floor(4 * random());
  const pictures: (() => Picture)[] = [];
  const gradual: NamedRange[] = [];
  const shots: { start: number; src: string; src_t: number }[] = [];
  let shot = shotOf(random, fps);
  const enter = () => shots.push({ start: pictures.length, src: "drawn:film", src_t: 0 });
  const play = (count: number, draw: (n: number) => Picture) => {
    for (let n = 0; n < count; n++) pictures.push(() => draw(n));
  };
  enter();
  for (let n = 0; n < SHOTS; n++) {
    const before = shot, length = frames(0.6, 2);
    play(length, (n) => before(n));
    const next = shotOf(random, fps);
    if (random() < 0.65) {
      const { kind, change } = changeOf(random);
      const mixedFrames = Math.max(3, frames(0.2, 2.2)), start = pictures.length;
      play(mixedFrames, (n) => change(before(length + n), next(n), (n + 1) / (mixedFrames + 1)));
      gradual.push({ start, end: pictures.length, kind });
    }
    shot = (frame) => next(frame + fps);
    enter();
  }
  const last = shot;
  play(fps, (n) => last(n));
  return {
    truth: {
      ...{ name, video: name, kind: "drawn", fps, cuts: [], gradual, shots },
      frames: pictures.length,
    },
    frames: drawnOneByOne(pictures, noise),
  };
}

function* drawnOneByOne(pictures: readonly (() => Picture)[], noise: number): Generator<Picture> {
  for (const [frame, draw] of pictures.entries()) yield noise > 0 ? noisy(draw(), noise, frame) : draw();
}

/**
 * A landscape that stands, is panned slowly, or fast for a moment, is lit otherwise, or has a thing that
 * crosses it.
 */
function shotOf(random: Random, fps: number): (frame: number) => Picture {
  const seed = 10 + Math.floor(30 * random()), dice = random();
  const from = Math.floor(800 * random()), speed = (random() - 0.5) * 120 / fps;
  const moment = fps * (0.3 + random()),
    length = fps * (0.2 + 0.8 * random()),
    strength = 0.3 + 0.4 * random();
  const progress = (frame: number) => Math.max(0, Math.min(1, (frame - moment) / length));
  if (dice < 0.3) return () => landscape(seed, from);
  if (dice < 0.55) return (frame) => landscape(seed, from + speed * frame);
  if (dice < 0.75) return (frame) => landscape(seed, from + 400 * strength * progress(frame));
  if (dice < 0.9) {
    return (frame) => relit(landscape(seed, from), (luma) => luma * (1 - strength * progress(frame)));
  }
  const size = 40 + Math.floor(80 * random());
  return (frame) => {
    const box = { x: Math.round((WIDTH - size) * progress(frame)), y: 30, width: size, height: size };
    return withBox(landscape(seed, from), box, 220);
  };
}

function changeOf(random: Random): { kind: string; change: Change } {
  const dice = random();
  if (dice < 0.35) return { kind: "dissolve", change: mixed };
  if (dice < 0.5) return { kind: "wipe", change: besides(false, false) };
  if (dice < 0.65) return { kind: "push", change: besides(true, true) };
  if (dice < 0.8) return { kind: "slide", change: besides(false, true) };
  const colour = dice < 0.93 ? plain(16) : plain(235);
  return {
    kind: "fade",
    change: (from, to, progress) =>
      progress < 0.5 ? mixed(from, colour, 2 * progress) : mixed(colour, to, 2 * progress - 1),
  };
}

/** The new picture is on the left of the old one; each stands, or moves to the right. */
function besides(fromMoves: boolean, toMoves: boolean): Change {
  return (from, to, progress) => {
    const place = 2 * Math.round(progress * WIDTH / 2);
    const picture = from.slice();
    const paste = (begin: number, end: number, width: number, seam: number) => {
      for (let row = begin; row < end; row += width) {
        if (fromMoves) picture.set(from.subarray(row, row + width - seam), row + seam);
        const first = toMoves ? row + width - seam : row;
        picture.set(to.subarray(first, first + seam), row);
      }
    };
    paste(0, LUMA, WIDTH, place);
    paste(LUMA, from.length, WIDTH / 2, place / 2);
    return picture;
  };
}
