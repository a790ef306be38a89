/** Chooses the named numbers of a detector anew on some sources: what it would be had it never seen the
 * others.
 */

import type { RangeFigure } from "../scores/score.ts";
import { type Constant, scaled } from "../constants.ts";
import type { FoldSet } from "./fold_sets.ts";
import { type FoldedVideo, RangeTally } from "./range_tally.ts";
import type { FrameRange } from "../scores/truth.ts";

/** What a number is multiplied by. */
const FACTORS = [0.8, 0.9, 1.1, 1.25];
/** How many changes are tried on top of each other; those that gain most alone come first. */
const TRIED = 8;
const LEAST_GAIN = 1e-6;

/** A number and its other value. */
export interface Change {
  readonly constant: Omit<Constant, "at">;
  readonly value: number;
}

export class ChosenConstants {
  readonly #videos: readonly FoldedVideo[];
  readonly #figure: RangeFigure;
  readonly #find: (changes: readonly Change[]) => Iterable<readonly FrameRange[]>;
  readonly #single: readonly Change[];
  readonly #known = new Map<string, RangeTally>();

  /** How often numbers were chosen, and how often others than those that the service has. */
  readonly choices = { all: 0, other: 0 };

  /** `find` runs the detector on all videos, with these changes of its `constants`. */
  constructor({ videos, figure, constants, find }: {
    readonly videos: readonly FoldedVideo[];
    readonly figure: RangeFigure;
    readonly constants: readonly Omit<Constant, "at">[];
    readonly find: (changes: readonly Change[]) => Iterable<readonly FrameRange[]>;
  }) {
    this.#videos = videos;
    this.#figure = figure;
    this.#find = find;
    this.#single = constants.flatMap((constant) =>
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
    return [...this.#find(changes)];
  }

  #tally(changes: readonly Change[]): RangeTally {
    const key = changes.map(({ constant: { name }, value }) => `${name} ${value}`).sort()
      .join();
    const known = this.#known.get(key);
    if (known) return known;
    const tally = new RangeTally(this.#videos, this.#figure, this.foundWith(changes));
    this.#known.set(key, tally);
    return tally;
  }
}
