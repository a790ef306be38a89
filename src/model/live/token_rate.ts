/** How many output tokens a live session may cost in a second; keyframes beyond that ask no model. Contract 11.4. */

import { utf8Length } from "../../base/bytes.ts";

const WINDOW_MS = 1_000;
/** A window that had more answers than this is full, whatever they cost: what is remembered has a bound. */
const ANSWERS_MAX = 4_096;

/**
 * Counts what the answers of the last second cost. The cost of an answer is known once it is there, so a question is
 * asked while there is anything left, and one long answer keeps the session silent until it is a second old.
 */
export class TokenRate {
  readonly #perSecond: number;
  readonly #answers: { readonly atMs: number; readonly tokens: number }[] = [];
  #spent = 0;

  /** 0 is no cap. */
  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  /** Whether a model may be asked at `nowMs`, a time of a clock that never goes back. */
  admits(nowMs: number): boolean {
    if (this.#perSecond === 0) return true;
    const current = this.#answers.findIndex(({ atMs }) => atMs > nowMs - WINDOW_MS);
    const expired = this.#answers.splice(0, current < 0 ? this.#answers.length : current);
    for (const { tokens } of expired) this.#spent -= tokens;
    return this.#spent < this.#perSecond && this.#answers.length < ANSWERS_MAX;
  }

  /** An answer came at `nowMs`. */
  spend(nowMs: number, answer: string): void {
    if (this.#perSecond === 0) return;
    const tokens = tokensOf(answer);
    this.#answers.push({ atMs: nowMs, tokens });
    this.#spent += tokens;
  }
}

/** Roughly: four bytes are a token, and every answer is one at least. */
export function tokensOf(answer: string): number {
  return Math.max(1, Math.floor(utf8Length(answer) / 4));
}
