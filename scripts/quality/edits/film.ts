/** A video while it is made: takes its frames in order and notes what is true of them. */

import type { FrameRange, LoopRange, NamedRange, TruthShot } from "../truth.ts";
import { difference, Picture, type Size } from "./picture.ts";
import type { FrameSink } from "./programs.ts";

/** Two pictures that differ less are not asked to be told apart, mean of luma plus chroma. */
const LEAST_CUT_DIFFERENCE = 3;
/** Frames that differ less are the same to a viewer, so that calling them frozen is not wrong. */
const STATIC_MEAN = 0.5;
const STATIC_BLOCK = 6;
const SHORTEST_STATIC_FRAMES = 5;

export interface FilmTruth {
  readonly cuts: number[];
  readonly gradual: NamedRange[];
  readonly flashes: NamedRange[];
  readonly freezes: NamedRange[];
  readonly black: FrameRange[];
  readonly loops: LoopRange[];
  readonly corruption: DamageRange[];
  /** Damage too faint to be asked for. */
  readonly faint: FrameRange[];
  readonly artifacts: NamedRange[];
  readonly shakes: NamedRange[];
  readonly jumpcuts: number[];
  readonly jumps: number[];
  readonly lightsteps: number[];
  readonly static: FrameRange[];
  readonly shots: TruthShot[];
}

/** `max_mad` is the largest mean difference of luma from the undamaged decode. */
export type DamageRange = NamedRange & { readonly max_mad: number };

export type ShotLabel = Omit<TruthShot, "start">;

function emptyTruth(): FilmTruth {
  return {
    ...{ cuts: [], gradual: [], flashes: [], freezes: [], black: [], loops: [], jumpcuts: [], jumps: [] },
    ...{ artifacts: [], corruption: [], faint: [], shakes: [], lightsteps: [], static: [], shots: [] },
  };
}

/** What a video begins with when no shot does. */
const BLANK: ShotLabel = { src: "drawn:plain", src_t: 0, origin: "drawn:plain" };

export class Film {
  readonly size: Size;
  readonly fps: number;
  readonly truth: FilmTruth = emptyTruth();
  readonly #sink: FrameSink;
  readonly #overlay: (picture: Picture, frame: number) => void;
  #at = 0;
  #cutPending = false;
  #shown: Picture;
  #previous: Picture;
  #staticSince = 0;

  constructor(
    size: Size,
    fps: number,
    sink: FrameSink,
    overlay: (picture: Picture, frame: number) => void = () => {},
  ) {
    this.size = size;
    this.fps = fps;
    this.#sink = sink;
    this.#overlay = overlay;
    this.#shown = new Picture(size);
    this.#previous = new Picture(size);
  }

  /** Index of the next frame. */
  get at(): number {
    return this.#at;
  }

  async show(picture: Picture): Promise<void> {
    [this.#shown, this.#previous] = [this.#previous, this.#shown];
    this.#shown.copyFrom(picture);
    this.#overlay(this.#shown, this.#at);
    if (this.#at > 0) this.#compare();
    else if (this.truth.shots.length === 0) this.enter(BLANK);
    await this.#sink.write(this.#shown);
    this.#at++;
  }

  /** The next frame is the first of another shot. */
  cut(label: ShotLabel): void {
    this.enter(label);
    this.#cutPending = this.#at > 0;
  }

  /** Another shot begins with the next frame, without a cut. */
  enter(label: ShotLabel): void {
    this.truth.shots.push({ start: this.#at, ...label });
  }

  /** The same camera at another time begins with the next frame. */
  jumpCut(label: ShotLabel): void {
    this.enter(label);
    if (this.#at > 0) this.truth.jumpcuts.push(this.#at);
  }

  /** Notes frames `start` up to the next one. */
  range(list: "gradual" | "flashes" | "freezes" | "artifacts" | "shakes", kind: string, start: number): void {
    if (start < this.#at) this.truth[list].push({ start, end: this.#at, kind });
  }

  finish(): void {
    this.#endStatic();
    const { truth } = this;
    const others = [...truth.freezes, ...truth.black];
    const kept = truth.static.filter((range) =>
      !others.some((other) => range.start < other.end && other.start < range.end)
    );
    truth.static.splice(0, Infinity, ...kept);
  }

  #compare(): void {
    const { mean, luma, block } = difference(this.#shown, this.#previous);
    if (this.#cutPending) {
      (mean < LEAST_CUT_DIFFERENCE ? this.truth.jumpcuts : this.truth.cuts).push(this.#at);
      this.#cutPending = false;
    }
    if (luma > STATIC_MEAN || block > STATIC_BLOCK) {
      this.#endStatic();
      this.#staticSince = this.#at;
    }
  }

  /** As with a freeze, the first frame of a static stretch is the first that repeats the one before it. */
  #endStatic(): void {
    const start = this.#staticSince + 1;
    if (this.#at - start >= SHORTEST_STATIC_FRAMES) this.truth.static.push({ start, end: this.#at });
  }
}
