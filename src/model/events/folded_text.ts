/** The form in which search compares texts, in which different spellings of the same word are equal. See docs/api.md#search. */

import { normalForm } from "../../base/normal_form.ts";

/**
 * Unicode normal form KC with full case folding, without characters that nobody sees:
 *
 *     "e" + U+0301, "É"   →  "é"           "straße", "STRASSE", "STRAẞE"  →  "strasse"
 *     "ﬁlm", "ＦＩＬＭ"   →  "film"        "ΟΔΟΣ", "οδος", "οδοσ"         →  "οδοσ"
 *     "İ", "I", "ı"       →  "i"           "sun" + U+00AD + "set"         →  "sunset"
 *
 * All forms of the letter i are one, because a text does not say whether it is Turkish.
 */
export function foldedText(text: string): string {
  if (ASCII.test(text)) return text.toLowerCase();
  const visible = normalForm(text, "NFKC").replace(UNSEEN, "");
  // Upper case makes "SS" of "ß". It knows no capital of "ẞ", so lower case goes before it.
  const lower = visible.toLowerCase().toUpperCase().toLowerCase();
  return normalForm(lower.replaceAll("i\u0307", "i").replaceAll("ς", "σ"), "NFKC");
}

const ASCII = /^[\0-\x7f]*$/;
/** Such as soft hyphens, joiners and variants of an emoji. */
const UNSEEN = /\p{Default_Ignorable_Code_Point}+/gu;
