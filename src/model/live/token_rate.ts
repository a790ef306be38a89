/** The cap on the output tokens a second of a live session; beyond it no model is asked about keyframes. */

import { utf8Length } from "../../base/bytes.ts";

const WINDOW_MS = 1_000;
/**
 * The most answers in a second: with so many the second counts as full, whatever they cost, so that the list
 * is bounded.
 */
const ANSWERS_MAX = 4_096;

/**
 * Counts the tokens of the answers of the last second. The cost of an answer is known only when it has
 * arrived, so a request is admitted while the cap is not reached; after one long answer there is none until
 * it is a second old.
 */
export class TokenRate {
  readonly #perSecond: number;
  readonly #answers: { readonly atMs: number; readonly tokens: number }[] = [];
  #spent = 0;

  /** `perSecond`: the cap; 0 means none. */
  constructor(perSecond: number) {
    this.#perSecond = perSecond;
  }

  /** Whether a model may be asked at `nowMs`, of a clock that never goes back. */
  admits(nowMs: number): boolean {
    if (this.#perSecond === 0) return true;
    const current = this.#answers.findIndex(({ atMs }) => atMs > nowMs - WINDOW_MS);
    const expired = this.#answers.splice(0, current < 0 ? this.#answers.length : current);
    for (const { tokens } of expired) this.#spent -= tokens;
    return this.#spent < this.#perSecond && this.#answers.length < ANSWERS_MAX;
  }

  /** Counts an answer that arrived at `nowMs`. */
  spend(nowMs: number, answer: string): void {
    if (this.#perSecond === 0) return;
    const tokens = tokensOf(answer);
    this.#answers.push({ atMs: nowMs, tokens });
    this.#spent += tokens;
  }
}

/** An estimate of the tokens of an answer: four bytes are one, and every answer has at least one. */
export function tokensOf(answer: string): number {
  return Math.max(1, Math.floor(utf8Length(answer) / 4));
}
