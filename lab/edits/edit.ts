/** What a kind of video works with: its size and random numbers, shots to take from, and the film that they
 * go into.
 */

import { anyDrawing, type Drawing } from "./pictures/drawings.ts";
import type { Clip } from "./files/clips.ts";
import type { Film, ShotLabel } from "./film.ts";
import type { ClipTag } from "./files/origins.ts";
import { Picture, scaled, type Size } from "./pictures/picture.ts";
import { FrameReader } from "./files/programs.ts";
import type { Random } from "./random.ts";

/**
 * Which part of a clip's picture a shot shows: `zoom` 1 is the largest part of the shot's shape; x and y from
 * 0 to 1.
 */
export interface Framing {
  readonly zoom: number;
  readonly x: number;
  readonly y: number;
  readonly mirrored: boolean;
}

export interface ShotWish {
  readonly frames: number;
  /** A clip with a shorter take than this is not used; `frames` unless given. */
  readonly least?: number;
  readonly tag?: ClipTag;
  readonly clip?: Clip;
  readonly framing?: Framing;
  /** Decodes so many times larger than the video, for a window to move in. */
  readonly enlarged?: number;
  /** How often a drawing stands in for a clip; 0 unless given. */
  readonly drawn?: number;
}

/** Frames of one source, which are read one after the other. */
export class Shot {
  readonly label: ShotLabel;
  readonly clip: Clip | null;
  readonly framing: Framing;
  /** How many frames it has. */
  readonly frames: number;
  /** The frame that was read last. */
  readonly picture: Picture;
  #read = 0;
  readonly #next: (into: Picture, n: number) => Promise<boolean> | boolean;
  readonly #close: () => Promise<void>;

  constructor(
    label: ShotLabel,
    clip: Clip | null,
    framing: Framing,
    frames: number,
    size: Size,
    next: (into: Picture, n: number) => Promise<boolean> | boolean,
    close: () => Promise<void> = async () => {},
  ) {
    this.label = label;
    this.clip = clip;
    this.framing = framing;
    this.frames = frames;
    this.picture = new Picture(size);
    this.#next = next;
    this.#close = close;
  }

  get left(): number {
    return this.frames - this.#read;
  }

  async next(): Promise<Picture> {
    if (this.left <= 0) throw new Error(`${this.label.src} has no more than ${this.frames} frames here`);
    if (!await this.#next(this.picture, this.#read)) {
      throw new Error(`${this.label.src} ended after ${this.#read} of ${this.frames} frames`);
    }
    this.#read++;
    return this.picture;
  }

  async close(): Promise<void> {
    await this.#close();
  }
}

const WHOLE: Framing = { zoom: 1, x: 0.5, y: 0.5, mirrored: false };

export class Edit {
  readonly film: Film;
  readonly random: Random;
  readonly size: Size;
  readonly fps: number;
  /** About how many frames the video gets. */
  readonly wanted: number;
  readonly #clips: readonly Clip[];
  /** What the camera and the grading do to every frame of a source. */
  readonly #grade: (picture: Picture) => void;
  readonly #open = new Set<Shot>();
  #recent: string[] = [];

  constructor(
    film: Film,
    random: Random,
    wanted: number,
    clips: readonly Clip[],
    grade: (picture: Picture) => void = () => {},
  ) {
    this.film = film;
    this.random = random;
    this.size = film.size;
    this.fps = film.fps;
    this.wanted = wanted;
    this.#clips = clips;
    this.#grade = grade;
  }

  /** Whether the video should go on for at least `frames` more. */
  wants(frames = 1): boolean {
    return this.film.at + frames <= this.wanted;
  }

  /** How many frames are shown in so many seconds. */
  seconds(seconds: number): number {
    return Math.max(1, Math.round(seconds * this.fps));
  }

  /**
   * A random number of frames: those of a time between two, in seconds, but `least` where the rate is low.
   */
  length(shortest: number, longest: number, least: number): number {
    return Math.max(least, this.seconds(this.random.between(shortest, longest)));
  }

  /** A random part of a clip; what was shown last is not taken again while there is another. */
  shot(wish: ShotWish): Shot {
    const { random } = this;
    const usable = wish.clip ? [wish.clip] : this.#usable(wish);
    if (usable.length === 0 || (wish.drawn && random.chance(wish.drawn))) {
      return this.drawn(anyDrawing(random, this.#shotSize(wish)), wish.frames, wish);
    }
    const fresh = usable.filter(({ origin }) => !this.#recent.includes(origin));
    const clip = random.weighted(fresh.length > 0 ? fresh : usable, ({ frames }) => Math.sqrt(frames));
    this.#recent = [...this.#recent.slice(-1), clip.origin];
    const step = this.#step(clip);
    const least = wish.least ?? wish.frames;
    const long = clip.takes.filter(({ start, end }) => end - start >= least * step);
    const takes = long.length > 0
      ? long
      : [clip.takes.toSorted((a, b) => (b.end - b.start) - (a.end - a.start))[0]!];
    const take = random.weighted(takes, ({ start, end }) => end - start);
    const frames = Math.min(wish.frames, Math.floor((take.end - take.start) / step));
    const start = random.int(take.start, take.end - frames * step);
    return this.#fromClip(clip, start, frames, step, wish);
  }

  drawn(drawing: Drawing, frames = Infinity, wish: Pick<ShotWish, "enlarged"> = {}): Shot {
    const name = `drawn:${drawing.name}`;
    const next = (into: Picture, n: number) => {
      drawing.draw(into, n);
      this.#grade(into);
      return true;
    };
    const label = { src: name, src_t: 0, origin: name };
    return new Shot(label, null, WHOLE, frames, this.#shotSize(wish), next);
  }

  /** Plays `frames` of a shot; `change` may draw into each picture before it is shown. */
  async play(
    shot: Shot,
    frames: number,
    change: (picture: Picture, n: number) => void | Promise<void> = () => {},
  ): Promise<void> {
    for (let n = 0; n < frames; n++) {
      const picture = await shot.next();
      await change(picture, n);
      await this.film.show(picture);
    }
  }

  /** A take, a cut before it, and how long it is. */
  cutTo(wish: ShotWish): Shot {
    const shot = this.shot(wish);
    this.film.cut(shot.label);
    return shot;
  }

  async close(shot: Shot): Promise<void> {
    this.#open.delete(shot);
    await shot.close();
  }

  async closeAll(): Promise<void> {
    for (const shot of this.#open) await shot.close();
    this.#open.clear();
  }

  /** Clips that have a take of the wished length; with the tag if there is one. */
  #usable({ frames, least = frames, tag }: ShotWish): readonly Clip[] {
    const long = this.#clips.filter((clip) =>
      clip.takes.some(({ start, end }) => end - start >= least * this.#step(clip))
    );
    const tagged = tag ? long.filter(({ tags }) => tags.includes(tag)) : long;
    return tagged.length > 0 ? tagged : long;
  }

  clips(tag?: ClipTag): readonly Clip[] {
    return this.#clips.filter(({ tags }) => !tag || tags.includes(tag));
  }

  /**
   * Every frame of a clip is used unless the video has far fewer a second, so that no frame is shown twice.
   */
  #step(clip: Clip): number {
    return Math.max(1, Math.round(clip.fps / this.fps - 0.2));
  }

  #shotSize({ enlarged = 1 }: Pick<ShotWish, "enlarged">): Size {
    return scaled(this.size, enlarged);
  }

  #fromClip(clip: Clip, start: number, frames: number, step: number, wish: ShotWish): Shot {
    const size = this.#shotSize(wish);
    const framing = wish.framing ?? this.#anyFraming();
    const shape = size.width / size.height;
    const wide = Math.min(clip.width, clip.height * shape) / framing.zoom;
    const width = 2 * Math.round(wide / 2), height = Math.min(clip.height, 2 * Math.round(wide / shape / 2));
    const x = 2 * Math.floor((clip.width - width) * framing.x / 2);
    const y = 2 * Math.floor((clip.height - height) * framing.y / 2);
    const filters = [
      ...(step > 1 ? [`framestep=${step}`] : []),
      `crop=${width}:${height}:${x}:${y}`,
      `scale=${size.width}:${size.height}:flags=bilinear`,
      ...(framing.mirrored ? ["hflip"] : []),
    ];
    const time = (start - 0.5) / clip.fps;
    const reader = new FrameReader([
      ...["-v", "quiet", "-ss", time.toFixed(4), "-i", clip.reel, "-vf", filters.join(",")],
      ...["-fps_mode", "passthrough", "-frames:v", String(frames), "-pix_fmt", "yuv420p"],
    ]);
    const label = { src: clip.file, src_t: Math.round(1000 * start / clip.fps) / 1000, origin: clip.origin };
    const shot = new Shot(label, clip, framing, frames, size, async (into) => {
      const got = await reader.read(into.data);
      if (got) this.#grade(into);
      return got;
    }, () => reader[Symbol.asyncDispose]());
    this.#open.add(shot);
    return shot;
  }

  #anyFraming(): Framing {
    const { random } = this;
    const zoom = random.chance(0.6) ? 1 : random.between(1, 1.6);
    return { zoom, x: random.next(), y: random.next(), mirrored: random.chance(0.15) };
  }
}
