/** Finds out whether something comes in absurdly small pieces: each one costs time, however short it is. */

export interface PieceLimits {
  /** Shorter ones count as too small. */
  readonly bytesMin: number;
  /** So many empty pieces are taken in all, or more of those that are longer. */
  readonly smallMax: number;
}

export class PieceCount {
  readonly #limits: PieceLimits;
  /** By how much the pieces were too short, less what longer ones have had beyond. */
  #missingBytes = 0;

  constructor(limits: PieceLimits) {
    this.#limits = limits;
  }

  /** False where too many of the pieces were too small. */
  add(bytes: number): boolean {
    const { bytesMin, smallMax } = this.#limits;
    this.#missingBytes = Math.max(0, this.#missingBytes + bytesMin - bytes);
    return this.#missingBytes <= smallMax * bytesMin;
  }
}
