/** Finds out whether something comes in absurdly small pieces: each one costs time, however short it is. */

export interface PieceLimits {
  /** A piece with fewer bytes counts as small. */
  readonly bytesMin: number;
  /** How many empty pieces are taken in all; of longer pieces that are still small, more are taken. */
  readonly smallMax: number;
}

export class PieceCount {
  readonly #limits: PieceLimits;
  /** How many bytes the pieces were too short, less what longer ones had beyond the minimum. */
  #missingBytes = 0;

  constructor(limits: PieceLimits) {
    this.#limits = limits;
  }

  /** Counts a piece; false where too many were too small. */
  add(bytes: number): boolean {
    const { bytesMin, smallMax } = this.#limits;
    this.#missingBytes = Math.max(0, this.#missingBytes + bytesMin - bytes);
    return this.#missingBytes <= smallMax * bytesMin;
  }
}
