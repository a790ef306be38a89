/** The form in which search compares texts, in which different spellings of the same word are equal. See
 * docs/api/reading.md#search.
 */

import { normalForm } from "../../base/normal_form.ts";

/**
 * Unicode normal form KC with full case folding, without characters that nobody sees:
 *
 *     "e" + U+0301, "É"   →  "é"           "straße", "STRASSE", "STRAẞE"  →  "strasse"
 *     "ﬁlm", "ＦＩＬＭ"   →  "film"        "ΟΔΟΣ", "οδος", "οδοσ"         →  "οδοσ"
 *     "İ", "I", "ı"       →  "i"           "sun" + U+00AD + "set"         →  "sunset"
 *     "it’s", "itʼs"      →  "it's"        "wi‑fi", "wi–fi"               →  "wi-fi"
 *
 * Line breaks and several blanks are one blank, and all quotation marks are one.
 * All forms of the letter i are one, because a text does not say whether it is Turkish.
 */
export function foldedText(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase().replace(BLANKS, " ");
  // Normal form KC makes a blank of the accent that stands for an apostrophe, so that one goes before it.
  const normal = withPlainMarks(normalForm(withPlainMarks(text), "NFKC"));
  const visible = normal.replace(UNSEEN, "").replace(BLANKS, " ");
  // Upper case makes "SS" of "ß". It knows no capital of "ẞ", so lower case goes before it.
  const lower = visible.toLowerCase().toUpperCase().toLowerCase();
  return normalForm(lower.replaceAll("i\u0307", "i").replaceAll("ς", "σ"), "NFKC");
}

const ASCII = /^[\0-\x7f]*$/;
/** Characters that nobody sees, such as soft hyphens, joiners and variants of an emoji. */
const UNSEEN = /\p{Default_Ignorable_Code_Point}+/gu;
const BLANKS = /[\s\x85]+/g;

/** The text with plain marks in the place of those that keyboards do not have, and models write. */
function withPlainMarks(text: string): string {
  return text.replace(/[‘’‚‛ʻʼʹ′´＇]/g, "'").replace(/[“”„‟«»″]/g, '"').replace(
    /[\p{Dash_Punctuation}−]/gu,
    "-",
  );
}
