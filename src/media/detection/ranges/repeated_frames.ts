/** Tells which frames only show a picture again, as where a film of 25 frames a second is sent with 50. */

/*
 * What a film at a lower rate moves by, frame by frame, at a higher one:
 *
 *   twice the rate      #.#.#.#.#.#.          # the picture moves
 *   24 in 60 (3:2)      #..#.#..#.#..         . it is shown again
 *   15 in 60            #...#...#...
 *
 * A link is a frame that moves and those behind it that show it again. Where a few links are joined and are
 * nearly as long, the rate is what makes them; a single one may be a player that stumbles, and a longer one a
 * freeze.
 */
/** Frames that show a picture again after it was shown. */
const AGAIN_MAX = 3;
const LINKS_MIN = 4;
/**
 * How much a frame that shows a picture again may move, as a share of the frame that first showed it and of
 * the next one that moves: a codec leaves a little.
 */
const AGAIN_SHARE = 0.35;
/** Levels by which a frame moves at least, mean of the samples. */
const MOVES_MIN = 0.1;
const LINK_FRAMES = AGAIN_MAX + 1;
/**
 * How much the last frame of a link may move, as a share of the next one that moves: in a fade a codec may
 * draw it a part of the way to the next picture.
 */
const PART_SHARE = 0.7;
/** Stands for the next frame that moves while it is not known yet. */
const UNKNOWN = Infinity;
/** Frames that must have come behind a frame before it is known whether it shows a picture again. */
export const REPEAT_LOOKAHEAD = LINKS_MIN * LINK_FRAMES + 1;
/** Frames whose motion is kept: more than are looked at on both sides of a frame together. */
const RING = 64;

export class RepeatedFrames {
  /** Mean absolute difference of the samples of a frame to those of the frame before, frame i at i % RING. */
  readonly #moved = new Float64Array(RING);
  #count = 0;

  reset(): void {
    this.#count = 0;
  }

  push(moved: number): void {
    this.#moved[this.#count++ % RING] = moved;
  }

  /**
   * Whether the frame only shows again what the one before shows; null while that is not known. `isEnd`: no
   * more frames come.
   */
  isRepeat(frame: number, isEnd: boolean): boolean | null {
    let first = frame - AGAIN_MAX, next = this.#nextMoved(first);
    while (next <= frame) {
      if (++first === frame) return false;
      next = this.#nextMoved(first);
    }
    if (next === UNKNOWN) return isEnd ? false : null;
    let links = 1, least = next - first, most = least;
    for (let at = first; links < LINKS_MIN;) {
      const before = this.#linkBefore(at);
      if (before < 0) break;
      least = Math.min(least, at - before);
      most = Math.max(most, at - before);
      at = before;
      links++;
    }
    for (let at = next; links < LINKS_MIN;) {
      const after = this.#nextMoved(at);
      if (after === UNKNOWN && !isEnd) return null;
      if (after < 0 || after === UNKNOWN) break;
      least = Math.min(least, after - at);
      most = Math.max(most, after - at);
      at = after;
      links++;
    }
    return links >= LINKS_MIN && most - least <= 1;
  }

  /**
   * The next frame that moves, behind one to three that show `first` again; -1 for none, UNKNOWN while that
   * is not known.
   */
  #nextMoved(first: number): number {
    const least = this.#at(first);
    if (least < MOVES_MIN) return -1;
    let again = 0, last = 0;
    for (let frame = first + 1; frame <= first + LINK_FRAMES; frame++) {
      if (frame >= this.#count) return UNKNOWN;
      const moved = this.#at(frame);
      if (moved <= AGAIN_SHARE * least) {
        again = Math.max(again, last);
        last = moved;
        continue;
      }
      const lastShare = frame === first + 2 ? AGAIN_SHARE : PART_SHARE;
      if (frame === first + 1 || moved < MOVES_MIN) return -1;
      if (again > AGAIN_SHARE * moved || last > lastShare * moved) return -1;
      if (frame === first + LINK_FRAMES) return frame;
      if (frame + 1 >= this.#count) return UNKNOWN;
      return moved <= PART_SHARE * this.#at(frame + 1) ? frame + 1 : frame;
    }
    return -1;
  }

  /** The frame that moves with which the link before one begins that ends with `next`; -1 for none. */
  #linkBefore(next: number): number {
    for (let first = next - LINK_FRAMES; first < next - 1; first++) {
      if (this.#nextMoved(first) === next) return first;
    }
    return -1;
  }

  /** Motion of a frame; 0 for one that is not known. */
  #at(frame: number): number {
    return frame < 1 || frame <= this.#count - RING || frame >= this.#count ? 0 : this.#moved[frame % RING]!;
  }
}
