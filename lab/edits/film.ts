/** A video while it is made: takes its frames in order and notes what is true of them. */

import type { FrameRange, LoopRange, NamedRange, TruthShot } from "../scores/truth.ts";
import { isStill, rangesWhere } from "./files/inspect.ts";
import { difference, Picture, type Size } from "./pictures/picture.ts";
import type { FrameSink } from "./files/programs.ts";

/** Least difference of two pictures that are asked to be told apart, mean of luma plus chroma. */
const LEAST_CUT_DIFFERENCE = 3;
export interface FilmTruth {
  readonly cuts: number[];
  readonly gradual: NamedRange[];
  readonly flashes: NamedRange[];
  readonly freezes: NamedRange[];
  readonly black: FrameRange[];
  readonly loops: LoopRange[];
  readonly corruption: DamageRange[];
  /** Ranges of damage too faint to be asked for. */
  readonly faint: FrameRange[];
  readonly artifacts: NamedRange[];
  readonly shakes: NamedRange[];
  readonly jumpcuts: number[];
  readonly jumps: number[];
  readonly lightsteps: number[];
  readonly static: FrameRange[];
  readonly shots: TruthShot[];
}

/** A range of damage. `max_mad` is the largest mean difference of luma from the undamaged decode. */
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
  readonly #still: boolean[] = [false];

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

  /** Begins another shot with the next frame, by a cut. */
  cut(label: ShotLabel): void {
    this.enter(label);
    this.#cutPending = this.#at > 0;
  }

  /** Begins another shot with the next frame, without a cut. */
  enter(label: ShotLabel): void {
    this.truth.shots.push({ start: this.#at, ...label });
  }

  /** Begins the same camera at another time with the next frame. */
  jumpCut(label: ShotLabel): void {
    this.enter(label);
    if (this.#at > 0) this.truth.jumpcuts.push(this.#at);
  }

  /** Notes frames `start` up to the next one. */
  range(list: "gradual" | "flashes" | "freezes" | "artifacts" | "shakes", kind: string, start: number): void {
    if (start < this.#at) this.truth[list].push({ start, end: this.#at, kind });
  }

  /** Notes where nothing moved, when all frames were shown. */
  finish(): void {
    this.truth.static.push(...rangesWhere(this.#still, Boolean));
  }

  #compare(): void {
    if (this.#cutPending) {
      const { mean } = difference(this.#shown, this.#previous);
      (mean < LEAST_CUT_DIFFERENCE ? this.truth.jumpcuts : this.truth.cuts).push(this.#at);
      this.#cutPending = false;
    }
    this.#still[this.#at] = isStill(this.#shown, this.#previous);
  }
}
