/** Unicode normal forms of texts of callers. */

/**
 * `text.normalize(form)` in linear time. The runtime sorts the marks on a letter one by one, so 65,000 of
 * them take it seconds. Of more than 30 in a row the rest is left out: no language writes as many, and
 * Unicode's own form for streams has the same bound.
 */
export function normalForm(text: string, form: "NFC" | "NFKC"): string {
  return text.replace(TOO_MANY_MARKS, "$1").normalize(form);
}

/** The two Japanese sound marks count as marks in normal form KC. */
const TOO_MANY_MARKS = /([\p{M}\uff9e\uff9f]{30})[\p{M}\uff9e\uff9f]+/gu;
