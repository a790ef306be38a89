/** How much work of each principal runs now, so that the first piece of one is not slowed down by many pieces
 * of another.
 */

/**
 * `nice` values by how many pieces run already. A busy processor gives 10 a ninth and 15 a twenty-eighth of
 * the time of 0; more would let work run out of time.
 */
const NICE = [0, 10, 15] as const;

/** One piece of work. Disposing it says that it has ended. */
export interface RunningPiece extends Disposable {
  /**
   * The `nice` value of its programs: 0 for the only piece of its principal, up to 15 for those that came on
   * top.
   */
  readonly nice: number;
}

export class RunningWork {
  readonly #pieces = new Map<string, number>();

  begin(principalKey = ""): RunningPiece {
    const others = this.#pieces.get(principalKey) ?? 0;
    this.#pieces.set(principalKey, others + 1);
    let isRunning = true;
    return {
      nice: NICE[Math.min(others, NICE.length - 1)]!,
      [Symbol.dispose]: () => {
        if (!isRunning) return;
        isRunning = false;
        const left = this.#pieces.get(principalKey)! - 1;
        if (left === 0) this.#pieces.delete(principalKey);
        else this.#pieces.set(principalKey, left);
      },
    };
  }
}
