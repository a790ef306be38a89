/** Text that cannot act on a terminal: control and direction characters are written out. */

/** C1, line separators, and what changes the direction of the text around it. DEL too. */
const ALSO_IN_JSON = "\\u007f-\\u009f\\u061c\\u200e\\u200f\\u2028-\\u202e\\u2066-\\u2069\\ufeff";
/** With C0, and half a character of two. */
const ACTING = new RegExp(`[\\u0000-\\u001f${ALSO_IN_JSON}]|\\p{Surrogate}`, "gu");
/** JSON text has C0 nowhere inside strings, and no other of these outside. */
const ACTING_IN_JSON = new RegExp(`[${ALSO_IN_JSON}]`, "g");
const SHORT: Readonly<Record<string, string>> = { "\n": "\\n", "\t": "\\t", "\r": "\\r" };

/** `a\x1b[31m` for an `a` with an escape sequence behind it. */
export function visible(text: string): string {
  return text.replace(ACTING, (character) => {
    const code = character.charCodeAt(0);
    return SHORT[character] ??
      (code < 0x100 ? `\\x${code.toString(16).padStart(2, "0")}` : unicodeEscape(code));
  });
}

/** JSON text of the same value, in which nothing acts on a terminal. */
export function visibleJson(json: string): string {
  return json.replace(ACTING_IN_JSON, (character) => unicodeEscape(character.charCodeAt(0)));
}

function unicodeEscape(code: number): string {
  return `\\u${code.toString(16).padStart(4, "0")}`;
}
