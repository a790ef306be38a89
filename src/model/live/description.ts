/** The descriptions of a live session: whether a new one differs from the last, and whether the state
 * changed.
 */

import { truncatedUtf8 } from "../../base/bytes.ts";

/** The words of a description that are compared. See docs/live/events.md#state-transitions. */
const WORDS_MAX = 128;
/** The share of common words below which the state is another one. */
const SAME_STATE_OVERLAP = 0.5;
/** Bytes of a description that prompts and transitions repeat. */
const PREVIOUS_BYTES_MAX = 200;

/** The last description, cut to PREVIOUS_BYTES_MAX. */
export interface PreviousState {
  readonly ptsMs: number;
  readonly text: string;
}

/** Why the frame was chosen, and the confidence of that; both are part of a transition. */
export interface StateTrigger {
  readonly trigger: string;
  /** How certain the choice of the frame is, [0,1]. */
  readonly confidence: number;
}

export interface DescriptionStep {
  /** Whether the text is the same as the last one: then its `vlm` event is left out. */
  readonly isRepeated: boolean;
  /** The description of the `state_transition` to write, or null when the state is still the same. */
  readonly transition: string | null;
}

/** The descriptions of one session, one after the other. */
export class Descriptions {
  #last: { readonly ptsMs: number; readonly text: string } | null = null;

  /** The last description, for the prompt of the next frame; null before the first one. */
  get previous(): PreviousState | null {
    return this.#last &&
      { ptsMs: this.#last.ptsMs, text: truncatedUtf8(this.#last.text, PREVIOUS_BYTES_MAX) };
  }

  /** Takes the next description. A blank one is ignored: it neither repeats nor changes anything. */
  next(ptsMs: number, description: string, because: StateTrigger): DescriptionStep {
    if (description.trim() === "") return { isRepeated: false, transition: null };
    const last = this.#last;
    this.#last = { ptsMs, text: description };
    if (!last) return { isRepeated: false, transition: null };
    return {
      isRepeated: last.text === description,
      transition: isAnotherState(last.text, description)
        ? stateTransition(last.text, description, because)
        : null,
    };
  }
}

/** Whether two whole descriptions have too few words in common to be of one state. */
export function isAnotherState(before: string, after: string): boolean {
  return wordOverlap(before, after) < SAME_STATE_OVERLAP;
}

/**
 * How much two texts have in common: words in both over words in either, [0,1]; 1 for two texts without
 * words. Words are separated by white space and compared as they are: "Dock", "dock" and "dock." are three
 * words.
 */
export function wordOverlap(one: string, other: string): number {
  const words = wordsOf(one);
  const others = wordsOf(other);
  const common = [...words].filter((word) => others.has(word)).length;
  const either = words.size + others.size - common;
  return either === 0 ? 1 : common / either;
}

function wordsOf(text: string): Set<string> {
  return new Set(text.split(/\s+/u).filter((word) => word !== "").slice(0, WORDS_MAX));
}

/** The `description` of a `state_transition` event, which is JSON text. */
function stateTransition(from: string, to: string, { trigger, confidence }: StateTrigger): string {
  return JSON.stringify({
    from_state: truncatedUtf8(from, PREVIOUS_BYTES_MAX),
    to_state: to,
    trigger,
    confidence,
  });
}
