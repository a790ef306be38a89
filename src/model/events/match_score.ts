/** How well a description matches the text that was searched for. See docs/api/reading.md#search. */

import { foldedText } from "./folded_text.ts";

/**
 * The factor for how the best occurrence stands in the description: as whole words, at the start of a word,
 * inside of one.
 */
const QUALITY = { wholeWords: 1, wordStart: 0.8, inside: 0.6 } as const;
/** How many characters that were not searched for weigh as much as one that was. */
const OTHER_CHARACTERS = 8;
const WORD_END = /[\p{L}\p{N}\p{M}]$/u;
const WORD_BEGIN = /^[\p{L}\p{N}\p{M}]/u;

/**
 * How well a description matches, above 0, and 1 where it is the text and nothing else. Both are compared as
 * `foldedText` has them. The description is known to contain the text.
 */
export function matchScore(description: string, text: string): number {
  const [searched, wanted] = [foldedText(description), foldedText(text)];
  let count = 0;
  let quality: number = QUALITY.inside;
  for (let at = searched.indexOf(wanted); at >= 0; at = searched.indexOf(wanted, at + wanted.length)) {
    count++;
    quality = Math.max(quality, qualityAt(searched, at, at + wanted.length));
  }
  // Search compares bytes, so that it finds a text of which `indexOf` says that it is not there.
  const covered = Math.min(searched.length, Math.max(1, count) * wanted.length);
  return rounded(quality * covered / (covered + (searched.length - covered) / OTHER_CHARACTERS));
}

/**
 * How an occurrence stands in the text. Two characters are looked at before and behind it, as one outside the
 * basic plane has two units.
 */
function qualityAt(text: string, start: number, end: number): number {
  if (WORD_END.test(text.slice(Math.max(0, start - 2), start))) return QUALITY.inside;
  return WORD_BEGIN.test(text.slice(end, end + 2)) ? QUALITY.wordStart : QUALITY.wholeWords;
}

function rounded(score: number): number {
  return Math.max(0.0001, Math.round(score * 10_000) / 10_000);
}
