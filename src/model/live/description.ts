/** What a live session has said so far: whether a new description says anything new, and whether the state changed. */

import { truncatedUtf8 } from "../../base/bytes.ts";

/** Contract 3.6: words of a description that are compared. */
const WORDS_MAX = 128;
/** Fewer words in common than this share are another state. */
const SAME_STATE_OVERLAP = 0.5;
/** Of a description that prompts and transitions repeat. */
const PREVIOUS_BYTES_MAX = 200;

/** What was said last, cut to what is repeated of it. */
export interface PreviousState {
  readonly ptsMs: number;
  readonly text: string;
}

/** Why a frame was looked at and how sure that was; both are told in a transition. */
export interface StateTrigger {
  readonly trigger: string;
  /** [0,1]. */
  readonly confidence: number;
}

export interface DescriptionStep {
  /** The same text as the last one: its `vlm` event is left out. */
  readonly isRepeated: boolean;
  /** The description of the `state_transition` to write, or null when the state is still the same. */
  readonly transition: string | null;
}

/** The descriptions of one session, one after the other. */
export class Descriptions {
  #last: { readonly ptsMs: number; readonly text: string } | null = null;

  /** For the prompt of the next frame; null before the first description. */
  get previous(): PreviousState | null {
    return this.#last &&
      { ptsMs: this.#last.ptsMs, text: truncatedUtf8(this.#last.text, PREVIOUS_BYTES_MAX) };
  }

  /** A blank description says nothing, so it neither repeats nor changes anything. */
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

/** Whether two descriptions have too few words in common to be of one state. Whole texts are compared. */
export function isAnotherState(before: string, after: string): boolean {
  return wordOverlap(before, after) < SAME_STATE_OVERLAP;
}

/**
 * Words in both over words in either, [0,1]; two texts without a word are the same. Words are what stands between
 * white space, as it is written: "Dock" and "dock" are two, and so are "dock" and "dock.".
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

/** `description` of a `state_transition` is JSON text. */
function stateTransition(from: string, to: string, { trigger, confidence }: StateTrigger): string {
  return JSON.stringify({
    from_state: truncatedUtf8(from, PREVIOUS_BYTES_MAX),
    to_state: to,
    trigger,
    confidence,
  });
}
