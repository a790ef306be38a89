/** Free text for formats that end something at a line break. */

/** The text with a blank in the place of each control character and line separator. */
export function onOneTextLine(text: string): string {
  return text.replaceAll(/[\p{Cc}\u2028\u2029]/gu, " ");
}
