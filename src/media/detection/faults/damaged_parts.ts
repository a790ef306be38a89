/** Parts of the picture that are damaged: blocks, stripes and slices that do not belong there, by fitted
 * trees.
 */

import weights from "../../../../weights/damage.json" with { type: "json" };
import { type FittedTrees, LEAF_ONE, loadTrees } from "../../../base/fitted_trees.ts";
import { DamageKernel } from "../../kernels/damage_kernel.ts";
import { DAMAGE_REACH, DamageHistory } from "./damage_features.ts";
import { DamageTrees } from "./damage_trees.ts";

/** The trees of the detector, by what they tell. */
export interface DamageWeights {
  /** Trees that tell where damage is. */
  readonly damage: FittedTrees;
  /**
   * Trees that tell where damage is where decoders do not notice changed bytes, so that it may be damage of
   * that as well.
   */
  readonly silent: FittedTrees;
  /** Trees that tell where damage that `silent` found is over before a frame is made of no other. */
  readonly healing: FittedTrees;
}

export const DAMAGE_WEIGHTS: DamageWeights = loadTrees(weights);

/**
 * Mean logarithm of the odds of three frames from which on damage begins; each must be BEGINS_EACH. One frame
 * alone is not enough.
 */
const BEGINS = 2.8;
const BEGINS_EACH = 0.3;
/**
 * Frames behind clear damage in which less is enough, as damage seldom comes alone: BEGINS less AGAIN_LESS,
 * and BEGINS_EACH less AGAIN_EACH_LESS.
 */
const AGAIN_FRAMES = 3000;
const AGAIN_LESS = 2.5;
const AGAIN_EACH_LESS = 0.8;
/**
 * What is added to BEGINS where the decoder says that the frame is made of no other: such a frame draws the
 * whole picture anew, grain and edges too.
 */
const BEGINS_ANEW = 2;
const BEGIN_FRAMES = 3;
/** Logarithm of the odds below which damage ends, with the first such frame. */
const GOES_ON = -2;
/** Frames after which damage counts as what the picture is like now. */
const LONGEST = 60;
/** Logarithm of the odds from which on a frame of a live stream waits for later ones. */
const OPEN = -2;
/** Odds above BEGINS that make a fault as clear again. */
const CLEARER = 2;
/**
 * Logarithm of the odds, by the trees for the end of damage, from which on damage is over because the picture
 * comes back.
 */
const HEALED = 0;
/** How many of the newest frames have their odds kept. */
const KEPT = 8;

/** Frames behind a frame that its judgement looks at. */
export const DAMAGE_LOOKAHEAD = DAMAGE_REACH + BEGIN_FRAMES - 1;

/**
 * Judges frames by fitted trees. They are pushed in order and judged in order, each with those that have come
 * until then. Allocates nothing per frame.
 */
export class DamagedParts {
  /** How clearly the frame that was judged last is damaged: 0 for not, 1 where it just is. */
  strength = NaN;

  readonly #history: DamageHistory;
  readonly #usual: DamageTrees;
  readonly #silent: DamageTrees;
  readonly #healing: DamageTrees;
  /** The trees that are asked. */
  #trees: DamageTrees;
  /** The logarithm of the odds of a frame, times LEAF_ONE, in slot i % KEPT. */
  readonly #odds = new Int32Array(KEPT);
  /** Frames below this one have their odds. */
  #known = 0;
  #shotStart = 0;
  /** The first damaged frame; -1 where none is. */
  #start = -1;
  /** How clearly the damage began. */
  #clearness = NaN;
  /** The first frame for which earlier clear damage no longer counts. */
  #againEnd = 0;

  /** Trees that are not given are those of DAMAGE_WEIGHTS. */
  constructor(weights: Partial<DamageWeights> = {}) {
    const { damage, silent, healing } = { ...DAMAGE_WEIGHTS, ...weights };
    const kernel = new DamageKernel();
    this.#history = new DamageHistory(kernel);
    this.#usual = new DamageTrees(kernel, damage);
    this.#silent = new DamageTrees(kernel, silent);
    this.#healing = new DamageTrees(kernel, healing);
    this.#trees = this.#usual;
  }

  reset(): void {
    this.#history.reset();
    this.#known = 0;
    this.#shotStart = 0;
    this.#start = -1;
    this.#againEnd = 0;
  }

  push(measures: Float32Array): void {
    this.#history.push(measures);
  }

  /** Adds a frame as the codes of its measures. */
  pushCodes(codes: Uint8Array, from: number): void {
    this.#history.pushCodes(codes, from);
  }

  /** Whether later frames may change what is said of this one, which is the next to be judged. */
  isOpen(frame: number): boolean {
    return this.#start >= 0 || this.#oddsNow(frame) > OPEN * LEAF_ONE;
  }

  /**
   * Goes on to the next frame, and sets `strength`. `isSilent`: the decoder does not notice changed bytes.
   * `beginsAnew`: it says that the frame is made of no other.
   */
  step(frame: number, isCut: boolean, isSilent: boolean, beginsAnew = false): void {
    this.#trees = isSilent ? this.#silent : this.#usual;
    if (isCut || frame === 0) {
      this.#known = frame;
      this.#shotStart = frame;
      this.#start = -1;
    } else if (this.#start < 0) this.#begin(frame, beginsAnew);
    else if (this.#oddsOf(frame) < GOES_ON * LEAF_ONE || this.#hasEnded(frame)) this.#start = -1;
    this.strength = this.#start < 0 ? 0 : this.#clearness;
  }

  /** Whether damage that lasted until the frame before is over with a frame: by trees of their own. */
  isOver(frame: number): boolean {
    this.#history.measure(frame, this.#shotStart);
    return this.#healing.odds() >= HEALED * LEAF_ONE;
  }

  #hasEnded(frame: number): boolean {
    return frame - this.#start >= LONGEST || this.#history.heals(frame) || this.isOver(frame);
  }

  #begin(frame: number, beginsAnew: boolean): void {
    const isAgain = frame < this.#againEnd;
    const each = (BEGINS_EACH - (isAgain ? AGAIN_EACH_LESS : 0)) * LEAF_ONE;
    let sum = 0;
    for (let later = 0; later < BEGIN_FRAMES; later++) {
      if (frame + later >= this.#history.count) return;
      const odds = this.#oddsOf(frame + later);
      if (odds < each) return;
      sum += odds;
    }
    const more = sum / LEAF_ONE / BEGIN_FRAMES - (BEGINS + (beginsAnew ? BEGINS_ANEW : 0));
    if (more < (isAgain ? -AGAIN_LESS : 0)) return;
    if (more >= 0) this.#againEnd = frame + AGAIN_FRAMES;
    this.#start = frame;
    this.#clearness = Math.max(1, Math.min(4, 1 + more / CLEARER));
  }

  /**
   * The odds of a frame, times LEAF_ONE, are decided once, with the frames that have come by then; asked for
   * in order.
   */
  #oddsOf(frame: number): number {
    if (frame >= this.#known) {
      this.#odds[frame % KEPT] = this.#oddsNow(frame);
      this.#known = frame + 1;
    }
    return this.#odds[frame % KEPT]!;
  }

  #oddsNow(frame: number): number {
    this.#history.measure(frame, this.#shotStart);
    return this.#trees.odds();
  }
}
