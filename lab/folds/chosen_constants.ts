/** Chooses the named numbers of a detector anew on some sources: what it would be had it never seen the
 * others.
 */

import type { RangeFigure } from "../scores/score.ts";
import { scaled } from "../constants.ts";
import type { DetectionCopy, DetectorConstant } from "./detection_copy.ts";
import type { FoldSet } from "./fold_sets.ts";
import { type FoldedVideo, RangeTally } from "./range_tally.ts";
import type { FrameRange } from "../scores/truth.ts";

/** What a number is multiplied by. */
const FACTORS = [0.8, 0.9, 1.1, 1.25];
/** How many changes are tried on top of each other; those that gain most alone come first. */
const TRIED = 8;
const LEAST_GAIN = 1e-6;

/** What is asked of a copy of the detectors. */
export type Changeable = Pick<DetectionCopy, "constantsOf" | "set">;

/** A number and its other value. */
export interface Change {
  readonly constant: DetectorConstant;
  readonly value: number;
}

export class ChosenConstants {
  readonly #copy: Changeable;
  readonly #videos: readonly FoldedVideo[];
  readonly #figure: RangeFigure;
  readonly #find: () => Iterable<readonly FrameRange[]>;
  readonly #single: readonly Change[];
  readonly #known = new Map<string, RangeTally>();

  /** How often numbers were chosen, and how often others than those that the service has. */
  readonly choices = { all: 0, other: 0 };

  /** `find` runs the copy's detector on all videos. */
  constructor(copy: Changeable, { videos, figure, entry, find }: {
    readonly videos: readonly FoldedVideo[];
    readonly figure: RangeFigure;
    /** The file of the detector. */
    readonly entry: string;
    readonly find: () => Iterable<readonly FrameRange[]>;
  }) {
    this.#copy = copy;
    this.#videos = videos;
    this.#figure = figure;
    this.#find = find;
    this.#single = copy.constantsOf(entry).flatMap((constant) =>
      FACTORS.map((factor) => ({ constant, value: scaled(constant, factor) }))
    );
  }

  /**
   * The changes that gain most where no fold of `left` is shown: every change is tried alone, then the best
   * ones are added one by one, each as long as it gains.
   */
  without(left: FoldSet): readonly Change[] {
    let best = this.#tally([]).scoreWithout(left);
    const promising = this.#single
      .map((change) => ({ change, gain: this.#tally([change]).scoreWithout(left) - best }))
      .filter(({ gain }) => gain > LEAST_GAIN)
      .sort((a, b) => b.gain - a.gain)
      .slice(0, TRIED);
    let chosen: readonly Change[] = [];
    for (const { change } of promising) {
      const more = [...chosen.filter(({ constant }) => constant !== change.constant), change];
      const score = this.#tally(more).scoreWithout(left);
      if (score <= best + LEAST_GAIN) continue;
      best = score;
      chosen = more;
    }
    this.choices.all++;
    if (chosen.length > 0) this.choices.other++;
    return chosen;
  }

  /** What is found in each video with these changes. */
  foundWith(changes: readonly Change[]): (readonly FrameRange[])[] {
    for (const { constant, value } of changes) this.#copy.set(constant, value);
    try {
      return [...this.#find()];
    } finally {
      for (const { constant } of changes) this.#copy.set(constant, constant.value);
    }
  }

  #tally(changes: readonly Change[]): RangeTally {
    const key = changes.map(({ constant: { file, name }, value }) => `${file} ${name} ${value}`).sort()
      .join();
    const known = this.#known.get(key);
    if (known) return known;
    const tally = new RangeTally(this.#videos, this.#figure, this.foundWith(changes));
    this.#known.set(key, tally);
    return tally;
  }
}
